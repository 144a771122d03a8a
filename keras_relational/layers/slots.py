"""What the recurrences over slots share: SCOFF's object files, RIMs' modules.

A slot is a part of the state with dynamics of its own. Slots attend to the
input, then to each other; a cell has both steps, and says what it attended to.
"""

import functools
import math

import keras
from keras import ops

# No public function has its loop, through which gradients go on all backends.
from keras.src import backend

from keras_relational.counter_based_random import random_uniform
from keras_relational.layers.attention import dot_product_attention
from keras_relational.layers.attention import split_heads
from keras_relational.layers.initial_weights import add_weights
from keras_relational.layers.initial_weights import clone_initializer
from keras_relational.layers.operations import at_least_float32
from keras_relational.layers.operations import shapes_match
from keras_relational.validation import check_positive_integers

NUM_GATES = {"gru": 3, "lstm": 4}
# Of the last kernel of messages at first. Nothing bounds the h of a GRU that
# messages are added to: with a kernel of full size it grows with every step.
MESSAGE_SCALE = 0.01


class SlotCell(keras.layers.Layer):
    """An RNN cell whose state is one of slots.

    A child has `step` and `scores_shapes`, as `SlotRNN` needs them, and a
    constructor with arguments of the same names; `num_slots` is no argument of
    it, and says how many there are.
    """

    def __init__(
        self,
        num_slots,
        units,
        dynamics,
        num_active,
        num_heads,
        key_dim,
        value_dim,
        num_message_heads,
        message_key_dim,
        message_value_dim,
        activation,
        recurrent_activation,
        kernel_initializer,
        recurrent_initializer,
        bias_initializer,
        unit_forget_bias,
        dropout,
        seed,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_integers(
            units=units,
            num_heads=num_heads,
            key_dim=key_dim,
            value_dim=value_dim,
            num_message_heads=num_message_heads,
            message_key_dim=message_key_dim,
            message_value_dim=message_value_dim,
        )
        if dynamics not in NUM_GATES:
            raise ValueError(
                f"Unknown dynamics {dynamics!r}. Expected one of: "
                f"{', '.join(NUM_GATES)}"
            )
        if num_active is not None:
            check_positive_integers(num_active=num_active)
            if num_active > num_slots:
                raise ValueError(
                    f"`num_active` must be at most {num_slots}, as many as "
                    f"there are. Received: num_active={num_active}"
                )
        if not 0 <= dropout < 1:
            raise ValueError(
                "`dropout` must be at least 0 and less than 1. Received: "
                f"dropout={dropout}"
            )
        self.units = units
        self.dynamics = dynamics
        self.num_active = num_active
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.num_message_heads = num_message_heads
        self.message_key_dim = message_key_dim
        self.message_value_dim = message_value_dim
        self.activation = keras.activations.get(activation)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(
            recurrent_initializer
        )
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.unit_forget_bias = unit_forget_bias
        self.dropout = dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.num_slots = num_slots
        self.output_size = num_slots * units
        num_states = 1 if dynamics == "gru" else 2
        self.state_size = [self.output_size] * num_states

    def call(
        self, inputs, states, training=False, return_attention_scores=False
    ):
        noise = self.noise((ops.shape(inputs)[0],), inputs.shape[1:], training)
        states, scores = self.step(inputs, states, noise)
        if return_attention_scores:
            return states[0], states, tuple(at_least_float32(x) for x in scores)
        return states[0], states

    def noise(self, batch_shape, step_shape, training):
        """With dropout, what scores of inputs and messages are multiplied by.

        Args:
            batch_shape: Axes to begin with.
            step_shape: Shape of one step's input, without the batch.
            training: Nothing is drawn otherwise.

        Returns:
            List of two tensors, or of none.
        """
        if not training or not self.dropout:
            return []
        shapes = self.scores_shapes(step_shape)
        return [
            kept(
                (*batch_shape, *shape),
                *(self.dropout, self.seed_generator, self.compute_dtype),
            )
            for shape in (shapes[0], shapes[2])
        ]

    def add_dynamics(self, number, axis):
        """Adds weights of several GRUs or LSTMs, along an axis of kernels."""
        gates = NUM_GATES[self.dynamics] * self.units
        for name, rows, initializer in (
            (
                "kernel",
                self.num_heads * self.value_dim,
                self.kernel_initializer,
            ),
            ("recurrent_kernel", self.units, self.recurrent_initializer),
        ):
            shape = [rows, gates]
            shape.insert(axis, number)
            draws = functools.partial(one_each, axis=axis)
            add_weights(self, initializer, draws, **{name: tuple(shape)})
        # As in Keras, a GRU has two: beside the inputs', the state's.
        self.bias = self.add_weight(
            (2 if self.dynamics == "gru" else 1, number, gates),
            self._initial_bias,
            name="bias",
        )

    def _initial_bias(self, shape, dtype=None):
        if self.dynamics == "gru" or not self.unit_forget_bias:
            return self.bias_initializer(shape, dtype)
        units, axes = self.units, shape[:-1]
        return ops.concatenate(
            [
                self.bias_initializer((*axes, units), dtype),
                ops.ones((*axes, units), dtype),
                self.bias_initializer((*axes, 2 * units), dtype),
            ],
            axis=-1,
        )

    def updated(self, from_inputs, from_state, h, c):
        """One step of GRUs or LSTMs, all products done, as Keras has them.

        Args:
            from_inputs: `(..., number, gates * units)`.
            from_state: Likewise.
            h: `(..., units)`.
            c: List of c, for an LSTM, or of nothing, for a GRU.

        Returns:
            List of the new h and, for an LSTM, c.
        """
        squash, activation = self.recurrent_activation, self.activation
        from_inputs = from_inputs + self.bias[0]
        if self.dynamics == "gru":
            z, r, new = ops.split(from_inputs, 3, axis=-1)
            from_state = from_state + self.bias[1]
            inner_z, inner_r, inner = ops.split(from_state, 3, axis=-1)
            z, r = squash(z + inner_z), squash(r + inner_r)
            return [z * h + (1 - z) * activation(new + r * inner)]
        i, f, new, o = ops.split(from_inputs + from_state, 4, axis=-1)
        c = squash(f) * c[0] + squash(i) * activation(new)
        return [squash(o) * activation(c), c]

    def as_slots(self, states):
        """Each state as `(batch, slots, units)`."""
        return [
            ops.reshape(
                state, (ops.shape(state)[0], self.num_slots, self.units)
            )
            for state in states
        ]

    def as_states(self, slots):
        """And back."""
        return [ops.reshape(slot, (-1, self.output_size)) for slot in slots]

    def get_config(self):
        return {**super().get_config(), **self.arguments()}

    def arguments(self):
        """Those of the constructor, as they are stored in a configuration."""
        return {
            "units": self.units,
            "dynamics": self.dynamics,
            "num_active": self.num_active,
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "num_message_heads": self.num_message_heads,
            "message_key_dim": self.message_key_dim,
            "message_value_dim": self.message_value_dim,
            "activation": keras.activations.serialize(self.activation),
            "recurrent_activation": keras.activations.serialize(
                self.recurrent_activation
            ),
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
            "recurrent_initializer": keras.initializers.serialize(
                self.recurrent_initializer
            ),
            "bias_initializer": keras.initializers.serialize(
                self.bias_initializer
            ),
            "unit_forget_bias": self.unit_forget_bias,
            "dropout": self.dropout,
            "seed": self.seed,
        }


class SlotRNN(keras.layers.RNN):
    """A Keras RNN over a cell that tells what its slots attend to.

    Its cell is a `SlotCell`, which has, besides what Keras needs,

    - `step(inputs, states, noise, mask)`, which returns new states and a list
      of scores; the mask, if there is one, `(batch, n)`, of positions,
    - `noise(batch_shape, step_shape, training)`, a list of what is drawn for
      `step`. It is drawn before the loop, in which a backend may have no random
      numbers,
    - `scores_shapes(step_shape)`, a list of their shapes without the batch,
    - `arguments()`, those of its constructor, which are also the layer's.
    """

    def __init__(self, cell, **kwargs):
        super().__init__(cell, **kwargs)
        for name in cell.arguments():
            setattr(self, name, getattr(cell, name))

    def build(self, sequences_shape, initial_state_shape=None):
        check_shape(self, sequences_shape, "batch, time")
        super().build(sequences_shape, initial_state_shape)
        self.input_spec = keras.layers.InputSpec(
            min_ndim=3, axes={-1: sequences_shape[-1]}
        )

    def call(
        self,
        sequences,
        initial_state=None,
        mask=None,
        training=False,
        return_attention_scores=False,
    ):
        sequences = ops.convert_to_tensor(sequences)
        step_shape = sequences.shape[2:]
        batch_shape = ops.shape(sequences)[:2]
        if self.stateful:
            check_batch_size(self, sequences)
        if initial_state is None:
            initial_state = (
                self.states
                if self.stateful
                else self.get_initial_state(batch_shape[0])
            )
        check_states(self, initial_state, sequences.shape[0])
        states = [
            ops.cast(ops.convert_to_tensor(state), self.compute_dtype)
            for state in keras.tree.flatten(initial_state)
        ]
        inputs = [
            sequences,
            *self.cell.noise(batch_shape, step_shape, training),
        ]
        if mask is not None:
            positions = mask_of_positions(self, sequences, mask)
            mask = mask_of_steps(mask)
            there = ops.reshape(positions, (*batch_shape, *step_shape[:-1], 1))
            # A zero in place of padding: zero times a NaN in it would be NaN.
            inputs[0] = ops.where(there, sequences, 0)
            inputs.append(positions)
        shapes = [x.shape[2:] for x in inputs]

        def step(inputs, states):
            x, *noise = apart(inputs, shapes)
            positions = noise.pop() > 0 if mask is not None else None
            new_states, scores = self.cell.step(x, states, noise, positions)
            if mask is not None:
                there = ops.any(positions, axis=1, keepdims=True)
                new_states = [
                    ops.where(there, new, old)
                    for new, old in zip(new_states, states, strict=True)
                ]
            outputs = new_states[0]
            if return_attention_scores:
                # In half precision the largest score may have equals.
                scores = [at_least_float32(x) for x in scores]
                outputs = side_by_side([outputs, *scores], 1, scores[0].dtype)
            return outputs, tuple(new_states)

        _, outputs, states = backend.rnn(
            step,
            side_by_side(inputs, 2, self.compute_dtype),
            tuple(states),
            go_backwards=self.go_backwards,
            unroll=self.unroll,
            input_length=sequences.shape[1],
            return_all_outputs=self.return_sequences or return_attention_scores,
        )
        states = list(states)
        if self.stateful:
            for variable, state in zip(self.states, states, strict=True):
                variable.assign(state)
        results = self._masked(outputs, states[0], mask)
        if self.return_state:
            results = (results, *states)
        if not return_attention_scores:
            return results
        return results, self._scores(outputs, step_shape, mask)

    def _masked(self, outputs, last, mask):
        """Zeros where no step has been there so far, as in `keras.layers.GRU`,
        or, if so asked, at all padded ones."""
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

    def _scores(self, outputs, step_shape, mask):
        """One tensor of each kind from all of them side by side."""
        if self.go_backwards:
            outputs = ops.flip(outputs, axis=1)
        if mask is not None:
            outputs = ops.where(ops.expand_dims(mask, -1), outputs, 0)
        shapes = self.cell.scores_shapes(step_shape)
        _, *scores = apart(outputs, [(self.cell.output_size,), *shapes])
        return tuple(scores)

    def compute_mask(self, sequences, mask=None):
        if mask is not None:
            mask = mask_of_steps(keras.tree.flatten(mask)[0])
        return super().compute_mask(sequences, mask)

    def reset_state(self):
        if self.states is not None:
            initial = self.get_initial_state(self.states[0].shape[0])
            for variable, state in zip(self.states, initial, strict=True):
                variable.assign(state)

    def compute_output_spec(
        self,
        sequences,
        initial_state=None,
        mask=None,
        training=False,
        return_attention_scores=False,
    ):
        def tensors(shapes, dtype=self.compute_dtype):
            return tuple(keras.KerasTensor(shape, dtype) for shape in shapes)

        if initial_state is not None:
            check_states(self, initial_state, sequences.shape[0])
        shapes = self.compute_output_shape(sequences.shape)
        if self.return_state:
            results = tensors(shapes)
        else:
            (results,) = tensors([shapes])
        if not return_attention_scores:
            return results
        batch, time, *step_shape = sequences.shape
        scores_shapes = self.cell.scores_shapes(step_shape)
        return results, tensors(
            [(batch, time, *x) for x in scores_shapes],
            keras.backend.result_type(self.compute_dtype, "float32"),
        )

    def get_config(self):
        config = super().get_config()
        del config["cell"]
        return {**config, **self.cell.arguments()}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def side_by_side(tensors, num_axes, dtype):
    """Several tensors as one, with all axes after the first so many joined."""
    shape = (*ops.shape(tensors[0])[:num_axes], -1)
    tensors = [ops.reshape(ops.cast(x, dtype), shape) for x in tensors]
    return ops.concatenate(tensors, axis=-1)


def apart(tensor, shapes):
    """The tensors of these shapes that lie side by side in one."""
    parts, end = [], 0
    for shape in shapes:
        begin, end = end, end + math.prod(shape)
        part = tensor[..., begin:end]
        parts.append(ops.reshape(part, (*ops.shape(part)[:-1], *shape)))
    return parts


def check_states(layer, states, batch_size):
    """Raises a `ValueError` where states are not those of a layer's cell."""
    expected = [(batch_size, size) for size in layer.cell.state_size]
    received = [tuple(x.shape) for x in keras.tree.flatten(states)]
    if len(received) != len(expected) or not all(
        map(shapes_match, received, expected)
    ):
        raise ValueError(
            f"{layer.name} takes initial states of shapes {expected}. "
            f"Received: initial_state of shapes {received}"
        )


def check_batch_size(layer, sequences):
    """Raises a `ValueError` where a stateful layer keeps another number."""
    expected, received = layer.states[0].shape[0], sequences.shape[0]
    if received not in (None, expected):
        raise ValueError(
            f"{layer.name} is stateful and was built for batches of {expected} "
            f"sequences. Received: inputs.shape={tuple(sequences.shape)}. "
            "Pad the batch, or let `stateful` be False"
        )


def mask_of_steps(mask):
    """`(batch, time)`: of sets and images, steps where anything is there."""
    mask = ops.cast(mask, "bool")
    return ops.any(mask, axis=tuple(range(2, len(mask.shape))))


def mask_of_positions(layer, sequences, mask):
    """`(batch, time, n)`, from that of positions or of steps.

    Raises:
        ValueError: If the mask is neither.
    """
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


def num_positions(step_shape):
    """Of one step's input: a vector, a set of them, or an image."""
    return math.prod(step_shape[:-1])


def as_positions(inputs):
    """`(batch, m)`, `(batch, n, m)`, `(batch, h, w, m)` → `(batch, n, m)`."""
    shape = ops.shape(inputs)
    return ops.reshape(
        inputs, (shape[0], num_positions(inputs.shape[1:]), shape[-1])
    )


def over_rows(layer, x):
    """A layer of vectors on each row of `(batch, n, m)`.

    With no more than two axes a product is one for TensorFlow too. With three
    it transposes, in an order that XLA cannot tell in the gradient of a loop
    where the batch may have any size.

    Args:
        layer: A layer, or function, from `(rows, m)` to `(rows, k)`.
        x: Tensor, of which only the batch has no fixed size.

    Returns:
        Tensor `(batch, n, k)`.
    """
    rows = layer(ops.reshape(x, (-1, x.shape[-1])))
    return ops.reshape(rows, (-1, *x.shape[1:-1], rows.shape[-1]))


def product(x, kernel):
    """`(batch, n, m)` times `(m, k)`."""
    return over_rows(lambda rows: ops.matmul(rows, kernel), x)


def each_its_own(x, kernels):
    """`(batch, n, m)` times, for each of the n, its own of `(n, m, k)`."""
    return ops.swapaxes(ops.matmul(ops.swapaxes(x, 0, 1), kernels), 0, 1)


def check_shape(layer, shape, axes):
    """Raises a `ValueError` where the inputs of steps are none of the three.

    Args:
        layer: A `SlotCell` or `SlotRNN`, named in the error.
        shape: Of its inputs.
        axes: Those before the input of a step: `"batch"`, or `"batch, time"`.
    """
    step_shape = tuple(shape)[axes.count(",") + 1 :]
    if len(step_shape) not in (1, 2, 3) or None in step_shape:
        raise ValueError(
            f"{layer.name} takes inputs of shape ({axes}, m), ({axes}, n, m) or"
            f" ({axes}, height, width, m): at each step a vector, a set or an "
            "image, of fixed sizes. Received: inputs.shape="
            f"{tuple(shape)}"
        )


def messages(queries, keys, values, num_heads, keep=None):
    """What each slot reads from all, by attention, and its scores."""
    queries, keys, values = (
        split_heads(x, num_heads) for x in (queries, keys, values)
    )
    return dot_product_attention(queries, keys, values, dropout_mask=keep)


def kept(shape, rate, seed_generator, dtype):
    """What dropout multiplies scores by: 0, or 1 / (1 − rate)."""
    draws = uniform(shape, seed_generator)
    return ops.cast(draws >= rate, dtype) / (1 - rate)


def uniform(shape, seed_generator):
    """Random numbers in [0, 1), float32.

    Those that XLA draws for TensorFlow on a CPU take a hundred times as long.
    """
    seed, count = ops.unstack(seed_generator.next())
    numbers = ops.reshape(ops.arange(math.prod(shape)), shape)
    return random_uniform(seed, count, numbers)


def most_relevant(relevance, num_active):
    """Of `(batch, slots)` the first so many: `(batch, num_active, slots)`,
    boolean and one-hot.

    Of slots that are alike those with the lowest numbers. `ops.top_k` does not
    promise that on torch, and all modules of RIMs begin alike.
    """
    chosen = ops.argsort(-relevance, axis=-1)[:, :num_active]
    return ops.one_hot(chosen, relevance.shape[-1], dtype="bool")


def picked(x, active, axis=1):
    """What there is of slots, along an axis, for those active alone.

    As a sum, it serves `put_back` too; not as a product with ones, which some
    GPUs round. Gathered, it takes SCOFF as long in training.

    Args:
        x: Tensor, or `None`.
        active: What `most_relevant` returns, or `None` for all slots.
        axis: Which one is of slots.

    Returns:
        Tensor of the same shape, but with `num_active` along that axis.
    """
    if x is None or active is None:
        return x
    x = ops.expand_dims(x, axis)
    before, after = [1] * (axis - 1), [1] * (len(x.shape) - axis - 2)
    shape = (-1, *before, *active.shape[1:], *after)
    return ops.sum(ops.where(ops.reshape(active, shape), x, 0), axis=axis + 1)


def put_back(x, active, old=0, axis=1):
    """All slots, from what was picked, and others as they were."""
    if active is None:
        return x
    active = ops.swapaxes(active, 1, 2)
    there = ops.any(active, axis=2)
    shape = [1] * len(x.shape)
    shape[0], shape[axis] = -1, there.shape[1]
    return ops.where(ops.reshape(there, shape), picked(x, active, axis), old)


def one_each(initializer, weight_number, axis):
    """An initializer of kernels side by side along an axis, one by one.

    They are drawn in float32, as no other type has orthogonal matrices. With
    a seed they are not all the same either: `clone_initializer`.
    """

    def draw(shape, dtype):
        own_shape = (*shape[:axis], *shape[axis + 1 :])
        parts = [
            clone_initializer(initializer, weight_number, number)(
                own_shape, "float32"
            )
            for number in range(shape[axis])
        ]
        return ops.cast(ops.stack(parts, axis), dtype)

    return draw


def scaled(initializer, factor):
    """An initializer: what another draws, times a number."""

    def draw(shape, dtype):
        return ops.cast(factor * initializer(shape, "float32"), dtype)

    return draw
