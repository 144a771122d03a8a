"""Moving squares: sequences drawn, encoded, and a predictor trained on them.

The plain program gets the sequences drawn already. It uses Keras' own
convolutions, `predict` and `fit`. Where PyTorch is installed, the authors'
program in PyTorch is the second one: it encodes and trains batch by batch.
"""

import importlib.util

import keras
import numpy as np
from keras import ops

from benchmarks import measuring
from benchmarks.measuring import own
from experiments.context_normalization.dynamic_objects import frame_embeddings
from experiments.context_normalization.object_predictor import image_autoencoder
from experiments.context_normalization.object_predictor import object_predictor
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import dynamic_objects

NUM_SEQUENCES, NUM_FRAMES, BATCH = 640, 20, 32


def main():
    keras.utils.set_random_seed(0)
    sequences = dynamic_objects.generate(NUM_SEQUENCES, seed=0)
    autoencoder = image_autoencoder()
    predictor = models.part(object_predictor(autoencoder), "predictor")
    training.compile_model(predictor, 5e-4, "mse")
    encoder = models.part(autoencoder, "encoder")
    seeds = iter(range(1_000))

    def ours():
        drawn = dynamic_objects.generate(NUM_SEQUENCES, seed=next(seeds))
        z = frame_embeddings(autoencoder, drawn)
        predictor.fit(z[:, :-1], z[:, 1:], batch_size=BATCH, verbose=0)

    others = {"plain Keras": plain_program(encoder, predictor, sequences)}
    if importlib.util.find_spec("torch"):
        others["PyTorch"] = torch_program(encoder, predictor, sequences)
    for name, program in others.items():
        measuring.report(
            f"Moving squares, {NUM_SEQUENCES} sequences, {name}",
            [measuring.seconds_of(program), measuring.seconds_of(ours)],
            NUM_SEQUENCES * NUM_FRAMES * encoder_flops(),
        )


def encoder_flops():
    """Of the products of one image."""
    convolutions = (32**2 * 16 + (16**2 + 8**2) * 16 * 32) * 32
    return 2 * (convolutions + 2048 * 256 + 256**2 + 256 * 10)


def plain_program(encoder, predictor, sequences):
    """A function that encodes sequences, and trains on them for an epoch."""
    plain = measuring.with_plain_convolutions(encoder)
    inputs = keras.Input((None, 10))
    x, mean, deviation = PlainNormalization()(inputs)
    recurrent = keras.layers.LSTM(20, return_sequences=True)
    prediction = keras.layers.Dense(10)
    x = prediction(recurrent(x)) * deviation + mean
    trained = keras.Model(inputs, x)
    for name, layer in (("recurrent", recurrent), ("prediction", prediction)):
        layer.set_weights(models.part(predictor, name).get_weights())
    z = encoder(sequences[:4].reshape(-1, 64, 64, 1))
    z = ops.reshape(z, (4, NUM_FRAMES, 10))
    measuring.check_equal(trained(z), predictor(z))
    trained.compile(keras.optimizers.Adam(5e-4), "mse")
    frames = sequences.reshape(-1, 64, 64, 1)

    def program():
        z = plain.predict(frames, batch_size=1_000, verbose=0)
        z = z.reshape(NUM_SEQUENCES, NUM_FRAMES, 10)
        trained.fit(z[:, :-1], z[:, 1:], batch_size=BATCH, verbose=0)

    return program


class PlainNormalization(keras.layers.Layer):
    """Temporal context normalization, and its moments."""

    def build(self, shape):
        self.gain = self.add_weight((10,), "ones", name="gain")
        self.shift = self.add_weight((10,), "zeros", name="shift")

    def call(self, inputs):
        mean = ops.mean(inputs, axis=1, keepdims=True)
        variance = ops.var(inputs, axis=1, keepdims=True)
        deviation = ops.sqrt(variance + 1e-8)
        normalized = (inputs - mean) / deviation
        return normalized * self.gain + self.shift, mean, deviation


def torch_program(encoder, predictor, sequences):
    """The same in PyTorch, batch by batch."""
    import torch
    from torch import nn

    convolutions = nn.Sequential(
        *(nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU()),
        *(nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU()),
        *(nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU()),
    )
    denses = nn.Sequential(
        *(nn.Linear(2048, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()),
        nn.Linear(256, 10),
    )
    layers = [x for x in encoder.layers if x.weights]
    for source, module in zip(
        layers, [*convolutions[::2], *denses[::2]], strict=True
    ):
        kernel, bias = (own(x) for x in source.weights)
        order = (3, 2, 0, 1) if kernel.ndim == 4 else (1, 0)
        measuring.give_to_torch(module, kernel.transpose(order), bias)
    recurrent, prediction = nn.LSTM(10, 20, batch_first=True), nn.Linear(20, 10)
    kernel, recurrent_kernel, bias = (
        own(x) for x in models.part(predictor, "recurrent").weights
    )
    kernels = kernel.T, recurrent_kernel.T
    measuring.give_to_torch(recurrent, *kernels, bias, np.zeros_like(bias))
    kernel, bias = (
        own(x) for x in models.part(predictor, "prediction").weights
    )
    measuring.give_to_torch(prediction, kernel.T, bias)
    gain, shift = (nn.Parameter(x) for x in (torch.ones(10), torch.zeros(10)))
    trained = [*recurrent.parameters(), *prediction.parameters(), gain, shift]
    optimizer = torch.optim.Adam(trained, 5e-4)

    def encoded(images):
        with torch.no_grad():
            frames = images.reshape(-1, 1, 64, 64).float() / 255
            x = convolutions(frames).permute(0, 2, 3, 1).flatten(1)
            return denses(x).reshape(-1, NUM_FRAMES, 10)

    def predicted(z):
        mean = z.mean(1, keepdim=True)
        deviation = (z.var(1, keepdim=True, unbiased=False) + 1e-8).sqrt()
        x, _ = recurrent((z - mean) / deviation * gain + shift)
        return prediction(x) * deviation + mean

    def loss(images):
        z = encoded(images)
        return ((predicted(z[:, :-1]) - z[:, 1:]) ** 2).mean()

    few = sequences[:4]
    z = encoded(torch.tensor(few))
    own_z = encoder(few.reshape(-1, 64, 64, 1))
    measuring.check_equal(ops.reshape(own_z, z.shape), z.numpy())
    measuring.check_equal(predictor(z.numpy()), predicted(z).detach().numpy())
    batches = torch.tensor(sequences).split(BATCH)
    return measuring.torch_epoch(optimizer, loss, batches)
