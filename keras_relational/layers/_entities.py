"""Sets of entities `(batch, n, m)`: shapes, masks, and images read as sets."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_relational.layers._operations import shapes_match


def entities_shape(
    layer: keras.layers.Layer,
    input_shape: Sequence[int | None],
    fixed_size: bool = False,
) -> tuple[int | None, int | Any, int]:
    """The shape of a set of entities, or of an image read as a set.

    Args:
        layer: The layer that reads the set. An error names it.
        input_shape: `(batch, n, m)` or `(batch, height, width, m)`.
        fixed_size: If `True`, the number of entities must be known.

    Returns:
        `(batch, n, m)`. For an image, `n` is `height * width`, or `None` if one
        of them is unknown.

    Raises:
        ValueError: If the rank is neither 3 nor 4, or if a required size is
            unknown.
    """
    shape: tuple[Any, ...] = tuple(input_shape)
    sizes = shape[1:] if fixed_size else shape[-1:]
    if len(shape) not in (3, 4) or None in sizes:
        raise ValueError(
            f"{layer.name} takes a set (batch, n, m) or an image (batch, "
            f"height, width, m), with a fixed {'size' if fixed_size else 'm'}. "
            f"Received: inputs.shape={shape}"
        )
    if len(shape) == 3:
        return shape
    height, width = shape[1:3]
    num_entities = None if None in (height, width) else height * width
    return (shape[0], num_entities, shape[3])


def flatten_entities(
    layer: keras.layers.Layer,
    inputs: keras.KerasTensor,
    mask: keras.KerasTensor | None = None,
) -> tuple[keras.KerasTensor, keras.KerasTensor | None]:
    """Flattens an image to a set, and sets padded entities to zero.

    Padding may hold NaN, and a zero weight times NaN would be NaN. Integers
    become floats, since Keras casts only floats to the dtype of a layer.

    Args:
        layer: The layer that reads the set. An error names it.
        inputs: Tensor `(batch, n, m)` or `(batch, height, width, m)`. An image
            is read row by row.
        mask: Optional boolean tensor, `(batch, n)` or `(batch, height,
            width)`. `True` marks a valid entity.

    Returns:
        The entities `(batch, n, m)`, and the mask `(batch, n)` or `None`.

    Raises:
        ValueError: If the mask has another shape.
    """
    entities = ops.cast(inputs, layer.input_dtype)
    batch = ops.shape(inputs)[0]
    if len(inputs.shape) == 4:
        height, width, features = inputs.shape[1:]
        num_entities = -1 if None in (height, width) else height * width
        entities = ops.reshape(entities, (batch, num_entities, features))
    if mask is None:
        return entities, None
    if not any(
        shapes_match(mask.shape, shape)
        for shape in (inputs.shape[:-1], entities.shape[:-1])
    ):
        raise ValueError(
            f"{layer.name} takes a mask with one value for each entity, of "
            f"shape {tuple(inputs.shape[:-1])}. Received: mask.shape="
            f"{tuple(mask.shape)}, inputs.shape={tuple(inputs.shape)}"
        )
    mask = ops.reshape(mask, ops.shape(entities)[:-1])
    return ops.where(ops.expand_dims(mask, -1), entities, 0), mask


def no_mask(
    layer: keras.layers.Layer,
    inputs: keras.KerasTensor,
    mask: keras.KerasTensor | None = None,
) -> None:
    """The `compute_mask` of a layer whose outputs are not its entities."""


def check_entities_shape(
    layer: keras.layers.Layer,
    shape: Sequence[int | None],
    name: str = "inputs",
) -> int:
    """Checks that a tensor is a set of entities, not an image.

    Args:
        layer: The layer that reads the set. An error names it.
        shape: The shape, expected to be `(batch, n, m)`.
        name: Name of the tensor, for the error.

    Returns:
        `m`, the number of features of an entity.

    Raises:
        ValueError: If the rank is not 3, or `m` is unknown.
    """
    if len(shape) != 3 or shape[-1] is None:
        raise ValueError(
            f"{layer.name} takes sets (batch, n, m) with a fixed m. Received: "
            f"{name}.shape={tuple(shape)}"
        )
    return shape[-1]


def check_same_size(
    layer: keras.layers.Layer,
    built_shape: Sequence[int | None],
    input_shape: Sequence[int | None],
) -> None:
    """Checks that inputs have the size that the layer was built for.

    Args:
        layer: The layer. An error names it.
        built_shape: Shape of the inputs at build.
        input_shape: Shape of the present inputs.

    Raises:
        ValueError: If the shapes differ in anything but the batch size.
    """
    if tuple(built_shape[1:]) != tuple(input_shape[1:]):
        raise ValueError(
            f"{layer.name} was built for inputs of shape {tuple(built_shape)}, "
            "and has separate weights for each position. Received: "
            f"inputs.shape={tuple(input_shape)}. Pad the inputs to the size at "
            "build and mask the padding, or build a new layer."
        )
