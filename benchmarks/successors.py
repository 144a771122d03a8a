"""CoRelNet, Abstractor and dual attention, beside plain Keras layers.

The plain ones are what a user would write with Keras' own layers: its
attention, sums, normalizations and dense layers, and einsums for relations.
Entities are their own symbols here. Where PyTorch and the authors' package
`dual-attention` are installed beside Keras, its block is timed too.
"""

import importlib.util

import keras
import numpy as np
from keras import ops

from benchmarks.measuring import compilers
from benchmarks.measuring import epoch_of
from benchmarks.measuring import interleaved
from benchmarks.measuring import layer_step
from benchmarks.measuring import own
from benchmarks.measuring import print_header
from benchmarks.measuring import report
from benchmarks.measuring import seconds_of
from keras_relational import layers
from keras_relational import training

FEATURES = 64


def main():
    for n, batch, steps in ((9, 64, 200), (64, 32, 40)):
        rng = np.random.default_rng(0)
        shape = (steps * batch, n, FEATURES)
        entities = rng.normal(size=shape).astype("float32")
        for name, layer, plain, flops in (
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
        ):
            title = f"{name}, n = {n}"
            layer_step(title, entities, layer, plain, flops, batch)
        if importlib.util.find_spec("dual_attention"):
            beside_the_package(entities, batch)


def dual_attention_flops(n):
    return 2 * n * (FEATURES * (32 * 8 + 2 * 64) + 2 * 32**2 + 160 * n)


def beside_the_package(entities, batch):
    """Steps of training with the block of `dual-attention` on PyTorch."""
    import torch
    from dual_attention.dual_attn_blocks import DualAttnEncoderBlock

    n, steps = entities.shape[1], len(entities) // batch
    theirs = DualAttnEncoderBlock(FEATURES, 2, 2, 64, "relu", 0.0, True)
    optimizer = torch.optim.SGD(theirs.parameters(), 1e-6)
    batches = torch.tensor(entities).split(batch)

    def epoch():
        for x in batches:
            optimizer.zero_grad()
            (theirs(x, x) ** 2).mean().backward()
            optimizer.step()

    for compiler, jit_compile in compilers().items():
        inputs = keras.Input(entities.shape[1:])
        ours = OwnSymbols(layers.DualAttentionBlock(2, 2, 64))(inputs)
        model = training.MinibatchModel(inputs, ours)
        model.compile(
            keras.optimizers.SGD(1e-6), "mse", jit_compile=jit_compile
        )
        targets = np.zeros_like(entities)
        model.evaluate(entities[:batch], targets[:batch], verbose=0)
        blocks = training.Minibatches(entities, targets, batch, steps)
        own_epoch = epoch_of(model, blocks, steps_per_epoch=1, shuffle=False)
        report(
            f"dual-attention on PyTorch, n = {n}, batch {batch}, {compiler}",
            *interleaved([seconds_of(epoch), own_epoch]),
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
    print_header()
    main()
