"""Keras' own layers inside a layer, built with its dtype and initializer."""

from collections.abc import Callable

import keras
from keras import ops

from keras_relational.layers._initial_weights import next_initializer
from keras_relational.layers._operations import at_least_float32


def built_dense(
    layer: keras.layers.Layer,
    shape: tuple[int | None, ...],
    units: int,
    name: str,
    activation: object = None,
) -> keras.layers.Dense:
    """A dense layer inside another layer, built.

    Args:
        layer: The layer around it, which has a `kernel_initializer`.
        shape: Shape of its inputs.
        units: Number of its units.
        name: Its name.
        activation: Its activation.

    Returns:
        The dense layer.
    """
    dense = keras.layers.Dense(
        units,
        activation,
        kernel_initializer=next_initializer(layer, layer.kernel_initializer),
        dtype=layer.dtype_policy,
        name=name,
    )
    dense.build(shape)
    return dense


class LayerNormalization(keras.layers.LayerNormalization):
    """Keras' layer normalization of the last axis, as one kernel on a GPU.

    XLA finds a row's mean and variance in this order of the operations. In
    Keras' order it launches three kernels. The class has Keras' name, by which
    files know a layer that is in a list.
    """

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        if keras.backend.backend() != "jax":
            return super().call(inputs)
        x = _standardized(inputs, self.epsilon) * self.gamma + self.beta
        return ops.cast(x, self.compute_dtype)


def built_normalization(
    layer: keras.layers.Layer,
    shape: tuple[int | None, ...],
    name: str,
    epsilon: float = 1e-3,
) -> keras.layers.LayerNormalization:
    """A layer normalization inside another layer, built.

    Args:
        layer: The layer around it.
        shape: Shape of its inputs.
        name: Its name.
        epsilon: Small number added to the variance.

    Returns:
        The layer normalization.
    """
    normalization = LayerNormalization(
        epsilon=epsilon, dtype=layer.dtype_policy, name=name
    )
    normalization.build(shape)
    return normalization


def normalized_dense(
    normalization: keras.layers.LayerNormalization,
    kernel: keras.KerasTensor,
    bias: keras.KerasTensor | float = 0.0,
) -> Callable:
    """A layer normalization and a product of it, for rows of several steps.

    The kernel is multiplied by the normalization's scale here, so once for all
    steps, and the bias gets its shift. Then the gradients of both are small
    products, where otherwise each step would sum over all rows.

    Args:
        normalization: The normalization, over the last axis.
        kernel: Float tensor `(m, k)`.
        bias: Float tensor `(k,)`.

    Returns:
        Function from rows `(rows, m)` to rows `(rows, k)`.
    """
    gamma, beta = (
        ops.cast(x, kernel.dtype)
        for x in (normalization.gamma, normalization.beta)
    )
    bias = ops.matmul(beta, kernel) + bias
    kernel = ops.expand_dims(gamma, -1) * kernel

    def outputs(rows):
        x = _standardized(rows, normalization.epsilon)
        return ops.matmul(ops.cast(x, rows.dtype), kernel) + bias

    return outputs


def _standardized(rows, epsilon):
    """Rows of mean 0 and variance 1, in float32 or float64."""
    x = at_least_float32(rows)
    x = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(x), axis=-1, keepdims=True)
    return x * ops.rsqrt(variance + epsilon)
