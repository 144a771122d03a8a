"""The loop over the steps of a sequence that SCOFF and RIMs share."""

import math
from collections.abc import Sequence

import keras
from keras import ops

from keras_relational.layers._keras_rnn import rnn
from keras_relational.layers._operations import at_least_float32
from keras_relational.layers._operations import recomputed
from keras_relational.layers._operations import shapes_match
from keras_relational.layers.slots._cell import SlotCell
from keras_relational.layers.slots._cell import argument_names
from keras_relational.layers.slots._cell import without_old_options
from keras_relational.layers.slots._positions import check_step_inputs
from keras_relational.layers.slots._positions import mask_of_positions
from keras_relational.layers.slots._positions import mask_of_steps


class SlotRNN(keras.layers.RNN):
    """A Keras RNN over a `SlotCell`, with masks of positions and with scores.

    It takes the arguments of its cell and those of `keras.layers.RNN`. All are
    attributes of the layer. `cell_class` is a subclass of `SlotCell`.
    """

    # A step's input may also be a set or an image, `(batch, time, n, m)` or
    # `(batch, time, height, width, m)`. Slots attend to its positions.
    accepts_sets = True

    cell_class: type[SlotCell]

    def __init__(self, *args: object, **kwargs: object):
        names = argument_names(self.cell_class)
        of_cell = {name: kwargs.pop(name) for name in names if name in kwargs}
        cell = self.cell_class(*args, **of_cell, dtype=kwargs.get("dtype"))
        # Keras refuses unknown arguments.
        super().__init__(cell, **kwargs)
        for name in names:
            setattr(self, name, getattr(cell, name))

    def build(
        self, sequences_shape: Sequence, initial_state_shape: object = None
    ) -> None:
        check_step_inputs(self, sequences_shape, "batch, time")
        super().build(sequences_shape, initial_state_shape)
        self.input_spec = keras.layers.InputSpec(
            min_ndim=3, axes={-1: sequences_shape[-1]}
        )

    def call(
        self,
        sequences: keras.KerasTensor,
        initial_state: Sequence[keras.KerasTensor] | None = None,
        mask: keras.KerasTensor | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        sequences = ops.convert_to_tensor(sequences)
        batch_shape, step_shape = ops.shape(sequences)[:2], sequences.shape[2:]
        states = self._initial_states(sequences, initial_state)
        noise = self.cell.noise(batch_shape, step_shape, training)
        given = {
            name: ops.cast(x, self.compute_dtype)
            for name, x in {"inputs": sequences, **noise}.items()
        }
        if mask is not None:
            positions = mask_of_positions(self, sequences, mask)
            mask = mask_of_steps(mask)
            valid = ops.reshape(positions, (*batch_shape, *step_shape[:-1], 1))
            # Padding may hold NaN, and a zero weight times NaN would be NaN.
            given["inputs"] = ops.where(valid, given["inputs"], 0)
            given["mask"] = positions
        # For all steps at once.
        inputs = ops.reshape(given.pop("inputs"), (-1, *step_shape))
        projected = self.cell.keys_and_values(inputs)
        shape = (*batch_shape, *projected.shape[1:])
        given["keys_and_values"] = ops.reshape(projected, shape)
        outputs, states = self._loop(given, states, return_attention_scores)
        if self.stateful:
            for variable, state in zip(self.states, states, strict=True):
                variable.assign(state)
        results = self._results(outputs, states[0], mask)
        if self.return_state:
            results = (results, *states)
        if not return_attention_scores:
            return results
        return results, self._scores(outputs, step_shape, mask)

    def _initial_states(self, sequences, initial_state):
        if self.stateful:
            check_batch_size(self, sequences)
        if initial_state is None and self.stateful:
            initial_state = self.states
        elif initial_state is None:
            initial_state = self.get_initial_state(ops.shape(sequences)[0])
        check_states(self, initial_state, sequences.shape[0])
        return [
            ops.cast(ops.convert_to_tensor(state), self.compute_dtype)
            for state in keras.tree.flatten(initial_state)
        ]

    def _loop(self, given, states, return_attention_scores):
        """Outputs of all steps, and the final states.

        `given` has the tensors of all steps, by the names of the arguments of
        `cell.step`. With `return_attention_scores` the outputs are packed with
        the scores.
        """
        names, tensors = list(given), tuple(given.values())
        products = self.cell.products()

        def step(tensors, states):
            arguments = dict(zip(names, tensors, strict=True))
            new_states, scores = self.cell.step(
                states=states, products=products, **arguments
            )
            if "mask" in arguments:
                valid = ops.any(arguments["mask"], axis=1, keepdims=True)
                new_states = [
                    ops.where(valid, new, old)
                    for new, old in zip(new_states, states, strict=True)
                ]
            outputs = new_states[0]
            if return_attention_scores:
                # Half precision may round the two largest scores to the same
                # number.
                scores = [at_least_float32(x) for x in scores]
                outputs = pack([outputs, *scores], scores[0].dtype)
            return outputs, tuple(new_states)

        time = tensors[0].shape[1]
        if time is None:
            # Keras cannot read the number of steps from nested inputs. It is in
            # a list, because Keras takes a lone tensor for the lengths of the
            # sequences.
            time = [ops.shape(tensors[0])[1]]
        _, outputs, states = rnn(
            step if self.unroll else recomputed(step),
            tensors,
            tuple(states),
            go_backwards=self.go_backwards,
            unroll=self.unroll,
            input_length=time,
            return_all_outputs=self.return_sequences or return_attention_scores,
        )
        return outputs, list(states)

    def _results(self, outputs, last, mask):
        """The outputs, with zeros where `keras.layers.GRU` has them.

        Outputs are zero before the first real step. With
        `zero_output_for_mask`, they are zero at all padded steps.
        """
        outputs = outputs[..., : self.cell.output_size]
        outputs = ops.cast(outputs, self.compute_dtype)
        if mask is None:
            return outputs if self.return_sequences else last
        if not self.return_sequences:
            return ops.where(ops.any(mask, axis=1, keepdims=True), last, 0)
        if self.go_backwards:
            mask = ops.flip(mask, axis=1)
        if not self.zero_output_for_mask:
            mask = ops.cumsum(ops.cast(mask, "int32"), axis=1) > 0
        return ops.where(ops.expand_dims(mask, -1), outputs, 0)

    def _scores(self, packed, step_shape, mask):
        """The scores, in the order of the inputs, and zero at padded steps."""
        if self.go_backwards:
            packed = ops.flip(packed, axis=1)
        if mask is not None:
            packed = ops.where(ops.expand_dims(mask, -1), packed, 0)
        shapes = self.cell.scores_shapes(step_shape)
        _, *scores = unpack(packed, [(self.cell.output_size,), *shapes])
        return tuple(scores)

    def compute_mask(
        self,
        sequences: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor | list | None:
        if mask is not None:
            mask = mask_of_steps(keras.tree.flatten(mask)[0])
        return super().compute_mask(sequences, mask)

    def reset_state(self) -> None:
        if self.states is not None:
            initial = self.get_initial_state(self.states[0].shape[0])
            for variable, state in zip(self.states, initial, strict=True):
                variable.assign(state)

    def compute_output_spec(
        self,
        sequences: keras.KerasTensor,
        initial_state: Sequence[keras.KerasTensor] | None = None,
        mask: keras.KerasTensor | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        if initial_state is not None:
            check_states(self, initial_state, sequences.shape[0])
        results = keras.tree.map_shape_structure(
            lambda shape: keras.KerasTensor(shape, self.compute_dtype),
            self.compute_output_shape(sequences.shape),
        )
        if not return_attention_scores:
            return results
        batch, time, *step_shape = sequences.shape
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        return results, tuple(
            keras.KerasTensor((batch, time, *shape), dtype)
            for shape in self.cell.scores_shapes(step_shape)
        )

    def get_config(self) -> dict:
        config = super().get_config()
        del config["cell"]
        return {**config, **self.cell.arguments()}

    @classmethod
    def from_config(cls, config: dict) -> "SlotRNN":
        return cls(**without_old_options(config))


def pack(tensors: Sequence[keras.KerasTensor], dtype: str) -> keras.KerasTensor:
    """Joins tensors `(batch, ...)` to one tensor `(batch, size)`.

    Keras' loop returns one tensor for each step, not several.
    """
    batch = ops.shape(tensors[0])[0]
    tensors = [ops.reshape(ops.cast(x, dtype), (batch, -1)) for x in tensors]
    return ops.concatenate(tensors, axis=-1)


def unpack(
    packed: keras.KerasTensor, shapes: Sequence[Sequence[int]]
) -> list[keras.KerasTensor]:
    """Splits `(batch, time, size)` into tensors `(batch, time, *shape)`."""
    parts, end = [], 0
    for shape in shapes:
        begin, end = end, end + math.prod(shape)
        part = packed[..., begin:end]
        parts.append(ops.reshape(part, (*ops.shape(part)[:-1], *shape)))
    return parts


def check_states(
    layer: SlotRNN,
    states: Sequence[keras.KerasTensor],
    batch_size: int | None,
) -> None:
    """Checks that initial states fit the layer's cell and the batch."""
    expected = [(batch_size, size) for size in layer.cell.state_size]
    received = [tuple(x.shape) for x in keras.tree.flatten(states)]
    if len(received) != len(expected) or not all(
        map(shapes_match, received, expected)
    ):
        raise ValueError(
            f"{layer.name} takes initial states of shapes {expected}. "
            f"Received: initial_state of shapes {received}"
        )


def check_batch_size(layer: SlotRNN, sequences: keras.KerasTensor) -> None:
    """Checks that a stateful layer gets one sequence for each of its states."""
    expected, received = layer.states[0].shape[0], sequences.shape[0]
    if received not in (None, expected):
        raise ValueError(
            f"{layer.name} is stateful and was built for batches of {expected} "
            f"sequences. Received: inputs.shape={tuple(sequences.shape)}. "
            "Pad the batch, or set `stateful=False`."
        )
