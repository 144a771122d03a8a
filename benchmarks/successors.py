"""The successors of the five mechanisms, beside plain Keras layers.

The plain ones are what a user would write with Keras' own layers: its
attention, sums, normalizations and dense layers, and einsums for relations.
Entities are their own symbols here. Where PyTorch and the authors' package
`dual-attention` are installed beside Keras, its block is timed too.
"""

import importlib.util
import itertools

import keras
import numpy as np
from keras import ops

from benchmarks import measuring
from benchmarks.measuring import own
from keras_relational import layers

FEATURES = 64


def main():
    for n, batch, steps in ((9, 64, 200), (64, 32, 40)):
        rng = np.random.default_rng(0)
        shape = (steps * batch, n, FEATURES)
        entities = rng.normal(size=shape).astype("float32")
        compared = [
            (
                "CoRelNet",
                layers.CoRelNet(),
                PlainCoRelNet(),
                2 * n * n * FEATURES,
            ),
            (
                "Abstractor",
                OwnSymbols(layers.Abstractor(4, 16, 64)),
                PlainAbstractor(),
                2 * n * FEATURES * (4 * 64 + 2 * n + 2 * 64),
            ),
            (
                "dual attention",
                OwnSymbols(layers.DualAttentionBlock(2, 2, 64)),
                PlainDualAttention(),
                dual_attention_flops(n),
            ),
            (
                "slot attention",
                layers.SlotAttention(5, 64, 128),
                PlainSlotAttention(),
                slot_attention_flops(n),
            ),
            (
                "shared workspace",
                Workspace(),
                PlainWorkspace(),
                workspace_flops(n),
            ),
            (
                "relational convolution",
                PatternsOfRelations(),
                PlainPatternsOfRelations(),
                2 * n * FEATURES * 256 + 2 * 84 * 9 * 16 * 16,
            ),
        ]
        if n > 9:  # 64 entities have 41,664 groups of three.
            del compared[-1]
        for name, layer, plain, flops in compared:
            title = f"{name}, n = {n}"
            measuring.layer_step(title, entities, layer, plain, flops, batch)
        if importlib.util.find_spec("dual_attention"):
            beside_the_package(entities, batch)


def dual_attention_flops(n):
    return 2 * n * (FEATURES * (32 * 8 + 2 * 64) + 2 * 32**2 + 160 * n)


def slot_attention_flops(n, slots=5, units=64, hidden=128):
    of_an_update = slots * units * (7 * units + 2 * n + 2 * hidden)
    return 2 * (2 * n * FEATURES * units + 3 * of_an_update)


def workspace_flops(n, rows=4, size=FEATURES):
    of_memory = rows * size * (7 * size + 4 * n)
    return 2 * (of_memory + size**2 * (3 * n + 2))


def beside_the_package(entities, batch):
    """Steps of training with the block of `dual-attention` on PyTorch."""
    import torch
    from dual_attention.dual_attn_blocks import DualAttnEncoderBlock

    n, steps = entities.shape[1], len(entities) // batch
    theirs = DualAttnEncoderBlock(FEATURES, 2, 2, 64, "relu", 0.0, True)
    optimizer = torch.optim.SGD(theirs.parameters(), 1e-6)
    batches = torch.tensor(entities).split(batch)

    epoch = measuring.torch_epoch(
        optimizer, lambda x: (theirs(x, x) ** 2).mean(), batches
    )
    targets = np.zeros_like(entities)
    for compiler, jit_compile in measuring.compilers().items():
        ours = OwnSymbols(layers.DualAttentionBlock(2, 2, 64))
        own_epoch = measuring.layer_epoch(
            ours, entities, targets, batch, jit_compile
        )
        measuring.report(
            f"dual-attention on PyTorch, n = {n}, batch {batch}, {compiler}",
            [measuring.seconds_of(epoch), own_epoch],
            3 * batch * dual_attention_flops(n),
            steps,
        )


