"""The convolutions of encoders."""

import functools
from collections.abc import Callable

import keras

from keras_relational import layers


def in_turn(number: int) -> list[Callable]:
    """What makes the convolutions of an encoder, one after the other.

    All compute what `keras.layers.Conv2D` computes. After the first one, whose
    inputs need no gradient, training under XLA is 1.5 to 2.7 times as fast with
    `layers.StridedConv2D`.

    Args:
        number: Positive integer, number of convolutions.

    Returns:
        List of functions that take the arguments of `keras.layers.Conv2D`.
    """
    later = functools.partial(layers.StridedConv2D, in_inference=False)
    return [keras.layers.Conv2D, *[later] * (number - 1)]
