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
    if isinstance(config.get("seed"), int):
        sequence = np.random.SeedSequence([config["seed"] % 2**32, *numbers])
        config["seed"] = int(sequence.generate_state(1)[0])
    return type(initializer).from_config(config)


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
        clone: Function that copies the initializer. It is called with the
            initializer and the number of weights that the layer has so far.
        **shapes: Shape of each weight, by the name of the weight.
    """
    for name, shape in shapes.items():
        own_copy = clone(initializer, len(layer.weights))
        setattr(layer, name, layer.add_weight(shape, own_copy, name=name))