class OwnSymbols(keras.layers.Layer):
    """A layer whose entities are their own symbols."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def build(self, shape):
        self.layer.build(shape, shape)

    def call(self, inputs):
        return self.layer(inputs, inputs)


class PlainCoRelNet(keras.layers.Layer):
    """The lower triangle of a softmax, entry by entry."""

    def call(self, inputs):
        n = inputs.shape[1]
        products = ops.einsum("bim,bjm->bij", inputs, inputs)
        lower = np.tri(n, dtype=bool)
        scores = ops.softmax(ops.where(lower, products, -1e30))
        return ops.stack(
            [scores[:, i, j] for i, j in np.argwhere(lower)], axis=1
        )

    def take_weights(self, layer):
        pass


class PlainAbstractor(keras.layers.Layer):
    """Keras' attention to symbols, sums, normalizations and dense layers."""

    def __init__(self):
        super().__init__()
        self.attention = keras.layers.MultiHeadAttention(4, 16, use_bias=False)
        self.hidden = keras.layers.Dense(64, "relu")
        self.update = keras.layers.Dense(FEATURES)
        self.normalizations = [keras.layers.LayerNormalization() for _ in "ab"]

    def build(self, shape):
        self.attention.build(shape, shape, shape)
        for layer in (self.hidden, self.update, *self.normalizations):
            layer.build(shape)

    def call(self, inputs):
        first, second = self.normalizations
        x = first(inputs + self.attention(inputs, inputs, inputs))
        return second(x + self.update(self.hidden(x)))

    def take_weights(self, layer):
        ours = layer.layer
        take_attention(self.attention, ours.attentions[0])
        self.hidden.set_weights(ours.hidden[0].get_weights())
        self.update.set_weights(ours.update[0].get_weights())


class PlainDualAttention(keras.layers.Layer):
    """Keras' attention, and the equation of relational heads as einsums."""

    def __init__(self):
        super().__init__()
        self.attention = keras.layers.MultiHeadAttention(
            2, 16, use_bias=False, output_shape=32
        )
        self.kernels = {
            name: keras.layers.Dense(32, use_bias=False)
            for name in (
                *("query", "key", "relation_query", "relation_key"),
                *("value", "output"),
            )
        }
        self.hidden = keras.layers.Dense(64, "relu")
        self.update = keras.layers.Dense(FEATURES)
        self.normalizations = [
            keras.layers.LayerNormalization(epsilon=1e-5) for _ in "ab"
        ]

    def build(self, shape):
        self.attention.build(shape, shape, shape)
        for name, layer in self.kernels.items():
            layer.build((*shape[:2], 32) if name == "output" else shape)
        for layer in (self.hidden, self.update, *self.normalizations):
            layer.build(shape)
        self.relation = self.add_weight(name="relation", shape=(2, 2, 16))

    def relational(self, x, symbols):
        def heads(name, x):
            return ops.reshape(self.kernels[name](x), (-1, x.shape[1], 2, 16))

        scores = ops.einsum(
            "bihd,bjhd->bhij", heads("query", x), heads("key", x)
        )
        scores = ops.softmax(scores / 4)
        relations = ops.einsum(
            "bird,bjrd->bijr",
            heads("relation_query", x),
            heads("relation_key", x),
        )
        attended = ops.einsum("bhij,bijr->bihr", scores, relations / 4)
        attended = ops.einsum("bihr,rhd->bihd", attended, self.relation)
        values = heads("value", symbols)
        attended = attended + ops.einsum("bhij,bjhd->bihd", scores, values)
        attended = ops.reshape(attended, (-1, x.shape[1], 32))
        return self.kernels["output"](attended)

    def call(self, inputs):
        first, second = self.normalizations
        x = first(inputs)
        sensory = self.attention(x, x)
        change = ops.concatenate([sensory, self.relational(x, inputs)], -1)
        x = inputs + change
        return x + self.update(self.hidden(second(x)))

    def take_weights(self, layer):
        ours = layer.layer
        take_attention(self.attention, ours.dual_attention)
        relational = ours.dual_attention.relational_attention
        for name, dense in self.kernels.items():
            dense.kernel.assign(own(getattr(relational, f"{name}_kernel")))
        kernel = own(relational.relation_kernel)
        self.relation.assign(kernel.reshape(2, 2, 16))
        self.hidden.set_weights(ours.hidden.get_weights())
        self.update.set_weights(ours.update.get_weights())


