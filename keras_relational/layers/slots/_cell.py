"""Base class of the cells of SCOFF and RIMs.

The state of such a cell consists of slots, which change separately: the object
files of SCOFF, or the modules of RIMs.
"""

import inspect
from collections.abc import Sequence

import keras
from keras import ops

from keras_relational.layers._attention import project
from keras_relational.layers._attention import split_heads
from keras_relational.layers._operations import at_least_float32
from keras_relational.layers._operations import recomputed
from keras_relational.layers.slots._dynamics import NUM_GATES
from keras_relational.layers.slots._noise import dropout_mask
from keras_relational.layers.slots._positions import flatten_positions
from keras_relational.validation import check_choice
from keras_relational.validation import check_dropout
from keras_relational.validation import check_positive_integers


def argument_names(cell_class: type) -> list[str]:
    """Names of the arguments of a cell's constructor, without `**kwargs`."""
    # `signature(cell_class)` would return the signature of Keras' `__new__`.
    constructor = inspect.getattr_static(cell_class, "__init__")
    parameters = inspect.signature(constructor).parameters.values()
    return [p.name for p in parameters if p.kind is not p.VAR_KEYWORD][1:]


def without_old_options(config: dict) -> dict:
    """A configuration without options that older files have.

    The weights of such a file hold all that these options changed, except for
    the activations.
    """
    config = dict(config)
    for name in (
        *("temperature", "unit_forget_bias", "kernel_initializer"),
        *("recurrent_initializer", "bias_initializer"),
    ):
        config.pop(name, None)
    for name, kept in (
        ("activation", "tanh"),
        ("recurrent_activation", "sigmoid"),
    ):
        value = config.pop(name, kept)
        if value != kept:
            raise ValueError(
                f"The option `{name}` is gone, and is {kept!r} always. "
                f"Received: a saved layer with {name}={value!r}"
            )
    return config


class SlotCell(keras.layers.Layer):
    """An RNN cell whose state consists of slots.

    The constructor of a subclass stores each argument as an attribute of the
    same name, then calls `set_up_slots`. A subclass has these methods:

    - `products()` joins the kernels of the products that a step makes.
    - `step(keys_and_values, states, products, mask=None, **noise)` computes the
      new states, and a list of three tensors of scores. The first argument is
      what `keys_and_values` returns, which may take all steps as one batch.
      `mask` is a boolean tensor `(batch, n)`, `True` for valid positions.
    - `noise(batch_shape, step_shape, training)` draws the random tensors that
      `step` takes as `**noise`.
    - `scores_shapes(step_shape)` gives the shapes of the three scores, without
      the batch.
    """

    def set_up_slots(self, num_slots: int) -> None:
        """Checks the arguments of all these cells, and sets the sizes."""
        names = (
            *("units", "num_heads", "key_dim", "value_dim"),
            *("message_key_dim", "message_value_dim"),
        )
        check_positive_integers(**{name: getattr(self, name) for name in names})
        check_choice("dynamics", self.dynamics, NUM_GATES)
        if self.num_active is not None:
            check_positive_integers(num_active=self.num_active)
            if self.num_active > num_slots:
                raise ValueError(
                    f"`num_active` must be at most {num_slots}, the number of "
                    f"slots. Received: num_active={self.num_active}"
                )
        check_dropout(self.dropout)
        self.num_slots = num_slots
        self.output_size = num_slots * self.units
        num_states = 1 if self.dynamics == "gru" else 2
        self.state_size = [self.output_size] * num_states
        # Each of these draws from the global seed, so their order matters.
        self._kernel_initializer = keras.initializers.get("glorot_uniform")
        self._recurrent_initializer = keras.initializers.get("orthogonal")
        self.seed_generator = keras.random.SeedGenerator(self.seed)

    def call(
        self,
        inputs: keras.KerasTensor,
        states: Sequence[keras.KerasTensor],
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> tuple:
        batch_shape, step_shape = (ops.shape(inputs)[0],), inputs.shape[1:]
        noise = self.noise(batch_shape, step_shape, training)
        states, scores = recomputed(
            lambda inputs, states: self.step(
                self.keys_and_values(inputs), states, self.products(), **noise
            )
        )(inputs, list(states))
        if return_attention_scores:
            return states[0], states, tuple(at_least_float32(x) for x in scores)
        return states[0], states

    def noise(
        self, batch_shape: Sequence, step_shape: Sequence[int], training: bool
    ) -> dict[str, keras.KerasTensor]:
        """Draws the dropout masks, by the names of `step`'s arguments.

        `batch_shape` is `(batch,)` for one step, `(batch, time)` for all steps
        of a sequence. Without `training` nothing is drawn.
        """
        if not training or not self.dropout:
            return {}
        inputs, _, messages = self.scores_shapes(step_shape)
        return {
            name: dropout_mask(
                (*batch_shape, *shape),
                self.dropout,
                self.seed_generator,
                self.compute_dtype,
            )
            for name, shape in (
                ("dropout_mask", inputs),
                ("message_dropout_mask", messages),
            )
        }

    def keys_and_values(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        """`x_p W_e` and `x_p W_v`, side by side, for each position."""
        kernels = [self.key_kernel, self.value_kernel]
        kernel = ops.concatenate(kernels, axis=-1)
        return project(flatten_positions(inputs), kernel)

    def split_keys_and_values(
        self, keys_and_values: keras.KerasTensor
    ) -> list[keras.KerasTensor]:
        """Keys and values `(batch, heads, n, size)`."""
        end = self.num_heads * self.key_dim
        return [
            split_heads(x, self.num_heads)
            for x in ops.split(keys_and_values, [end], axis=-1)
        ]

    def split_slots(
        self, states: Sequence[keras.KerasTensor]
    ) -> list[keras.KerasTensor]:
        """Each state, as `(batch, slots, units)`."""
        return [
            ops.reshape(x, (ops.shape(x)[0], self.num_slots, self.units))
            for x in states
        ]

    def join_slots(
        self, slots: Sequence[keras.KerasTensor]
    ) -> list[keras.KerasTensor]:
        """Each state, as `(batch, slots * units)`."""
        return [ops.reshape(x, (-1, self.output_size)) for x in slots]

    def arguments(self) -> dict:
        """The constructor's arguments, as a configuration stores them."""
        return {
            name: getattr(self, name) for name in argument_names(type(self))
        }

    def get_config(self) -> dict:
        return {**super().get_config(), **self.arguments()}

    @classmethod
    def from_config(cls, config: dict) -> "SlotCell":
        return cls(**without_old_options(config))
