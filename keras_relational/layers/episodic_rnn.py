from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_relational.layers._cells import zero_states
from keras_relational.layers._operations import shapes_match


@keras.saving.register_keras_serializable(package="keras_relational")
class EpisodicRNN(keras.layers.Layer):
    """A recurrent layer whose state is reset where a new episode begins.

    With a cell (y, s) ← cell(x, s) and its initial state s⁰,

        y_t, s_t = cell(x_t, s⁰)       where an episode begins,
                   cell(x_t, s_{t−1})  elsewhere.

    The cell remembers nothing of earlier episodes. So a batch may have
    sequences of one length, cut from episodes of any length.

    Args:
        cell: A Keras RNN cell. Keras' own cells must have no dropout, because
            `keras.layers.RNN` draws it once for a whole sequence.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        frames: Float tensor `(batch * time, m)`: all frames of the first
            sequence, then all of the second, and so on.
        is_first: Boolean tensor `(batch, time)`, `True` for the first frame of
            an episode.
        states: List of the cell's states, each `(batch, size)`.

    Returns:
        List of the outputs `(batch, time, units)` and of the states after the
        last frame.

    Raises:
        ValueError: If `cell` is not an RNN cell, if it is one of Keras' own
            with dropout, or if the shapes of `frames`, `is_first` and `states`
            do not fit together.

    Example:

    >>> layer = EpisodicRNN(keras.layers.GRUCell(16))
    >>> is_first = keras.Input((5,), dtype="bool")
    >>> y, state = layer(keras.Input((8,)), is_first, [keras.Input((16,))])
    >>> y.shape, state.shape
    ((None, 5, 16), (None, 16))
    """

    def __init__(self, cell: keras.layers.Layer, **kwargs: object):
        if not hasattr(cell, "state_size"):
            raise ValueError(
                "`cell` must be a Keras RNN cell, such as "
                f"keras.layers.GRUCell(256). Received: cell={cell!r}"
            )
        for part in getattr(cell, "cells", [cell]):
            is_keras_own = hasattr(part, "reset_dropout_mask")
            if is_keras_own and (part.dropout or part.recurrent_dropout):
                raise ValueError(
                    "EpisodicRNN needs a cell without dropout. Received: a "
                    f"{type(part).__name__} with dropout={part.dropout}, "
                    f"recurrent_dropout={part.recurrent_dropout}"
                )
        super().__init__(**kwargs)
        self.cell = cell
        self.rnn = keras.layers.RNN(
            _EpisodicCell(cell, dtype=self.dtype_policy),
            return_sequences=True,
            return_state=True,
            dtype=self.dtype_policy,
        )

    def build(
        self,
        frames_shape: Sequence[Any],
        is_first_shape: Sequence[int | None],
        states_shape: Sequence,
    ) -> None:
        self.rnn.build((*is_first_shape, frames_shape[-1] + 1))

    def call(
        self,
        frames: keras.KerasTensor,
        is_first: keras.KerasTensor,
        states: Sequence[keras.KerasTensor],
    ) -> list[keras.KerasTensor]:
        self._check(frames, is_first, states)
        batch, time = ops.shape(is_first)
        frames = ops.reshape(frames, (batch, time, frames.shape[-1]))
        flag = ops.expand_dims(ops.cast(is_first, frames.dtype), -1)
        frames = ops.concatenate([frames, flag], axis=-1)
        return list(self.rnn(frames, initial_state=list(states)))

    def _check(self, frames, is_first, states):
        batch, time = [*is_first.shape, None, None][:2]
        size = None if None in (batch, time) else batch * time
        received = keras.tree.map_structure(
            lambda x: tuple(x.shape), [frames, is_first, states]
        )
        sizes = self.rnn.cell.state_size
        expected = [(size, None), (batch, time)]
        expected.append([(batch, size) for size in sizes])
        fit = isinstance(states, list | tuple) and len(states) == len(sizes)
        if not fit or not all(
            shapes_match(x.shape, shape)
            for x, shape in zip(
                (frames, is_first, *states),
                (*expected[:2], *expected[2]),
                strict=True,
            )
        ):
            raise ValueError(
                f"{self.name} takes frames, is_first and a list of states of "
                f"shapes {expected}. Frames have the first axis batch * time, "
                f"the others batch. Received: shapes {received}"
            )

    def compute_output_spec(
        self,
        frames: keras.KerasTensor,
        is_first: keras.KerasTensor,
        states: Sequence[keras.KerasTensor],
    ) -> list[keras.KerasTensor]:
        self._check(frames, is_first, states)
        shape = (*is_first.shape, self.rnn.cell.output_size)
        outputs = keras.KerasTensor(shape, self.compute_dtype)
        return [
            outputs,
            *(keras.KerasTensor(x.shape, self.compute_dtype) for x in states),
        ]

    def get_config(self) -> dict:
        cell = keras.saving.serialize_keras_object(self.cell)
        return {**super().get_config(), "cell": cell}

    @classmethod
    def from_config(cls, config: dict) -> "EpisodicRNN":
        cell = keras.saving.deserialize_keras_object(config.pop("cell"))
        return cls(cell, **config)


class _EpisodicCell(keras.layers.Layer):
    """Resets a cell to its initial state where the last input feature is 1.

    The states are one flat list, even if the inner cell nests its states.
    """

    def __init__(self, cell, **kwargs):
        super().__init__(**kwargs)
        self.cell = cell
        self.state_size = keras.tree.flatten(cell.state_size)
        # As with `keras.layers.RNN`, a cell may lack `output_size`.
        self.output_size = getattr(cell, "output_size", self.state_size[0])

    def build(self, inputs_shape, states_shape=None):
        if not self.cell.built:  # A loaded cell is built.
            self.cell.build((*inputs_shape[:-1], inputs_shape[-1] - 1))

    def call(self, inputs, states, training=False):
        first = inputs[..., -1:] > 0
        initial = self.get_initial_state(ops.shape(inputs)[0])
        states = [
            ops.where(first, new, old)
            for new, old in zip(initial, states, strict=True)
        ]
        if keras.tree.is_nested(self.cell.state_size):
            states = keras.tree.pack_sequence_as(self.cell.state_size, states)
        outputs, states = self.cell(inputs[..., :-1], states, training=training)
        return ops.cast(outputs, self.compute_dtype), self._flat(states)

    def get_initial_state(self, batch_size=None):
        if not hasattr(self.cell, "get_initial_state"):
            return zero_states(self, batch_size, self.state_size)
        return self._flat(self.cell.get_initial_state(batch_size=batch_size))

    def _flat(self, states):
        """A flat list of states. The cell may have another dtype."""
        return [
            ops.cast(x, self.compute_dtype) for x in keras.tree.flatten(states)
        ]
