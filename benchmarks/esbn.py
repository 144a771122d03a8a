"""Rule learners on an ESBN, and its fused recurrence beside the plain steps."""

import functools
import importlib.util
import statistics
from unittest import mock

import keras
import numpy as np
from keras import ops

from benchmarks import measuring
from benchmarks.measuring import own
from keras_relational import models
from keras_relational.datasets import distribution_of_three
from keras_relational.layers.memory import esbn
from keras_relational.training import predictions


def main():
    """The rule learner on images, then the recurrence on vectors."""
    rule_learners()
    for compiler, jit_compile in measuring.compilers().items():
        recurrences(compiler, jit_compile)


def rule_learners():
    """ESBN, multiple choice on images, batch 32: training and inference."""
    fillers = distribution_of_three.glyphs()
    problems, _ = distribution_of_three.load_data(0, num_train=3_200)
    model = models.rule_learner(models.filler_autoencoder())
    reference = plain_rule_learner(model)
    known = models.over_fillers(model, fillers)
    images = fillers[problems.fillers]
    measuring.check_equal(model(images[:32]), reference(images[:32]))
    measuring.check_equal(model(images[:32]), known(problems.fillers[:32]))
    learners = (
        (reference, images),
        (model, images),
        (known, problems.fillers),
    )
    flops = 32 * rule_flops()
    for compiler, jit_compile in measuring.compilers().items():
        for learner, _ in learners:
            learner.compile(
                keras.optimizers.Adam(1e-9),
                keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                jit_compile=jit_compile,
            )
        training = [
            measuring.epoch_of(learner, x, problems.labels, batch_size=32)
            for learner, x in learners
        ]
        inference = [
            measuring.seconds_of(functools.partial(predictions, learner, x, 32))
            for learner, x in learners
        ]
        for what, timed, floor in (
            ("training", training, 3 * flops),
            ("inference", inference, flops),
        ):
            name = f"ESBN {what}, step by step, batch 32, {compiler}"
            times = measuring.report(name, timed, floor, steps=100)
            ours, with_known = map(statistics.median, times[1:])
            print(
                f"    fillers known: {with_known * 10:.1f} ms; "
                f"{3_200 / ours:,.0f} and {3_200 / with_known:,.0f} problems "
                "a second"
            )


def rule_flops(time=9, units=512, key_dim=256):
    convolutions = sum(
        size**2 * 16 * channels * 32
        for size, channels in ((16, 1), (8, 32), (4, 32))
    )
    encoder = time * (convolutions + 512 * 256 + 256 * 128)
    lstm = (time + 1) * 4 * units * (units + key_dim)
    return 2 * (encoder + lstm + time * units * (key_dim + 1))


def recurrences(compiler, jit_compile, batch=32, steps=10, rounds=9):
    """`esbn_recurrence` beside `esbn_steps`: an ESBN on 9 vectors of 128."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(batch * steps, 9, 128)).astype("float32")
    targets = rng.normal(size=(batch * steps, 512)).astype("float32")
    layer_models = []
    for recurrence in (esbn.esbn_steps, esbn.esbn_recurrence):
        inputs = keras.Input(values.shape[1:])
        layer = esbn.ESBN(512, 256)
        model = keras.Model(inputs, layer(inputs))
        model.compile(
            keras.optimizers.Adam(1e-9), "mse", jit_compile=jit_compile
        )
        layer_models.append((recurrence, model))
    layer_models[1][1].set_weights(layer_models[0][1].get_weights())

    def patched(function, recurrence, model):
        with mock.patch.object(esbn, "esbn_recurrence", recurrence):
            return function(model)

    measuring.check_equal(
        *(
            patched(lambda model: model(values[:batch]), *pair)
            for pair in layer_models
        )
    )

    def train(model):
        model.fit(values, targets, batch, verbose=0, shuffle=False)

    def predict(model):
        return predictions(model, values, batch)

    flops = 2 * batch * (10 * 4 * 512 * (512 + 256) + 9 * 512 * 257)
    for what, function, floor in (
        ("training", train, 3 * flops),
        ("inference", predict, flops),
    ):
        timed = [
            measuring.seconds_of(functools.partial(patched, function, *pair))
            for pair in layer_models
        ]
        name = f"ESBN recurrence, {what}, {compiler}"
        measuring.report(name, timed, floor, steps, rounds)
    if importlib.util.find_spec("torch"):
        _, model = layer_models[1]
        theirs = torch_training(model, values, targets, batch)
        timed = [
            measuring.seconds_of(theirs),
            measuring.seconds_of(lambda: train(model)),
        ]
        name = f"ESBN recurrence, training, PyTorch, {compiler}"
        measuring.report(name, timed, 3 * flops, steps, rounds)


class PlainESBN(keras.layers.Layer):
    """An ESBN on images, which it encodes in turn; its memory are lists."""

    def __init__(self, encoder, layer):
        super().__init__()
        self.encoder = encoder
        self.cell = keras.layers.LSTMCell(layer.units)
        self.cell.build((None, layer.key_dim))
        self.cell.set_weights(
            [own(layer.kernel), own(layer.recurrent_kernel), own(layer.bias)]
        )
        kernels = ops.split(layer.write_kernel, [layer.key_dim], axis=1)
        biases = ops.split(layer.write_bias, [layer.key_dim])
        self.key = measuring.dense(kernels[0], biases[0], "relu")
        self.gate = measuring.dense(kernels[1], biases[1], "sigmoid")

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


def torch_training(model, values, targets, batch):
    """A function that trains an ESBN in PyTorch for an epoch."""
    import torch
    from torch import nn

    layer = model.layers[-1]
    cell = nn.LSTMCell(layer.key_dim, layer.units)
    write = nn.Linear(layer.units, layer.key_dim + 1)
    kernel, recurrent_kernel, bias, write_kernel, write_bias = (
        own(weight)
        for weight in (
            *(layer.kernel, layer.recurrent_kernel, layer.bias),
            *(layer.write_kernel, layer.write_bias),
        )
    )
    kernels = kernel.T, recurrent_kernel.T
    measuring.give_to_torch(cell, *kernels, bias, np.zeros_like(bias))
    measuring.give_to_torch(write, write_kernel.T, write_bias)
    parameters = [*cell.parameters(), *write.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-9)

    def outputs(x):
        read = torch.zeros(len(x), layer.key_dim)
        h = c = torch.zeros(len(x), layer.units)
        keys = []
        for t in range(x.shape[1] + 1):
            h, c = cell(read, (h, c))
            if t == x.shape[1]:
                return h
            key, gate = write(h).split([layer.key_dim, 1], dim=1)
            if keys:
                logits = (x[:, :t] * x[:, t, None]).sum(-1)
                weights = logits.softmax(1)[..., None]
                read = (weights * torch.stack(keys, dim=1)).sum(1)
                read = gate.sigmoid() * read
            keys.append(key.relu())

    measuring.check_equal(
        model(values[:batch]),
        outputs(torch.tensor(values[:batch])).detach().numpy(),
    )
    x, y = (torch.tensor(a).split(batch) for a in (values, targets))
    return measuring.torch_epoch(
        optimizer, lambda x, y: ((outputs(x) - y) ** 2).mean(), x, y
    )


def plain_rule_learner(model):
    """A rule learner on an ESBN, step by step, that shares the encoder."""
    reasoner = model.get_layer("reasoner")
    esbn = reasoner.get_layer("esbn")
    images = keras.Input((9, 32, 32), dtype="uint8")
    plain = PlainESBN(model.get_layer("encoder").layer, esbn)
    return keras.Model(images, reasoner.get_layer("output")(plain(images)))
