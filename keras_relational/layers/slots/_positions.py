"""The positions of one step's input, and masks of positions and of steps.

A step's input is a vector, a set or an image. A layer reads it as a set
`(batch, n, m)` of n positions, each a vector of size m. A vector is one
position.
"""

import math
from collections.abc import Sequence

import keras
from keras import ops

from keras_relational.layers._operations import shapes_match


def num_positions(step_shape: Sequence[int]) -> int:
    """Number of positions of a step: a vector, a set or an image."""
    return math.prod(step_shape[:-1])


def flatten_positions(inputs: keras.KerasTensor) -> keras.KerasTensor:
    """`(batch, m)`, `(batch, n, m)`, `(batch, h, w, m)` → `(batch, n, m)`."""
    shape = ops.shape(inputs)
    return ops.reshape(
        inputs, (shape[0], num_positions(inputs.shape[1:]), shape[-1])
    )


def append_encodings(
    cell: keras.layers.Layer, inputs: keras.KerasTensor
) -> keras.KerasTensor:
    """`a_p = [c_p e_p]`, with `cell.position_encodings` if there are some.

    Raises:
        ValueError: If their number is not that of the positions.
    """
    c = flatten_positions(inputs)
    if cell.position_encodings is None:
        return c
    encodings = ops.cast(cell.position_encodings, c.dtype)
    if c.shape[1] != encodings.shape[0]:
        raise ValueError(
            f"{cell.name} was built for {encodings.shape[0]} positions "
            "a step, and has an encoding for each. Received: "
            f"{c.shape[1]} of them. Pad the inputs to that number and mask "
            "the padding, or set `position_dim` to 0."
        )
    shape = (ops.shape(c)[0], *encodings.shape)
    return ops.concatenate([c, ops.broadcast_to(encodings, shape)], axis=-1)


def check_step_inputs(
    layer: keras.layers.Layer, shape: Sequence[int | None], axes: str
) -> tuple[int, ...]:
    """The shape of a step's input: a vector, a set or an image of fixed size.

    `axes` are those before the axes of a step: `"batch"` or `"batch, time"`.
    """
    given = tuple(shape)[axes.count(",") + 1 :]
    step_shape = tuple(size for size in given if size is not None)
    if len(given) not in (1, 2, 3) or len(step_shape) < len(given):
        raise ValueError(
            f"{layer.name} takes inputs of shape ({axes}, m), ({axes}, n, m) or"
            f" ({axes}, height, width, m): at each step a vector, a set or an "
            "image, of fixed sizes. Received: inputs.shape="
            f"{tuple(shape)}"
        )
    return step_shape


def mask_of_steps(mask: keras.KerasTensor) -> keras.KerasTensor:
    """Mask `(batch, time)`: a step is valid if any of its positions is."""
    mask = ops.cast(mask, "bool")
    return ops.any(mask, axis=tuple(range(2, len(mask.shape))))


def mask_of_positions(
    layer: keras.layers.Layer,
    sequences: keras.KerasTensor,
    mask: keras.KerasTensor,
) -> keras.KerasTensor:
    """Mask `(batch, time, n)`, from a mask of positions or of steps."""
    step_shape = sequences.shape[2:]
    same = shapes_match(mask.shape[:2], sequences.shape[:2])
    if not same or tuple(mask.shape[2:]) not in ((), tuple(step_shape[:-1])):
        raise ValueError(
            f"{layer.name} takes a mask of steps (batch, time) or of "
            "positions, of the inputs' shape without its last axis. "
            f"Received: mask.shape={tuple(mask.shape)}, "
            f"inputs.shape={tuple(sequences.shape)}"
        )
    batch_shape = ops.shape(sequences)[:2]
    mask = ops.reshape(ops.cast(mask, "bool"), (*batch_shape, -1))
    return ops.broadcast_to(mask, (*batch_shape, num_positions(step_shape)))
