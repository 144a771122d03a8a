"""Inputs, weights and comparisons that the tests of layers share."""

import keras
import numpy as np
import pytest
from keras import ops
from keras import tree
from layer_contract import apply
from layer_contract import init_arguments
from layer_contract import mask_argument

# Of the layer contract: a layer that takes entities and a symbol for each.
WITH_SYMBOLS = {
    "input_shape": {"entities_shape": (2, 4, 12), "symbols_shape": (2, 4, 6)},
    "second_input_shape": {
        "entities_shape": (2, 6, 12),
        "symbols_shape": (2, 6, 6),
    },
    "items_of_both": True,
    "output_mask": lambda mask: mask,
}

needs_float64 = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="Keras' common type of float64 and float32 is float32 there.",
)


def array(tensor):
    return ops.convert_to_numpy(tensor)


def in_float32(tensor):
    return array(ops.cast(tensor, "float32"))


def random_array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def with_random_weights(layer, *shapes, scale=0.5):
    """The layer, built for these shapes. A bias of zero could hide an error."""
    layer.build(*shapes)
    rng = np.random.default_rng(1)
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(scale=scale, size=weight.shape))
    return layer


def weights_of(layer):
    """The weights in float64, by the names that a reference reads."""
    return {
        weight.path.split("/", 1)[1]: array(weight.value).astype("float64")
        for weight in layer.weights
    }


def assert_close(found, expected, atol=1e-6):
    """Compares two tensors, or two structures of tensors."""
    pairs = zip(tree.flatten(found), tree.flatten(expected), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, atol=atol)


def assert_equals(layer, reference, inputs, mask=None, atol=1e-5, **arguments):
    """Compares a layer with its reference, which is one as in `LayerCase`.

    The mask is that of the first of the inputs. `arguments` are those of the
    call.
    """
    if mask is not None:
        arguments[mask_argument(inputs)] = mask
    outputs = apply(layer, inputs, **arguments)
    inputs = tree.map_structure(lambda x: np.asarray(x, "float64"), inputs)
    assert_close(outputs, reference(weights_of(layer), inputs, mask), atol)


class RNNOfCell(keras.layers.RNN):
    """An RNN that takes the arguments of its cell, a `cell_class`."""

    def __init__(self, dtype=None, name=None, trainable=True, **arguments):
        cell = self.cell_class(**arguments, dtype=dtype)
        super().__init__(cell, dtype=dtype, name=name, trainable=trainable)
        for argument in init_arguments(self.cell_class)[0]:
            setattr(self, argument, getattr(cell, argument))

    def get_config(self):
        config = self.cell.get_config()
        names = init_arguments(self.cell_class)[0]
        arguments = {name: config[name] for name in names}
        return {**keras.layers.Layer.get_config(self), **arguments}

    @classmethod
    def from_config(cls, config):
        return cls(**config)
