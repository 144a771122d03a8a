"""Initial weights that differ, even if their initializer has a seed."""

from collections.abc import Callable
from typing import TypeAlias

import keras
import numpy as np

# What `keras.initializers.get` takes.
InitializerLike: TypeAlias = str | Callable | keras.initializers.Initializer


def clone_initializer(
    initializer: InitializerLike, *numbers: int
) -> InitializerLike:
    """Copies an initializer for one more weight.

    If the initializer has a seed, the copy gets a new seed, derived from that
    seed and the numbers. Different numbers give different initial values.

    Args:
        initializer: The initializer to copy. Anything but a
            `keras.initializers.Initializer` is returned unchanged.
        *numbers: Non-negative integers that identify the weight.

    Returns:
        The copy.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if _has_seed(initializer):
        sequence = np.random.SeedSequence([config["seed"] % 2**32, *numbers])
        config["seed"] = int(sequence.generate_state(1)[0])
    return type(initializer).from_config(config)


def next_initializer(
    layer: keras.layers.Layer,
    initializer: InitializerLike,
    clone: Callable = clone_initializer,
) -> InitializerLike:
    """Copies an initializer for the next weight of a layer.

    Args:
        layer: The layer. Its weights and those of its sublayers are counted,
            so a sublayer becomes an attribute before the next one is made.
        initializer: The initializer to copy.
        clone: Function that copies the initializer. It is called with the
            initializer and the number of weights that the layer has so far.

    Returns:
        The copy.
    """
    return clone(initializer, len(layer.weights))


def add_weights(
    layer: keras.layers.Layer,
    initializer: InitializerLike,
    clone: Callable = clone_initializer,
    **shapes: tuple[int, ...],
) -> None:
    """Adds weights to a layer, and sets each as an attribute of its name.

    Args:
        layer: The layer to add the weights to.
        initializer: Initializer of the weights. Each weight gets a copy of
            its own.
        clone: Function that copies the initializer, as in `next_initializer`.
        **shapes: Shape of each weight, by the name of the weight.
    """
    for name, shape in shapes.items():
        own_copy = next_initializer(layer, initializer, clone)
        setattr(layer, name, layer.add_weight(shape, own_copy, name=name))


def draw_apart(
    layer: keras.layers.Layer, initializer: InitializerLike, *numbers: int
) -> None:
    """Draws the weights of one of Keras' layers anew, each with its own seed.

    Keras gives all of them the same seed, if the initializer has one. Without a
    seed they differ already, and nothing is drawn.

    Args:
        layer: The layer, built. All its weights have the initializer.
        initializer: The initializer.
        *numbers: Non-negative integers that identify the layer.
    """
    if not _has_seed(initializer):
        return
    for number, weight in enumerate(layer.weights):
        own_copy = clone_initializer(initializer, *numbers, number)
        draw = keras.initializers.get(own_copy)
        weight.assign(draw(weight.shape, weight.dtype))


def _has_seed(initializer):
    return isinstance(
        initializer, keras.initializers.Initializer
    ) and isinstance(initializer.get_config().get("seed"), int)
