"""Models that expect pixels from 0 to 255, and floats on another scale.

Integers are taken as they are. An image of floats whose pixels are all below 2
is taken as one from 0 to 1, and is multiplied by 255. Any other image of floats
is taken as one from 0 to 255. Each example is looked at by itself, and rounded.
In a NumPy array, pixels below 0 or above 255 are refused. In a tensor they
become 0 or 255, since a compiled function cannot raise an error because of a
value.
"""

import functools
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

_SCALES = (1 / 255, 1 / 256)


def to_pixels(images: Any) -> Any:
    """Images of floats or booleans as pixels from 0 to 255.

    Integers, and arrays of fewer than 3 axes, are returned as they are. Others
    become whole numbers in float32. A `ValueError` says if a NumPy array
    has pixels below 0 or above 255.

    Example:

    >>> to_pixels(np.array([[[0.0, 0.2]], [[51.0, 255.0]]])).tolist()
    [[[0.0, 51.0]], [[51.0, 255.0]]]
    """
    if not _may_be_images(images):
        return images
    check_pixels(images)
    kind = keras.backend.standardize_dtype(images.dtype)
    if kind != "bool" and "float" not in kind:
        return images
    arrays = np if isinstance(images, np.ndarray) else ops
    images = arrays.array(images, "float32")
    axes = tuple(range(1, len(images.shape)))
    brightest = arrays.max(images, axis=axes, keepdims=True, initial=0)
    # One number an example saves a pass over the pixels.
    scale = arrays.where(brightest < 2, np.float32(255), np.float32(1))
    return arrays.clip(arrays.round(scale * images), 0, 255)


def check_pixels(inputs: Any) -> None:
    """Raises a `ValueError` if pixels are below 0 or above 255.

    Only NumPy arrays of 3 axes or more are looked at.
    """
    for images in keras.tree.flatten(inputs):
        if (
            not isinstance(images, np.ndarray)
            or not _may_be_images(images)
            or images.dtype in ("bool", "uint8")
            or images.size == 0
        ):
            continue
        low, high = images.min(), images.max()
        if not (low >= 0 and high <= 255):  # As with NaN.
            raise ValueError(
                "The model expects images of integers from 0 to 255, or of "
                "floats from 0 to 255 or from 0 to 1. Undo any other scaling. "
                f"Received: pixels from {low} to {high}"
            )


def reads_pixels(model: keras.Model) -> bool:
    """Whether a functional or sequential model divides uint8 by 255 or 256."""
    return any(
        x.dtype == "uint8" and _may_be_images(x)
        for x in getattr(model, "inputs", None) or ()
    ) and any(
        isinstance(layer, keras.layers.Rescaling)
        and isinstance(layer.scale, float)
        and layer.scale in _SCALES
        for layer in _layers_within(model)
    )


@keras.saving.register_keras_serializable(package="keras_relational")
class ImageModel(keras.Model):
    """A functional model that also takes its images as floats.

    `declare` and `from_preset` make one of a model that divides images of uint8
    by 255 or 256. Keras itself casts floats to uint8, and an image from 0 to 1
    would become black. In everything else this is a `keras.Model`.

    Example:

    >>> x = keras.Input((2, 2, 1), dtype="uint8")
    >>> model = ImageModel(x, keras.layers.Rescaling(1 / 255)(x))
    >>> images = np.array([0, 0.25, 0.5, 1]).reshape(1, 2, 2, 1)
    >>> (255 * model.predict(images, verbose=0)).round().ravel().tolist()
    [0.0, 64.0, 128.0, 255.0]
    """

    @functools.cached_property
    def reads_pixels(self) -> bool:
        """The result of the function `reads_pixels` for this model."""
        return reads_pixels(self)

    def call(
        self,
        inputs: Any,
        training: bool | None = None,
        mask: Any = None,
        **kwargs: Any,
    ) -> Any:
        if self.reads_pixels:
            inputs = keras.tree.map_structure(to_pixels, inputs)
        return super().call(inputs, training=training, mask=mask, **kwargs)


def _checked(name: str) -> Callable[..., Any]:
    """A method of `keras.Model` that first checks its images."""
    method = getattr(keras.Model, name)

    @functools.wraps(method)
    def checked(
        self: ImageModel, x: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if self.reads_pixels:
            check_pixels(x)
        return method(self, x, *args, **kwargs)

    return checked


# These methods are compiled, so that `call` sees no values.
for _name in (
    *("fit", "evaluate", "predict"),
    *("train_on_batch", "test_on_batch", "predict_on_batch"),
):
    setattr(ImageModel, _name, _checked(_name))


def as_image_model(model: keras.Model) -> keras.Model:
    """The same model, as an `ImageModel` if functional and it reads pixels.

    A functional model is also called once, because Keras refuses to export a
    model to ONNX that was never called.
    """
    if type(model).__name__ == "Functional" and reads_pixels(model):
        image_model = ImageModel(model.input, model.output, name=model.name)
        image_model.dtype_policy = model.dtype_policy
        model = image_model
    if getattr(model, "input", None) is not None:
        # Its own inputs would then refer to the model, and keep it.
        model(keras.tree.map_structure(_input_like, model.input))
    return model


def _input_like(tensor: keras.KerasTensor) -> keras.KerasTensor:
    return keras.Input(
        batch_shape=tensor.shape, dtype=tensor.dtype, name=tensor.name
    )


def _may_be_images(x: Any) -> bool:
    return hasattr(x, "dtype") and len(x.shape) >= 3


def _layers_within(model: keras.Model) -> Iterator[keras.layers.Layer]:
    """Every layer of a model, including those of inner models and wrappers."""
    for layer in model.layers:
        yield layer
        inner = getattr(layer, "layer", layer)
        if inner is not layer:
            yield inner
        if isinstance(inner, keras.Model):
            yield from _layers_within(inner)
