"""2-simplicial attention, beside the direct einsum: time and peak memory."""

import pathlib

import keras
import numpy as np
from keras import ops

from benchmarks import measuring
from benchmarks import processes
from benchmarks.measuring import own
from fuzz.memory import memory_of
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
            PlainTwoSimplicialAttention,
            simplicial_flops(n, v),
            batch,
            v,
        )
        report_peak_memory(n, v, batch)
    print("2-simplicial, N = 256, M = 256, batch 4")
    report_peak_memory(256, 256, 4)


def report_peak_memory(n, v, batch):
    theirs, ours = (
        processes.in_a_process(peak_memory, kind, n, v, batch)
        for kind in ("plain", "ours")
    )
    print(
        f"{'':4s}{'peak memory':46s}{theirs:6.0f} MiB{ours:6.0f} MiB"
        f"{theirs / ours:7.1f}",
        flush=True,
    )


def peak_memory(kind, n, v, batch):
    """MiB that compiling a step leaves, and a step takes (Linux)."""
    tested = layers.TwoSimplicialAttention(1, 48)
    if kind == "plain":
        tested.build((None, n, 64), (None, v, 64))
        tested = PlainTwoSimplicialAttention(tested)
    inputs = keras.Input((n, 64))
    model = keras.Model(inputs, tested(inputs, base=inputs[:, :v]))
    model.compile("sgd", "mse", jit_compile=True)
    x = np.zeros((batch, n, 64), "float32")
    y = np.zeros((batch, n, 48), "float32")
    model.train_on_batch(x[:1], y[:1])
    before = memory_of("self", "VmRSS")
    model.train_on_batch(x, y)
    # What compiling takes for a while is not counted, only what is kept.
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # Resets the peak.
    model.train_on_batch(x, y)
    return (memory_of("self", "VmHWM") - before) / 2**20


def simplicial_flops(n, v, m=64, d=48):
    projections = d * m * (n + 3 * v)
    logits = n * v * d * 2 + v * v * d
    weighted = n * v * v * d
    # B on all pairs of values, or on the outer product of each query.
    b = min(n, v) * d * d * (v + d)
    return 2 * (projections + logits + weighted + b)


class PlainTwoSimplicialAttention(keras.layers.Layer):
    """One head of 2-simplicial attention as a direct einsum."""

    def __init__(self, layer):
        super().__init__()
        names = "query", "key_1", "key_2", "value"
        self.denses = measuring.denses_of(layer, *names)
        self.product = keras.Variable(own(layer.product_kernel)[0])

    def call(self, inputs, base):
        p, u = self.denses["query"](inputs), self.denses["value"](base)
        l_1, l_2 = (self.denses[name](base) for name in ("key_1", "key_2"))
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
