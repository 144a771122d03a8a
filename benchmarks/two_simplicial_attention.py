"""2-simplicial attention, beside the direct einsum: time and peak memory."""

import pathlib

import keras
import numpy as np
from keras import ops

from benchmarks import measuring
from benchmarks.measuring import own
from keras_relational import layers


def main():
    # Enough steps that the beginning and the end of an epoch do not count.
    for n, v, batch, steps in (
        (7, 7, 64, 100),
        (40, 2, 1280, 10),
        (256, 2, 4, 300),
        (256, 8, 4, 200),
        (256, 32, 4, 50),
        (256, 64, 4, 10),
    ):
        rng = np.random.default_rng(0)
        entities = rng.normal(size=(steps * batch, n, 64)).astype("float32")
        measuring.layer_step(
            f"2-simplicial, N = {n}, M = {v}",
            entities,
            layers.TwoSimplicialAttention(1, 48),
            PlainTwoSimplicialAttention(48),
            simplicial_flops(n, v),
            batch,
            v,
        )
        report_peak_memory(n, v, batch)
    print("2-simplicial, N = 256, M = 256, batch 4")
    report_peak_memory(256, 256, 4)


def report_peak_memory(n, v, batch):
    theirs, ours = (
        peak_memory(kind, n, v, batch) for kind in ("plain", "ours")
    )
    print(
        f"{'':4s}{'peak memory':46s}{theirs:6.0f} MiB{ours:6.0f} MiB"
        f"{theirs / ours:7.1f}",
        flush=True,
    )


def peak_memory(kind, n, v, batch):
    """MiB that compiling a step leaves, and a step takes (Linux)."""
    return measuring.in_a_process(_added_memory, kind, n, v, batch)


def _added_memory(kind, n, v, batch):
    tested = layers.TwoSimplicialAttention(1, 48)
    if kind == "plain":
        tested = PlainTwoSimplicialAttention(48)
    inputs = keras.Input((n, 64))
    model = keras.Model(inputs, tested(inputs, base=inputs[:, :v]))
    model.compile("sgd", "mse", jit_compile=True)
    x = np.zeros((batch, n, 64), "float32")
    y = np.zeros((batch, n, 48), "float32")
    model.train_on_batch(x[:1], y[:1])
    before = measuring.memory("VmRSS")
    model.train_on_batch(x, y)
    # What compiling takes for a while is not counted, only what is kept.
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # Resets the peak.
    model.train_on_batch(x, y)
    return measuring.memory("VmHWM") - before


def simplicial_flops(n, v, m=64, d=48):
    projections = d * m * (n + 3 * v)
    logits = n * v * d * 2 + v * v * d
    weighted = n * v * v * d
    # B on all pairs of values, or on the outer product of each query.
    b = min(n, v) * d * d * (v + d)
    return 2 * (projections + logits + weighted + b)


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


if __name__ == "__main__":
    measuring.print_header()
    main()
