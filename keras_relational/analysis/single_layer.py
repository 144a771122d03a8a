"""The one layer of a kind in a model, and the arguments of its call."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np


def only_layer(model: keras.Model, kind: type) -> Any:
    """The layer of a class in a model that has exactly one.

    Layers within its layers do not count. Raises a `ValueError` if the model
    has no such layer, or several.
    """
    found = [layer for layer in model.layers if isinstance(layer, kind)]
    if len(found) != 1:
        names = [layer.name for layer in model.layers]
        raise ValueError(
            f"{model.name} has not one layer {kind.__name__} but {len(found)}, "
            f"among its layers {names}"
        )
    return found[0]


def call_arguments(
    model: keras.Model, layer: keras.layers.Layer
) -> Callable[[np.ndarray], tuple[Any, dict[str, Any]]]:
    """The arguments of a layer when its model gets some inputs.

    Returns a function of the model's inputs to the layer's first argument and a
    dictionary of `mask` and `initial_state`, if there are any.
    """
    sequential = isinstance(model, keras.Sequential)
    first = model.inputs[0] if sequential else model.input
    tensors = keras.tree.flatten(layer.input)
    values = keras.Model(first, tensors)

    def arguments_for(inputs):
        x, *others = keras.tree.flatten(values(inputs))
        arguments = {}
        for tensor, value in zip(tensors[1:], others, strict=True):
            if tensor.dtype == "bool":
                arguments["mask"] = value
            else:
                arguments.setdefault("initial_state", []).append(value)
        return x, arguments

    return arguments_for
