"""The same layers as one would first write them in Keras: the references."""

import types

import keras
from keras import ops


class PlainPrediNet(keras.layers.Layer):
    """PrediNet, head by head."""

    def __init__(self, num_heads, num_relations, key_dim):
        super().__init__()
        self.queries_1, self.queries_2 = (
            [
                keras.layers.Dense(key_dim, use_bias=False)
                for _ in range(num_heads)
            ]
            for _ in range(2)
        )
        self.keys = keras.layers.Dense(key_dim, use_bias=False)
        self.relations = keras.layers.Dense(num_relations, use_bias=False)

    def build(self, input_shape):
        batch, n, m = input_shape
        for query in (*self.queries_1, *self.queries_2):
            query.build((batch, n * m))
        self.keys.build(input_shape)
        self.relations.build((batch, m))

    def call(self, inputs):
        _, n, m = inputs.shape
        flat = ops.reshape(inputs, (-1, n * m))
        keys = self.keys(inputs)
        heads = []
        for query_1, query_2 in zip(
            self.queries_1, self.queries_2, strict=True
        ):
            entities = []
            for query in (query_1, query_2):
                logits = ops.einsum("bg,bng->bn", query(flat), keys)
                weights = ops.softmax(logits)
                entities.append(ops.einsum("bn,bnm->bm", weights, inputs))
            one, two = entities
            distances = self.relations(one) - self.relations(two)
            heads += [distances, one[:, -2:], two[:, -2:]]
        return ops.concatenate(heads, axis=-1)

    def take_weights(self, layer):
        kernels = ops.split(layer.query_kernel, 2 * len(self.queries_1), axis=1)
        denses = (*self.queries_1, *self.queries_2, self.keys, self.relations)
        kernels = (*kernels, layer.key_kernel, layer.relation_kernel)
        for dense, kernel in zip(denses, kernels, strict=True):
            dense.kernel.assign(own(kernel))


class PlainRelationNetwork(keras.layers.Layer):
    """A relation net on n² concatenated pairs."""

    def __init__(self, units, hidden_units):
        super().__init__()
        self.hidden = keras.layers.Dense(
            hidden_units, activation="relu", use_bias=False
        )
        self.out = keras.layers.Dense(units, activation="relu", use_bias=False)

    def build(self, input_shape):
        batch, n, m = input_shape
        self.hidden.build((batch, n, n, 2 * m))
        self.out.build((batch, n, n, self.hidden.units))

    def call(self, inputs):
        n = inputs.shape[1]
        senders = ops.repeat(ops.expand_dims(inputs, 2), n, axis=2)
        receivers = ops.repeat(ops.expand_dims(inputs, 1), n, axis=1)
        pairs = ops.concatenate([senders, receivers], axis=-1)
        return ops.mean(self.out(self.hidden(pairs)), axis=(1, 2))

    def take_weights(self, layer):
        self.hidden.kernel.assign(
            ops.concatenate([layer.sender_kernel, layer.receiver_kernel])
        )
        self.out.kernel.assign(own(layer.output_kernel))


class PlainAttentionPooling(keras.layers.Layer):
    """The MHA baseline, head by head."""

    def __init__(self, num_heads, key_dim, value_dim):
        super().__init__()
        self.queries, self.keys, self.values = (
            [keras.layers.Dense(size, use_bias=False) for _ in range(num_heads)]
            for size in (key_dim, key_dim, value_dim)
        )

    def build(self, input_shape):
        for dense in (*self.queries, *self.keys, *self.values):
            dense.build(input_shape)
        self.positions = self.add_weight(
            name="positions", shape=(len(self.queries), input_shape[1])
        )

    def call(self, inputs):
        outputs = []
        for head, (query, key, value) in enumerate(
            zip(self.queries, self.keys, self.values, strict=True)
        ):
            logits = ops.einsum("bqg,bng->bqn", query(inputs), key(inputs))
            attended = ops.matmul(ops.softmax(logits), value(inputs))
            weights = ops.reshape(self.positions[head], (1, -1, 1))
            outputs.append(ops.sum(attended * weights, axis=1))
        return ops.concatenate(outputs, axis=-1)

    def take_weights(self, layer):
        for denses, kernels in (
            (self.queries, layer.query_kernel),
            (self.keys, layer.key_kernel),
            (self.values, layer.value_kernel),
        ):
            kernels = ops.split(kernels, len(denses), axis=1)
            for dense, kernel in zip(denses, kernels, strict=True):
                dense.kernel.assign(own(kernel))
        self.positions.assign(own(layer.position_kernel).T)


