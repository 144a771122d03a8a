"""What the benchmarks share: seconds, memory, and how they are told."""

import functools
import statistics
import time

import keras
import numpy as np
from keras import ops

from keras_relational import training
from keras_relational.layers._strided_convolution import StridedConv2D

ROUNDS = 5


def print_header():
    """The machine's rate, and what the columns of `report` are."""
    print(
        f"Backend {keras.backend.backend()}; matrix products at "
        f"{matrix_product_rate() / 1e9:.0f} GFLOP/s. Medians of {ROUNDS} "
        "rounds or more, and half of their range"
    )
    print(f"{'':50s}{'plain':>10s}{'ours':>16s}{'ratio':>12s}{'of rate':>9s}")


def report(name, timed, flops, steps=1, rounds=ROUNDS):
    """Times functions in turn, and returns the seconds of each one's rounds.

    Prints milliseconds of a step of the first, plain one and of the second,
    ours, their ratio, and the rate's share. `flops` are the operations of a
    step, of which a round has `steps`.
    """
    found = interleaved(timed, rounds)
    medians = [statistics.median(times) / steps for times in found[:2]]
    spreads = [
        (max(times) - min(times)) / (2 * statistics.median(times))
        for times in found[:2]
    ]
    columns = "".join(
        f"{median * 1e3:7.2f} ms ±{spread:4.0%}"
        for median, spread in zip(medians, spreads, strict=True)
    )
    floor = flops / matrix_product_rate()
    print(
        f"{name:50s}{columns}{medians[0] / medians[1]:7.1f}"
        f"{floor / medians[1]:9.0%}",
        flush=True,
    )
    return found


def compilers():
    """The ways to compile a model: the `jit_compile` of each, by name."""
    if keras.backend.backend() == "tensorflow":
        return {"XLA": True, "graph": False}
    return {"XLA": True}


def layer_step(name, entities, layer, plain, flops, batch=10, base=0):
    """Forward and backward through one layer, in one loop of steps.

    `plain` makes a reference from our layer, built. With a `base` the layer
    attends to pairs of the first so many entities.
    """

    def outputs(tested, inputs):
        return tested(inputs, base=inputs[:, :base]) if base else tested(inputs)

    steps = len(entities) // batch
    shape = (batch, *entities.shape[1:])
    layer.build(shape, *([(batch, base, shape[-1])] if base else []))
    reference = plain(layer)
    first = ops.convert_to_tensor(entities[:batch])
    check_equal(outputs(layer, first), outputs(reference, first))
    targets = np.zeros(
        (len(entities), *outputs(layer, first).shape[1:]), "float32"
    )
    for compiler, jit_compile in compilers().items():
        epochs = [
            layer_epoch(
                functools.partial(outputs, tested),
                *(entities, targets, batch, jit_compile),
            )
            for tested in (reference, layer)
        ]
        title = f"{name}, batch {batch}, {compiler}"
        report(title, epochs, 3 * batch * flops, steps)


def layer_epoch(layer, entities, targets, batch, jit_compile):
    """A function that trains a layer for an epoch and returns its seconds."""
    inputs = keras.Input(entities.shape[1:])
    model = training.minibatches.MinibatchModel(inputs, layer(inputs))
    model.compile(keras.optimizers.SGD(1e-6), "mse", jit_compile=jit_compile)
    model.evaluate(entities[:batch], targets[:batch], verbose=0)
    steps = len(entities) // batch
    # On TensorFlow each `fit` keeps what was made ahead: here empty blocks.
    blocks = training.Minibatches(
        entities, targets, batch, steps, final_batch=steps
    )
    return epoch_of(model, blocks, steps_per_epoch=1, shuffle=False)


def epoch_of(model, *data, **arguments):
    """A function that trains a model for an epoch and returns its seconds.

    The end of an epoch waits for its loss, hence for all its steps.
    """
    times = []
    timer = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: times.append(time.perf_counter()),
        on_epoch_end=lambda epoch, logs: times.append(time.perf_counter()),
    )

    def epoch():
        times.clear()
        model.fit(*data, verbose=0, callbacks=[timer], **arguments)
        begun, ended = times
        return ended - begun

    return epoch


def torch_epoch(optimizer, loss, *batches):
    """A function that trains a PyTorch program for an epoch of batches."""

    def epoch():
        for batch in zip(*batches, strict=True):
            optimizer.zero_grad()
            loss(*batch).backward()
            optimizer.step()

    return epoch


def give_to_torch(module, *arrays):
    """Gives a PyTorch module its parameters, in the module's own order.

    An LSTM takes two kernels, each with the outputs first, and two biases.
    """
    import torch

    for parameter, array in zip(module.parameters(), arrays, strict=True):
        parameter.data = torch.tensor(np.ascontiguousarray(array))


def seconds_of(function):
    """A function that calls another one and returns its seconds."""

    def timed():
        started = time.perf_counter()
        function()
        return time.perf_counter() - started

    return timed


def interleaved(timed, rounds=ROUNDS):
    """Calls functions in turn: the seconds of each one's rounds.

    Other work then slows all of them alike. First calls compile: left out.
    """
    for function in timed:
        function()
    found = [[function() for function in timed] for _ in range(rounds)]
    return list(zip(*found, strict=True))


def median_seconds(function):
    """Seconds a function takes. Its first call, which compiles, is left out."""
    (times,) = interleaved([seconds_of(function)])
    return statistics.median(times)


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


def dense(kernel, bias=None, activation=None):
    """Keras' dense layer with these weights."""
    layer = keras.layers.Dense(
        kernel.shape[1], activation, use_bias=bias is not None
    )
    layer.build((None, kernel.shape[0]))
    layer.set_weights([own(x) for x in (kernel, bias) if x is not None])
    return layer


def denses_of(layer, *names):
    """A dense layer for each of the layer's kernels of these names."""
    return {name: dense(getattr(layer, f"{name}_kernel")) for name in names}


def denses_by_head(kernel, number):
    """A dense layer for each of so many parts of a kernel."""
    return [dense(part) for part in ops.split(kernel, number, axis=1)]


def copied(layer):
    """The same layer of Keras, with weights of its own."""
    config = {
        name: value
        for name, value in layer.get_config().items()
        if not name.endswith("_initializer")
    }
    copy = type(layer).from_config(config)
    copy.build_from_config(layer.get_build_config())
    copy.set_weights(layer.get_weights())
    return copy


def with_plain_convolutions(model):
    """The same model with Keras' own convolutions, and the same weights."""

    def clone(layer):
        kind, config = type(layer), layer.get_config()
        if kind is StridedConv2D:
            kind = keras.layers.Conv2D
            del config["in_inference"]  # Keras' own has no such argument.
        return kind.from_config(config)

    plain = keras.models.clone_model(model, clone_function=clone)
    plain.set_weights(model.get_weights())
    return plain


def own(weight):
    """A copy: on JAX, training gives away the arrays it is given."""
    return ops.convert_to_numpy(weight)
