"""Keras' own layers inside a layer, built with its dtype and initializer."""

import keras

from keras_relational.layers._initial_weights import next_initializer


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
    normalization = keras.layers.LayerNormalization(
        epsilon=epsilon, dtype=layer.dtype_policy, name=name
    )
    normalization.build(shape)
    return normalization
