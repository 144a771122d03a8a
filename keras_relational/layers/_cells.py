"""Checks and initial states of recurrent cells."""

from collections.abc import Iterable
from collections.abc import Sequence

import keras
from keras import ops


def check_step_shape(
    cell: keras.layers.Layer, shape: Sequence[int | None]
) -> int:
    """Checks the shape of one step's inputs, and sets `input_spec`.

    Args:
        cell: The cell. Its `input_spec` is set to the shape.
        shape: Shape of the inputs, expected to be `(batch, features)`.

    Returns:
        The number of features.

    Raises:
        ValueError: If the shape has another rank, or `features` is unknown.
    """
    if len(shape) != 2 or shape[-1] is None:
        raise ValueError(
            f"{cell.name} takes inputs (batch, features) with fixed features, "
            "and an RNN of it takes sequences (batch, time, features). "
            f"Received: inputs.shape={tuple(shape)} at each step"
        )
    cell.input_spec = keras.layers.InputSpec(ndim=2, axes={-1: shape[-1]})
    return shape[-1]


def check_built(cell: keras.layers.Layer) -> None:
    """Checks that a cell has the weights that its initial state is made of.

    Args:
        cell: The cell.

    Raises:
        ValueError: If the cell is not built yet.
    """
    if not cell.built:
        raise ValueError(
            f"{cell.name} learns its initial state, and has no weights yet. "
            "Call it or build it first."
        )


def zero_states(
    cell: keras.layers.Layer,
    batch_size: int | keras.KerasTensor,
    sizes: Iterable[int],
) -> list[keras.KerasTensor]:
    """Initial states of zeros.

    Args:
        cell: The cell whose compute dtype the states have.
        batch_size: Number of examples.
        sizes: Size of each state.

    Returns:
        List of tensors `(batch_size, size)`.
    """
    return [ops.zeros((batch_size, size), cell.compute_dtype) for size in sizes]


def repeat_for_batch(
    state: keras.KerasTensor, batch_size: int | keras.KerasTensor
) -> keras.KerasTensor:
    """Repeats one initial state for every example of a batch.

    On torch, `ops.broadcast_to` would give all rows the same memory. A stateful
    RNN could not assign to its state then.

    Args:
        state: Tensor `(1, size)`.
        batch_size: Number of examples.

    Returns:
        Tensor `(batch_size, size)`.
    """
    return state + ops.zeros((batch_size, state.shape[-1]), state.dtype)
