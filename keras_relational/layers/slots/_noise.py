"""Random numbers that a layer draws for all steps before its loop over steps.

On JAX, Keras cannot draw random numbers inside the loop.
"""

import math
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_relational.counter_based_random import random_uniform


def uniform(
    shape: Sequence, seed_generator: keras.random.SeedGenerator
) -> keras.KerasTensor:
    """Random numbers in [0, 1), float32.

    On a CPU, XLA takes a hundred times as long for TensorFlow's own generator.
    """
    seed, count = ops.unstack(seed_generator.next())
    numbers = ops.reshape(ops.arange(math.prod(shape)), shape)
    return random_uniform(seed, count, numbers)


def normal(
    shape: Sequence, seed_generator: keras.random.SeedGenerator
) -> keras.KerasTensor:
    """Random numbers from a normal distribution of mean 0 and deviation 1."""
    radius = uniform(shape, seed_generator)
    angle = uniform(shape, seed_generator)
    radius = ops.sqrt(-2 * ops.log(ops.maximum(radius, 1e-7)))
    return radius * ops.cos(2 * math.pi * angle)


def fixed_normal(num_slots: int, units: int) -> np.ndarray:
    """Normal random numbers `(num_slots, units)` that are always the same.

    The numbers of the first slots do not depend on `num_slots`. So a layer with
    another number of slots can take the weights.
    """
    rng = np.random.default_rng(0)
    return rng.standard_normal((num_slots, units), "float32")


def gumbel_noise(
    shape: Sequence, seed_generator: keras.random.SeedGenerator
) -> keras.KerasTensor:
    """Random numbers from Gumbel(0, 1), float32."""
    draws = uniform(shape, seed_generator)
    return -ops.log(-ops.log(ops.maximum(draws, 1e-7)))


def dropout_mask(
    shape: Sequence,
    rate: float,
    seed_generator: keras.random.SeedGenerator,
    dtype: str,
) -> keras.KerasTensor:
    """Dropout mask: 0 with probability `rate`, `1 / (1 - rate)` otherwise."""
    draws = uniform(shape, seed_generator)
    return ops.cast(draws >= rate, dtype) / (1 - rate)
