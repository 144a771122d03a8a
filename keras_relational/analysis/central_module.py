"""The outputs of the central module of a trained model."""

import keras
import numpy as np

from keras_relational import models
from keras_relational.layers import MultiHeadAttentionPooling
from keras_relational.layers import PrediNet


def central_outputs(
    model: keras.Model, images: np.ndarray, batch_size: int = 250
) -> np.ndarray:
    """The complete output of the central module for each image.

    If the module has heads, this is `R*`, the concatenated outputs of all
    heads. Reference: Fig. 1b of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307).

    Args:
        model: Model of `models.relations_classifier`, or any model whose first
            input is images and that declares a part `"central"`.
        images: uint8 array `(batch, 36, 36, 3)`.
        batch_size: Number of images in a batch of the computation.

    Returns:
        float32 array `(batch, size)`.

    Raises:
        ValueError: If the model has no part `"central"`.

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


def head_outputs(
    model: keras.Model, images: np.ndarray, batch_size: int = 250
) -> np.ndarray:
    """The output of each head of the central module for each image.

    For a PrediNet this is `R^h = (D^h, P1^h, P2^h)`, and for an MHA a sum of
    values. Reference: section 2 of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307).

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`, or any model that declares such a part
            `"central"`.
        images: uint8 array `(batch, 36, 36, 3)`.
        batch_size: Number of images in a batch of the computation.

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


def layer_with_heads(
    model: keras.Model,
) -> PrediNet | MultiHeadAttentionPooling:
    """The central module of a model, if it has heads.

    Args:
        model: `keras.Model` that declares a part `"central"`.

    Raises:
        ValueError: If the central module has no heads.
    """
    layer = models.part(model, "central")
    if isinstance(layer, PrediNet | MultiHeadAttentionPooling):
        return layer
    raise ValueError(
        "Only a PrediNet and a MultiHeadAttentionPooling have heads to look "
        "at. Received a model whose central module is a "
        f"{type(layer).__name__}. central_outputs reads it as a whole."
    )