class PlainTwoSimplicialAttention(keras.layers.Layer):
    """One head of 2-simplicial attention as a direct einsum."""

    def __init__(self, key_dim):
        super().__init__()
        self.query, self.key_1, self.key_2, self.value = (
            keras.layers.Dense(key_dim, use_bias=False) for _ in range(4)
        )
        self.key_dim = key_dim

    def build(self, inputs_shape, base_shape=None):
        for dense in (self.query, self.key_1, self.key_2, self.value):
            dense.build(inputs_shape)
        self.product = self.add_weight(
            name="product", shape=3 * (self.key_dim,)
        )

    def call(self, inputs, base):
        p, u = self.query(inputs), self.value(base)
        l_1, l_2 = self.key_1(base), self.key_2(base)
        pp, l_11, l_22 = (
            ops.sum(ops.square(x), axis=-1) for x in (p, l_1, l_2)
        )
        pl_1, pl_2, l_12 = (
            ops.einsum("bir,bjr->bij", x, y)
            for x, y in ((p, l_1), (p, l_2), (l_1, l_2))
        )
        square = (
            ops.einsum("bij,bk->bijk", pl_1**2, l_22)
            + ops.einsum("bik,bj->bijk", pl_2**2, l_11)
            + ops.einsum("bjk,bi->bijk", l_12**2, pp)
            - 2 * ops.einsum("bij,bik,bjk->bijk", pl_1, pl_2, l_12)
        )
        logits = ops.sqrt(ops.maximum(square, 1e-9))
        n, v = logits.shape[1:3]
        weights = ops.softmax(ops.reshape(logits, (-1, n, v * v)))
        weights = ops.reshape(weights, (-1, n, v, v))
        return ops.einsum("bijk,bjr,bks,qrs->biq", weights, u, u, self.product)

    def take_weights(self, layer):
        for dense, kernel in (
            (self.query, layer.query_kernel),
            (self.key_1, layer.key_1_kernel),
            (self.key_2, layer.key_2_kernel),
            (self.value, layer.value_kernel),
        ):
            dense.kernel.assign(own(kernel))
        self.product.assign(own(layer.product_kernel)[0])


class PlainESBN(keras.layers.Layer):
    """An ESBN on images, which it encodes in turn; its memory are lists."""

    def __init__(self, encoder, units, key_dim):
        super().__init__()
        self.encoder = encoder
        self.cell = keras.layers.LSTMCell(units)
        self.key = keras.layers.Dense(key_dim, activation="relu")
        self.gate = keras.layers.Dense(1, activation="sigmoid")

    def build(self, input_shape):
        batch = input_shape[0]
        self.cell.build((batch, self.key.units))
        self.key.build((batch, self.cell.units))
        self.gate.build((batch, self.cell.units))

    def call(self, images, training=False):
        batch, time = ops.shape(images)[0], images.shape[1]
        states = self.cell.get_initial_state(batch)
        read = ops.zeros((batch, self.key.units))
        keys, values = [], []
        for t in range(time + 1):
            h, states = self.cell(read, states)
            if t == time:
                return h
            z = self.encoder(images[:, t], training=training)
            if keys:
                logits = ops.sum(
                    ops.stack(values, axis=1) * z[:, None], axis=-1
                )
                weights = ops.softmax(logits)[..., None]
                read = ops.sum(weights * ops.stack(keys, axis=1), axis=1)
                read = self.gate(h) * read
            keys.append(self.key(h))
            values.append(z)

    def take_weights(self, layer):
        self.cell.set_weights(
            [own(layer.kernel), own(layer.recurrent_kernel), own(layer.bias)]
        )
        sizes = [self.key.units]
        kernels = ops.split(layer.write_kernel, sizes, axis=1)
        biases = ops.split(layer.write_bias, sizes)
        for dense, kernel, bias in zip(
            (self.key, self.gate), kernels, biases, strict=True
        ):
            dense.set_weights([own(kernel), own(bias)])


def plain_rule_learner(model):
    """A rule learner on an ESBN, step by step, that shares the encoder."""
    reasoner = model.get_layer("reasoner")
    esbn = reasoner.get_layer("esbn")
    images = keras.Input((9, 32, 32), dtype="uint8")
    plain = PlainESBN(
        model.get_layer("encoder").layer, esbn.units, esbn.key_dim
    )
    outputs = reasoner.get_layer("output")(plain(images))
    plain.take_weights(esbn)
    return keras.Model(images, outputs)


def own(weight):
    """A copy: on JAX, training gives away the arrays it is given."""
    return ops.convert_to_numpy(weight)


def plain_classifier(model):
    """The same model with Keras' own convolution, and the same weights."""

    def clone(layer):
        if layer.name == "encoder":
            config = layer.get_config()
            return keras.layers.Conv2D.from_config(config)
        return layer.__class__.from_config(layer.get_config())

    plain = keras.models.clone_model(model, clone_function=clone)
    plain.set_weights(model.get_weights())
    return plain