class PlainSlotAttention(keras.layers.Layer):
    """Keras' dense layers, GRU and normalizations, with einsums between."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (
            keras.layers.Dense(64, use_bias=False) for _ in range(3)
        )
        self.gru = keras.layers.GRUCell(64)
        self.hidden = keras.layers.Dense(128, "relu")
        self.update = keras.layers.Dense(64)
        self.normalizations = [keras.layers.LayerNormalization() for _ in "abc"]

    def build(self, shape):
        slots = (None, 5, 64)
        for layer, its_shape in (
            *((self.query, slots), (self.key, shape), (self.value, shape)),
            *((self.gru, (None, 64)), (self.hidden, slots)),
            (self.update, (None, 5, 128)),
            *zip(self.normalizations, (shape, slots, slots), strict=True),
        ):
            layer.build(its_shape)
        self.mean = self.add_weight((1, 64), name="mean")
        self.log_scale = self.add_weight((1, 64), name="log_scale")

    def call(self, inputs, training=False):
        of_inputs, of_queries, of_updates = self.normalizations
        batch = ops.shape(inputs)[0]
        shape = (batch, 5, 64)
        if training:
            noise = keras.random.normal(shape)
        else:
            noise = np.random.default_rng(0).standard_normal((5, 64), "float32")
        slots = self.mean + ops.exp(self.log_scale) * noise
        slots = ops.broadcast_to(slots, shape)
        x = of_inputs(inputs)
        keys, values = self.key(x), self.value(x)
        for _ in range(3):
            queries = self.query(of_queries(slots)) / 8
            logits = ops.einsum("bnd,bkd->bnk", keys, queries)
            weights = ops.softmax(logits) + 1e-8
            weights = weights / ops.sum(weights, axis=1, keepdims=True)
            read = ops.einsum("bnk,bnd->bkd", weights, values)
            slots, _ = self.gru(
                ops.reshape(read, (-1, 64)), [ops.reshape(slots, (-1, 64))]
            )
            slots = ops.reshape(slots, shape)
            slots = slots + self.update(self.hidden(of_updates(slots)))
        return slots

    def take_weights(self, layer):
        self.mean.assign(own(layer.initial_mean))
        self.log_scale.assign(own(layer.initial_log_scale))
        for name in ("query", "key", "value"):
            kernel = own(getattr(layer, f"{name}_kernel"))
            getattr(self, name).kernel.assign(kernel)
        for name in ("gru", "hidden", "update"):
            getattr(self, name).set_weights(getattr(layer, name).get_weights())


class Workspace(keras.layers.Layer):
    """Slots that speak through a memory of four rows."""

    def __init__(self):
        super().__init__()
        self.memory = layers.VirtualEntities(4)
        self.workspace = layers.SharedWorkspace(4)

    def build(self, shape):
        self.memory.build(shape)
        self.workspace.build(shape, (None, 4, FEATURES))

    def call(self, inputs):
        slots, _ = self.workspace(inputs, self.memory(inputs))
        return slots


class PlainWorkspace(keras.layers.Layer):
    """Keras' dense layers and normalizations, with einsums between."""

    def __init__(self):
        super().__init__()
        self.denses = {
            name: keras.layers.Dense(units, use_bias=name == "memory_gates")
            for name, units in (
                *(("write_query", 64), ("write_key", 64), ("write_value", 64)),
                *(("read_query", 64), ("read_key", 64), ("read_value", 64)),
                *(("slots_gates", 128), ("memory_gates", 128)),
            )
        }
        self.hidden = keras.layers.Dense(64, "relu")
        self.update = keras.layers.Dense(64)
        self.normalizations = [keras.layers.LayerNormalization() for _ in "ab"]

    def build(self, shape):
        for layer in (
            *self.denses.values(),
            *(self.hidden, self.update, *self.normalizations),
        ):
            layer.build(shape)
        self.memory = self.add_weight((4, FEATURES), name="memory")
        self.scale = self.add_weight((1, FEATURES), name="scale")

    def attended(self, name, queries_of, keys_of):
        queries, keys, values = (
            ops.reshape(
                self.denses[f"{name}_{part}"](x), (-1, x.shape[1], 4, 16)
            )
            for part, x in (
                ("query", queries_of),
                ("key", keys_of),
                ("value", keys_of),
            )
        )
        scores = ops.softmax(
            ops.einsum("bihd,bjhd->bhij", queries, keys) / 4, axis=-1
        )
        attended = ops.einsum("bhij,bjhd->bihd", scores, values)
        return ops.reshape(attended, (-1, queries_of.shape[1], FEATURES))

    def call(self, inputs):
        first, second = self.normalizations
        shape = ops.shape(inputs)[0], 4, FEATURES
        memory = ops.broadcast_to(self.memory, shape)
        new = first(memory + self.attended("write", memory, inputs))
        new = second(new + self.update(self.hidden(new)))
        told = ops.mean(ops.relu(inputs * self.scale), axis=1, keepdims=True)
        gates = self.denses["slots_gates"](told)
        gates = gates + self.denses["memory_gates"](ops.tanh(memory))
        i, f = ops.split(gates, 2, axis=-1)
        memory = ops.sigmoid(i) * ops.tanh(new) + ops.sigmoid(f + 1) * memory
        return inputs + self.attended("read", inputs, memory)

    def take_weights(self, layer):
        workspace = layer.workspace
        self.memory.assign(own(layer.memory.weights[0]))
        self.scale.assign(own(workspace.slots_scale))
        for name, dense in self.denses.items():
            dense.kernel.assign(own(getattr(workspace, f"{name}_kernel")))
        self.denses["memory_gates"].bias.assign(own(workspace.gates_bias))
        self.hidden.set_weights(workspace.hidden.get_weights())
        self.update.set_weights(workspace.update.get_weights())


