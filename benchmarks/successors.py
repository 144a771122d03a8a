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
from benchmarks.measuring import copied
from benchmarks.measuring import dense
from benchmarks.measuring import denses_by_head
from benchmarks.measuring import denses_of
from benchmarks.measuring import own
from keras_relational import layers

FEATURES = 64


def main():
    for n, batch, steps in ((9, 64, 200), (64, 32, 40)):
        rng = np.random.default_rng(0)
        shape = (steps * batch, n, FEATURES)
        entities = rng.normal(size=shape).astype("float32")
        for name, compared in {
            "CoRelNet": (layers.CoRelNet(), PlainCoRelNet, 2 * n**2 * FEATURES),
            "Abstractor": (
                OwnSymbols(layers.Abstractor(4, 16, 64)),
                PlainAbstractor,
                2 * n * FEATURES * (4 * 64 + 2 * n + 2 * 64),
            ),
            "dual attention": (
                OwnSymbols(layers.DualAttentionBlock(2, 2, 64)),
                PlainDualAttention,
                dual_attention_flops(n),
            ),
            "slot attention": (
                layers.SlotAttention(5, 64, 128),
                PlainSlotAttention,
                slot_attention_flops(n),
            ),
            "shared workspace": (
                Workspace(),
                PlainWorkspace,
                workspace_flops(n),
            ),
            "relational convolution": (
                patterns_of_relations(),
                PlainPatternsOfRelations,
                2 * n * FEATURES * 256 + 2 * 84 * 9 * 16 * 16,
            ),
        }.items():
            # 64 entities have 41,664 groups of three.
            if n == 9 or name != "relational convolution":
                title = f"{name}, n = {n}"
                measuring.layer_step(title, entities, *compared, batch)
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

    def __init__(self, layer):
        super().__init__()

    def call(self, inputs):
        n = inputs.shape[1]
        products = ops.einsum("bim,bjm->bij", inputs, inputs)
        lower = np.tri(n, dtype=bool)
        scores = ops.softmax(ops.where(lower, products, -1e30))
        return ops.stack(
            [scores[:, i, j] for i, j in np.argwhere(lower)], axis=1
        )


class PlainAbstractor(keras.layers.Layer):
    """Keras' attention to symbols, sums, normalizations and dense layers."""

    def __init__(self, layer):
        super().__init__()
        ours = layer.layer
        self.attention = keras_attention(ours.attentions[0])
        self.hidden = copied(ours.hidden[0])
        self.update = copied(ours.update[0])
        self.normalizations = [copied(x) for x in ours.normalizations]

    def call(self, inputs):
        first, second = self.normalizations
        x = first(inputs + self.attention(inputs, inputs, inputs))
        return second(x + self.update(self.hidden(x)))


class PlainDualAttention(keras.layers.Layer):
    """Keras' attention, and the equation of relational heads as einsums."""

    def __init__(self, layer):
        super().__init__()
        ours = layer.layer
        self.attention = keras_attention(ours.dual_attention)
        relational = ours.dual_attention.relational_attention
        self.denses = denses_of(
            relational,
            *("query", "key", "relation_query", "relation_key"),
            *("value", "output"),
        )
        kernel = own(relational.relation_kernel)
        self.relation = keras.Variable(kernel.reshape(2, 2, 16))
        self.hidden, self.update = copied(ours.hidden), copied(ours.update)
        self.normalizations = [copied(x) for x in ours.normalizations.values()]

    def relational(self, x, symbols):
        def heads(name, x):
            return ops.reshape(self.denses[name](x), (-1, x.shape[1], 2, 16))

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
        return self.denses["output"](attended)

    def call(self, inputs):
        first, second = self.normalizations
        x = first(inputs)
        sensory = self.attention(x, x)
        change = ops.concatenate([sensory, self.relational(x, inputs)], -1)
        x = inputs + change
        return x + self.update(self.hidden(second(x)))


class PlainSlotAttention(keras.layers.Layer):
    """Keras' dense layers, GRU and normalizations, with einsums between."""

    def __init__(self, layer):
        super().__init__()
        self.denses = denses_of(layer, "query", "key", "value")
        self.gru, self.hidden, self.update = (
            copied(x) for x in (layer.gru, layer.hidden, layer.update)
        )
        self.normalizations = [
            copied(getattr(layer, f"{name}_normalization"))
            for name in ("input", "query", "update")
        ]
        self.mean = keras.Variable(own(layer.initial_mean))
        self.log_scale = keras.Variable(own(layer.initial_log_scale))
        self.seeds = keras.random.SeedGenerator(0)

    def call(self, inputs, training=False):
        of_inputs, of_queries, of_updates = self.normalizations
        batch = ops.shape(inputs)[0]
        shape = (batch, 5, 64)
        if training:
            noise = keras.random.normal(shape, seed=self.seeds)
        else:
            noise = np.random.default_rng(0).standard_normal((5, 64), "float32")
        slots = self.mean + ops.exp(self.log_scale) * noise
        slots = ops.broadcast_to(slots, shape)
        x = of_inputs(inputs)
        keys, values = self.denses["key"](x), self.denses["value"](x)
        for _ in range(3):
            queries = self.denses["query"](of_queries(slots)) / 8
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

    def __init__(self, layer):
        super().__init__()
        ours = layer.workspace
        self.denses = denses_of(
            ours,
            *("write_query", "write_key", "write_value"),
            *("read_query", "read_key", "read_value", "slots_gates"),
        )
        self.memory_gates = dense(ours.memory_gates_kernel, ours.gates_bias)
        self.hidden, self.update, *self.normalizations = (
            copied(x)
            for x in (
                *(ours.hidden, ours.update),
                *(ours.written_normalization, ours.update_normalization),
            )
        )
        self.memory = keras.Variable(own(layer.memory.weights[0]))
        self.scale = keras.Variable(own(ours.slots_scale))

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
        gates = gates + self.memory_gates(ops.tanh(memory))
        i, f = ops.split(gates, 2, axis=-1)
        memory = ops.sigmoid(i) * ops.tanh(new) + ops.sigmoid(f + 1) * memory
        return inputs + self.attended("read", inputs, memory)


def patterns_of_relations():
    """16 relations, and 16 patterns in groups of three."""
    relations = layers.InnerProductRelations(16, 8)
    return keras.Sequential([relations, layers.RelationalConvolution(16, 3)])


class PlainPatternsOfRelations(keras.layers.Layer):
    """A dense layer for each attribute, and one group after the other."""

    def __init__(self, layer):
        super().__init__()
        relations, convolution = layer.layers
        self.attributes = [
            denses_by_head(kernel, 16)
            for kernel in (relations.query_kernel, relations.key_kernel)
        ]
        self.patterns = dense(own(convolution.kernel).reshape(-1, 16))

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


def keras_attention(layer):
    """Keras' attention with the kernels of one of ours."""
    attention = keras.layers.MultiHeadAttention(
        *(layer.num_heads, 16),
        use_bias=False,
        output_shape=layer.output_kernel.shape[-1],
    )
    shape = (None, None, FEATURES)
    attention.build(shape, shape, shape)
    kernels = [
        own(getattr(layer, f"{name}_kernel"))
        for name in ("query", "key", "value", "output")
    ]
    shapes = [weight.shape for weight in attention.weights]
    attention.set_weights(
        [x.reshape(shape) for x, shape in zip(kernels, shapes, strict=True)]
    )
    return attention