def plain_analogy_scorer(model):
    """The same layers, applied to one candidate after the other."""
    encoder = model.get_layer("encoder").layer
    scorer = model.get_layer("scorer")
    normalization, recurrent, score = map(
        scorer.get_layer, ("normalization", "recurrent", "score")
    )
    inputs = {
        name: keras.Input(x.shape[1:], dtype=x.dtype, name=name)
        for name, x in model.input.items()
    }

    def encoded(number):
        number = ops.reshape(number, (-1, 1, 1, 1, 1))
        image = ops.take_along_axis(inputs["images"], number, axis=1)
        return encoder(image[:, 0])

    scores = []
    for candidate in range(inputs["candidates"].shape[1]):
        terms = [inputs["context"][:, i] for i in range(3)]
        terms.append(inputs["candidates"][:, candidate])
        z = normalization(ops.stack(list(map(encoded, terms)), axis=1))
        scores.append(score(recurrent.layer(z)))
    return keras.Model(inputs, ops.concatenate(scores, axis=-1))


class PlainSCOFFCell(keras.layers.Layer):
    """SCOFF with GRUs, one head, file by file and schema by schema.

    In training it chooses without noise, which only saves it time.
    """

    def __init__(self, cell):
        super().__init__()
        # Out of Keras' sight, for which its weights would be this one's.
        self.given = types.SimpleNamespace(cell=cell)
        self.state_size = cell.state_size
        self.output_size = cell.output_size
        self.schemata = [
            keras.layers.GRUCell(cell.units) for _ in range(cell.num_schemata)
        ]

    def build(self, input_shape):
        cell = self.given.cell
        sizes = {
            name: getattr(cell, f"{name}_kernel").shape[1]
            for name in (
                *("query", "key", "value", "schema_query", "schema_key"),
                *("message_query", "message_key", "message_value"),
                "message_output",
            )
        }
        for name, size in sizes.items():
            dense = keras.layers.Dense(size, use_bias=False)
            kernel = getattr(cell, f"{name}_kernel")
            dense.build((None, kernel.shape[0]))
            dense.kernel.assign(own(kernel))
            setattr(self, name, dense)
        for j, schema in enumerate(self.schemata):
            schema.build((None, cell.num_heads * cell.value_dim))
            schema.set_weights(
                [
                    own(cell.kernel)[:, j],
                    own(cell.recurrent_kernel)[:, j],
                    own(cell.bias)[:, j],
                ]
            )

    def call(self, inputs, states, training=False):
        cell = self.given.cell
        files = ops.split(states[0], cell.num_object_files, axis=-1)
        key, value = self.key(inputs), self.value(inputs)
        logits = [
            ops.sum(self.query(h) * key, axis=-1) / cell.key_dim**0.5
            for h in files
        ]
        shares = ops.softmax(ops.stack(logits, axis=-1))
        new = [
            self.update(shares[:, k, None] * value, h)
            for k, h in enumerate(files)
        ]
        heads = cell.num_message_heads
        keys = [ops.split(self.message_key(h), heads, axis=-1) for h in new]
        values = [ops.split(self.message_value(h), heads, axis=-1) for h in new]
        outputs = []
        for h, updated in zip(files, new, strict=True):
            queries = ops.split(self.message_query(h), heads, axis=-1)
            read = []
            for head in range(heads):
                logits = [
                    ops.sum(queries[head] * k[head], axis=-1)
                    / cell.message_key_dim**0.5
                    for k in keys
                ]
                weights = ops.softmax(ops.stack(logits, axis=-1))
                read.append(
                    sum(
                        weights[:, k, None] * v[head]
                        for k, v in enumerate(values)
                    )
                )
            read = self.message_output(ops.concatenate(read, axis=-1))
            outputs.append(updated + read)
        outputs = ops.concatenate(outputs, axis=-1)
        return outputs, [outputs]

    def update(self, z, h):
        candidates = [schema(z, [h])[0] for schema in self.schemata]
        query = self.schema_query(h)
        logits = ops.stack(
            [ops.sum(query * self.schema_key(x), axis=-1) for x in candidates],
            axis=-1,
        )
        soft = ops.softmax(logits)
        hard = ops.one_hot(ops.argmax(logits, axis=-1), len(candidates))
        choice = hard + soft - ops.stop_gradient(soft)
        return sum(choice[:, j, None] * x for j, x in enumerate(candidates))

    def get_initial_state(self, batch_size=None):
        return self.given.cell.get_initial_state(batch_size)