class PatternsOfRelations(keras.layers.Layer):
    """16 relations, and 16 patterns in groups of three."""

    def __init__(self):
        super().__init__()
        self.relations = layers.InnerProductRelations(16, 8)
        self.convolution = layers.RelationalConvolution(16, 3)

    def build(self, shape):
        self.relations.build(shape)
        self.convolution.build(self.relations.compute_output_shape(shape))

    def call(self, inputs):
        return self.convolution(self.relations(inputs))


class PlainPatternsOfRelations(keras.layers.Layer):
    """A dense layer for each attribute, and one group after the other."""

    def __init__(self):
        super().__init__()
        self.attributes = [
            [keras.layers.Dense(8, use_bias=False) for _ in range(16)]
            for _ in range(2)
        ]
        self.patterns = keras.layers.Dense(16, use_bias=False)

    def build(self, shape):
        for dense in itertools.chain(*self.attributes):
            dense.build(shape)
        self.patterns.build((None, 9 * 16))

    def call(self, inputs):
        relations = ops.stack(
            [
                ops.einsum("bmd,bnd->bmn", left(inputs), right(inputs))
                for left, right in zip(*self.attributes, strict=True)
            ],
            axis=-1,
        )
        outputs = []
        for group in itertools.combinations(range(inputs.shape[1]), 3):
            table = ops.take(relations, group, axis=1)
            table = ops.take(table, group, axis=2)
            table = ops.reshape(table, (-1, 9 * 16))
            outputs.append(self.patterns(table))
        return ops.stack(outputs, axis=1)

    def take_weights(self, layer):
        kernels = layer.relations.query_kernel, layer.relations.key_kernel
        for denses, kernel in zip(self.attributes, kernels, strict=True):
            parts = np.split(own(kernel), 16, axis=1)
            for dense, part in zip(denses, parts, strict=True):
                dense.kernel.assign(part)
        kernel = own(layer.convolution.kernel)
        self.patterns.kernel.assign(kernel.reshape(9 * 16, 16))


def take_attention(attention, layer):
    """Gives Keras' attention the kernels of one of ours."""
    kernels = [
        own(getattr(layer, f"{name}_kernel"))
        for name in ("query", "key", "value", "output")
    ]
    shapes = [weight.shape for weight in attention.weights]
    attention.set_weights(
        [x.reshape(shape) for x, shape in zip(kernels, shapes, strict=True)]
    )


if __name__ == "__main__":
    measuring.print_header()
    main()
