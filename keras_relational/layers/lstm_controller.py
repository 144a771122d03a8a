"""The LSTM inside ESBN and NTM, and initial weights as their paper has them.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*, appendix A.1: by the activation that follows, Xavier normal with gain
5/3 (tanh) or 1 (sigmoid, softmax), Kaiming normal (ReLU), for each gate on its
own. Of biases it says nothing; they are uniform within ±1/√fan-in, as PyTorch
has them.
"""

import keras
from keras import ops


def add_lstm_weights(layer, size, units):
    """Adds `kernel`, `recurrent_kernel` and `bias` of an LSTM."""
    for name, rows in (("kernel", size), ("recurrent_kernel", units)):
        weight = layer.add_weight((rows, 4 * units), LSTMKernel(), name=name)
        setattr(layer, name, weight)
    layer.bias = layer.add_weight((4 * units,), bias(units), name="bias")


@keras.saving.register_keras_serializable(package="keras_relational")
class LSTMKernel(keras.initializers.Initializer):
    """Initial kernel of an LSTM: its input, forget, new and output gate."""

    def __call__(self, shape, dtype=None):
        units = shape[-1] // 4
        gates = side_by_side(
            before_sigmoid(units),
            before_sigmoid(units),
            before_tanh(units),
            before_sigmoid(units),
        )
        return gates(shape, dtype)


def lstm_step(layer, x, h, c):
    """The next h and c of an LSTM."""
    gates = ops.matmul(x, layer.kernel)
    gates += ops.matmul(h, layer.recurrent_kernel) + layer.bias
    i, f, g, o = ops.split(gates, 4, axis=-1)
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def side_by_side(*parts):
    """An initializer of kernels that are side by side in one.

    Args:
        *parts: Sizes of the last axis, and initializers, as the functions below
            return them.
    """

    def initializer(shape, dtype=None):
        return ops.concatenate(
            [draw((*shape[:-1], size), dtype) for size, draw in parts], axis=-1
        )

    return initializer


def before_tanh(size):
    """A size, and Xavier normal with gain 5/3."""
    return size, _normal((5 / 3) ** 2, "fan_avg")


def before_sigmoid(size):
    """A size, and Xavier normal."""
    return size, _normal(1, "fan_avg")


def before_relu(size):
    """A size, and Kaiming normal."""
    return size, _normal(2, "fan_in")


def add_head(layer, name, key_dim):
    """Adds kernel and bias of a key (ReLU) and a gate (sigmoid) after it."""
    shape = (layer.units, key_dim + 1)
    initializer = side_by_side(before_relu(key_dim), before_sigmoid(1))
    kernel = layer.add_weight(shape, initializer, name=f"{name}_kernel")
    setattr(layer, f"{name}_kernel", kernel)
    initializer = bias(layer.units)
    weight = layer.add_weight(shape[1:], initializer, name=f"{name}_bias")
    setattr(layer, f"{name}_bias", weight)


def bias(fan_in):
    """Uniform within ±1/√fan_in."""
    return keras.initializers.RandomUniform(-(fan_in**-0.5), fan_in**-0.5)


def _normal(scale, mode):
    return keras.initializers.VarianceScaling(scale, mode, "untruncated_normal")
