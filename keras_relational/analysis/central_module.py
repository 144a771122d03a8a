"""What the central module of a trained model makes of images."""

import keras

from keras_relational import models
from keras_relational.layers import MultiHeadAttentionPooling
from keras_relational.layers import PrediNet


def central_outputs(model, images, batch_size=250):
    """The whole output of the central module for each image.

    `R*`, the outputs of all heads one after the other, where the module has
    heads. Reference: Fig. 1b of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307).

    Args:
        model: A `keras.Model` laid out as `models.relations_classifier`: its
            first input is images, the layer `"central"` the central module.
        images: uint8 array `(batch, 36, 36, 3)`.
        batch_size: Number of images computed at once.

    Returns:
        float32 array `(batch, size)`.

    Raises:
        ValueError: If the model has no layer `"central"`.

    Example:

    >>> import numpy as np
    >>> from keras_relational import models
    >>> model = models.relations_classifier("mlp1")
    >>> central_outputs(model, np.zeros((3, 36, 36, 3), "uint8")).shape
    (3, 640)
    """
    part = keras.Model(model.inputs[0], models.part(model, "central").output)
    outputs = part.predict(images, batch_size=batch_size, verbose=0)
    return outputs.astype("float32")


def head_outputs(model, images, batch_size=250):
    """The output of each head of the central module for each image.

    `R^h = (D^h, P1^h, P2^h)` of a PrediNet, a sum of values of an MHA.
    Reference: section 2 of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307).

    Args:
        model: A model laid out as `models.relations_classifier`, on
            `"predinet"` or `"mha"`.
        images: uint8 array `(batch, 36, 36, 3)`.
        batch_size: Number of images computed at once.

    Returns:
        float32 array `(batch, num_heads, size)`.

    Raises:
        ValueError: If the model's central module has no heads.

    Example:

    >>> import numpy as np
    >>> from keras_relational import models
    >>> model = models.relations_classifier("predinet")
    >>> head_outputs(model, np.zeros((3, 36, 36, 3), "uint8")).shape
    (3, 32, 20)
    """
    num_heads = layer_with_heads(model).num_heads
    outputs = central_outputs(model, images, batch_size)
    return outputs.reshape(len(outputs), num_heads, -1)


def layer_with_heads(model):
    """The central layer, or a `ValueError` if it is not made of heads."""
    layer = models.part(model, "central")
    if isinstance(layer, PrediNet | MultiHeadAttentionPooling):
        return layer
    raise ValueError(
        "Only models on a PrediNet or MultiHeadAttentionPooling can be looked "
        "at head by head. Received a model whose central module is a "
        f"{type(layer).__name__}; central_outputs reads it as a whole."
    )
