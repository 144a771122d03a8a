"""The LSTM inside ESBN and NTM, and the initial weights of their paper.

[Sinha et al., 2020](https://arxiv.org/abs/2012.01944), appendix A.1, choose the
initializer by the activation that follows: Xavier normal with gain 5/3 for
tanh, Xavier normal with gain 1 for sigmoid and softmax, and Kaiming normal for
ReLU. Each gate of an LSTM is initialized separately. The paper does not mention
biases. Here they are uniform within ±1/√fan-in, PyTorch's default.
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_relational.layers._operations import recomputed


def add_lstm_weights(
    layer: keras.layers.Layer, input_size: int, units: int
) -> None:
    """Adds the weights of an LSTM to a layer.

    They become the attributes `kernel`, `recurrent_kernel` and `bias`.

    Args:
        layer: The layer to add the weights to.
        input_size: Size of the LSTM's inputs.
        units: Size of the LSTM's state.
    """
    for name, rows in (("kernel", input_size), ("recurrent_kernel", units)):
        weight = layer.add_weight((rows, 4 * units), LSTMKernel(), name=name)
        setattr(layer, name, weight)
    layer.bias = layer.add_weight(
        (4 * units,), bias_initializer(units), name="bias"
    )


def lstm_step(
    x: keras.KerasTensor,
    h: keras.KerasTensor,
    c: keras.KerasTensor,
    kernel: keras.KerasTensor,
    recurrent_kernel: keras.KerasTensor,
    bias: keras.KerasTensor,
) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """One step of an LSTM.

    Args:
        x: Inputs of the step `(batch, size)`.
        h: Output of the step before `(batch, units)`.
        c: Cell state of the step before `(batch, units)`.
        kernel: Kernel `(size, 4 * units)` of the input gate, the forget gate,
            the candidate and the output gate.
        recurrent_kernel: Recurrent kernel `(units, 4 * units)`.
        bias: Bias `(4 * units,)`.

    Returns:
        The new h and c.
    """
    gates = ops.matmul(x, kernel)
    gates += ops.matmul(h, recurrent_kernel) + bias
    return recomputed(_gated)(gates, c)


def _gated(gates, c):
    i, f, g, o = ops.split(gates, 4, axis=-1)
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def add_key_and_gate_weights(
    layer: keras.layers.Layer, name: str, key_dim: int
) -> None:
    """Adds a linear layer from `units` to a key and a gate.

    Args:
        layer: The layer to add the weights to. It has the attribute `units`.
        name: The weights are the attributes `{name}_kernel` and `{name}_bias`.
        key_dim: Size of the key. A ReLU follows the key, and a sigmoid the
            gate.
    """
    shape = (layer.units, key_dim + 1)
    initializer = concatenate_initializers(
        (key_dim, relu_initializer()), (1, sigmoid_initializer())
    )
    kernel = layer.add_weight(shape, initializer, name=f"{name}_kernel")
    setattr(layer, f"{name}_kernel", kernel)
    bias = layer.add_weight(
        shape[1:], bias_initializer(layer.units), name=f"{name}_bias"
    )
    setattr(layer, f"{name}_bias", bias)


@keras.saving.register_keras_serializable(package="keras_relational")
class LSTMKernel(keras.initializers.Initializer):
    """Initializer of an LSTM's kernel: Xavier normal for each gate.

    The four blocks of the last axis are the input gate, the forget gate, the
    candidate and the output gate. The candidate, which a tanh follows, has gain
    5/3. Reference: [Sinha et al., 2020](https://arxiv.org/abs/2012.01944),
    appendix A.1.

    Example:

    >>> keras.layers.LSTM(8, kernel_initializer=LSTMKernel()).units
    8
    """

    def __call__(
        self, shape: tuple[int, ...], dtype: str | None = None
    ) -> keras.KerasTensor:
        units, sigmoid = shape[-1] // 4, sigmoid_initializer
        initializers = sigmoid, sigmoid, tanh_initializer, sigmoid
        gates = [(units, initializer()) for initializer in initializers]
        return concatenate_initializers(*gates)(shape, dtype)


def concatenate_initializers(*blocks: tuple[int, Callable]) -> Callable:
    """An initializer that draws each block of a kernel's columns separately.

    The fan-out of a block is its own number of columns.

    Args:
        *blocks: Pairs of a number of columns and an initializer.

    Returns:
        Function from a shape and a dtype to a tensor.
    """

    def initializer(shape, dtype=None):
        return ops.concatenate(
            [draw((*shape[:-1], size), dtype) for size, draw in blocks],
            axis=-1,
        )

    return initializer


def tanh_initializer() -> keras.initializers.Initializer:
    """Xavier normal with gain 5/3, for a kernel that a tanh follows."""
    return _normal((5 / 3) ** 2, "fan_avg")


def sigmoid_initializer() -> keras.initializers.Initializer:
    """Xavier normal, for a kernel that a sigmoid or softmax follows."""
    return _normal(1, "fan_avg")


def relu_initializer() -> keras.initializers.Initializer:
    """Kaiming normal, for a kernel that a ReLU follows."""
    return _normal(2, "fan_in")


def bias_initializer(fan_in: int) -> keras.initializers.Initializer:
    """Uniform within ±1/√fan_in, for a linear layer of `fan_in` inputs."""
    return keras.initializers.RandomUniform(-(fan_in**-0.5), fan_in**-0.5)


def _normal(scale, mode):
    return keras.initializers.VarianceScaling(scale, mode, "untruncated_normal")
