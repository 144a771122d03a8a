"""What the tests of layers share: inputs, weights, and equations in NumPy."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops
from keras import tree
from layer_contract import CHECKS
from layer_contract import LayerCase
from layer_contract import apply
from layer_contract import first_of
from layer_contract import init_arguments
from layer_contract import left_out
from layer_contract import mask_argument

# Of the layer contract: nothing but weights that are trained.
NO_OTHER_VARIABLES = {
    "expected_output_dtype": "float32",
    "expected_num_non_trainable_weights": 0,
    "expected_num_non_trainable_variables": 0,
    "expected_num_seed_generators": 0,
    "expected_num_losses": 0,
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


def assert_equals(layer, reference, inputs, mask=None, atol=1e-5, **arguments):
    """Compares a layer with its reference.

    Args:
        layer: The layer. It is called first, so it need not be built.
        reference: As in `LayerCase`.
        inputs: An array, or a dictionary of arrays.
        mask: Mask of the first of the inputs, or None.
        atol: The largest error.
        **arguments: Further arguments of the call.
    """
    if mask is not None:
        arguments[mask_argument(inputs)] = mask
    outputs = tree.flatten(apply(layer, inputs, **arguments))
    inputs = tree.map_structure(lambda x: np.asarray(x, "float64"), inputs)
    expected = tree.flatten(reference(weights_of(layer), inputs, mask))
    for one, other in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


def run_contract_without_masks(test, layer_cls, **arguments):
    """The layer contract of a layer that leaves masks to Keras."""
    case = LayerCase(layer_cls=layer_cls, supports_masking=True, **arguments)
    without_masks = dataclasses.replace(case, supports_masking=False)
    for check in CHECKS:
        if check not in left_out:
            is_layer_test = check == "keras_layer_test"
            test.run_check(check, case if is_layer_test else without_masks)


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


def each_example(of_one):
    """The reference of a layer, from that of one example.

    Args:
        of_one: Function of the weights, the inputs of one example, and the
            places of its valid items.

    Returns:
        A reference as in `LayerCase`.
    """

    def reference(weights, inputs, mask=None):
        if mask is None:
            mask = np.ones(first_of(inputs).shape[:2], bool)
        outputs = []
        for example, valid in enumerate(mask):
            # Some symbols are the same for all examples.
            own = tree.map_structure(lambda x, i=example: x[i % len(x)], inputs)
            outputs.append(of_one(weights, own, np.flatnonzero(valid)))
        return tree.map_structure(lambda *x: np.stack(x), *outputs)

    return reference


def of_cell(weights):
    """The weights of an RNN, by their names in its cell."""
    return {name.split("/", 1)[1]: weight for name, weight in weights.items()}


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x)))


def softmax(logits):
    exponentials = np.exp(np.asarray(logits) - np.max(logits))
    return exponentials / exponentials.sum()


def attend(query, keys, values, num_heads, weigh=softmax):
    """What one query reads. Each head has its part of all vectors."""
    heads = []
    for head in range(num_heads):
        own = part(query, head, num_heads)
        logits = [own @ part(key, head, num_heads) for key in keys]
        shares = weigh(np.array(logits) / len(own) ** 0.5)
        read = 0
        for share, value in zip(shares, values, strict=True):
            read = read + share * part(value, head, num_heads)
        heads.append(read)
    return np.concatenate(heads)


def part(vector, number, count):
    """One of so many equal parts."""
    return np.split(vector, count)[number]


def normalized(x, weights, name, epsilon=1e-3):
    """Layer normalization of the last axis."""
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + epsilon)
    return x * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def feedforward(x, weights, hidden="hidden", update="update"):
    x = x @ weights[f"{hidden}/kernel"] + weights[f"{hidden}/bias"]
    x = np.maximum(x, 0)
    return x @ weights[f"{update}/kernel"] + weights[f"{update}/bias"]


def lstm(gates, c):
    """The new h and c."""
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(of_input, of_state, h):
    """The new h. Both products have biases of their own, as in Keras."""
    (xz, xr, xh), (yz, yr, yh) = np.split(of_input, 3), np.split(of_state, 3)
    update = sigmoid(xz + yz)
    new = np.tanh(xh + sigmoid(xr + yr) * yh)
    return update * h + (1 - update) * new


def below(weights, name):
    """The weights of one sublayer, by their names in that sublayer."""
    return {
        path.removeprefix(f"{name}/"): weight
        for path, weight in weights.items()
        if path.startswith(f"{name}/")
    }
