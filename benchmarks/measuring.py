"""What the benchmarks share: seconds, memory, and how they are told."""

import concurrent.futures
import functools
import multiprocessing
import pathlib
import statistics
import time

import keras
import numpy as np
from keras import ops

from keras_relational import training


def print_header():
    """The machine's rate, and what the columns of `report` are."""
    print(
        f"Backend {keras.backend.backend()}; matrix products at "
        f"{matrix_product_rate() / 1e9:.0f} GFLOP/s"
    )
    print(f"{'':50s}{'plain':>10s}{'ours':>10s}{'ratio':>7s}{'of rate':>9s}")


def report(name, theirs, ours, flops):
    """Prints milliseconds of both, their ratio, and the share of the rate."""
    floor = flops / matrix_product_rate()
    print(
        f"{name:50s}{theirs * 1e3:7.2f} ms{ours * 1e3:7.2f} ms"
        f"{theirs / ours:7.1f}{floor / ours:9.0%}",
        flush=True,
    )


def layer_step(name, entities, layer, reference, flops, batch=10, base=0):
    """Forward and backward through one layer, in one loop of steps.

    With a `base` the layer attends to pairs of the first so many entities.
    """

    def outputs(tested, inputs):
        return tested(inputs, base=inputs[:, :base]) if base else tested(inputs)

    steps = len(entities) // batch
    shape = (batch, *entities.shape[1:])
    layer.build(shape, *([(batch, base, shape[-1])] if base else []))
    reference.build(shape)
    reference.take_weights(layer)
    first = ops.convert_to_tensor(entities[:batch])
    check_equal(outputs(layer, first), outputs(reference, first))
    targets = np.zeros(
        (len(entities), *outputs(layer, first).shape[1:]), "float32"
    )
    seconds = []
    for tested in (reference, layer):
        inputs = keras.Input(entities.shape[1:])
        model = training.MinibatchModel(inputs, outputs(tested, inputs))
        model.compile(keras.optimizers.SGD(1e-6), "mse", jit_compile=True)
        model.evaluate(entities[:batch], targets[:batch], verbose=0)
        blocks = training.Minibatches(entities, targets, batch, steps)
        epoch = median_epoch(model, blocks, steps_per_epoch=1, shuffle=False)
        seconds.append(epoch / steps)
    report(f"{name}, batch {batch}", *seconds, 3 * batch * flops)


def median_epoch(model, *data, epochs=6, **arguments):
    """Seconds an epoch of `fit` takes; the first, which compiles, is left out.

    The end of an epoch waits for its loss, hence for all its steps.
    """
    ends = []
    timer = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: ends.append(time.perf_counter())
    )
    arguments |= {"epochs": epochs, "callbacks": [timer], "verbose": 0}
    model.fit(*data, **arguments)
    return statistics.median(np.diff(ends))


def median_seconds(function, rounds=5):
    """Seconds a function takes. Its first call, which compiles, is left out."""
    return interleaved_seconds([function], rounds)[0]


def interleaved_seconds(functions, rounds=5):
    """The same for several functions, called in turn in every round.

    Other work on the machine then slows all of them down alike.
    """
    return [
        statistics.median(times)
        for times in interleaved_times(functions, rounds)
    ]


def interleaved_times(functions, rounds):
    """The seconds of every call, a sequence for each function."""
    for function in functions:
        function()
    found = [
        [_seconds(function) for function in functions] for _ in range(rounds)
    ]
    return list(zip(*found, strict=True))


def _seconds(function):
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


@functools.cache
def matrix_product_rate(size=2048):
    """FLOP/s of one large float32 product on this machine."""
    a = ops.convert_to_tensor(
        np.random.default_rng(0).normal(size=(size, size)), dtype="float32"
    )
    seconds = median_seconds(lambda: ops.convert_to_numpy(ops.matmul(a, a)))
    return 2 * size**3 / seconds


def check_equal(ours, theirs):
    np.testing.assert_allclose(
        ops.convert_to_numpy(ours), ops.convert_to_numpy(theirs), atol=1e-4
    )


def in_a_process(function, *arguments):
    with concurrent.futures.ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn")
    ) as pool:
        return pool.submit(function, *arguments).result()


def memory(name):
    """A line of Linux' account of this process, in MiB."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise KeyError(name)


def own(weight):
    """A copy: on JAX, training gives away the arrays it is given."""
    return ops.convert_to_numpy(weight)
