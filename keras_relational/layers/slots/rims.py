from collections.abc import Sequence

import keras
from keras import ops

from keras_relational.layers._attention import dot_product_attention
from keras_relational.layers._attention import split_heads
from keras_relational.layers._cells import zero_states
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers.slots._active import attend_to_slots
from keras_relational.layers.slots._active import most_relevant
from keras_relational.layers.slots._cell import SlotCell
from keras_relational.layers.slots._dynamics import add_dynamics
from keras_relational.layers.slots._dynamics import update
from keras_relational.layers.slots._initializers import MESSAGE_SCALE
from keras_relational.layers.slots._initializers import scaled
from keras_relational.layers.slots._initializers import stacked
from keras_relational.layers.slots._positions import check_step_inputs
from keras_relational.layers.slots._positions import num_positions
from keras_relational.layers.slots._products import Products
from keras_relational.layers.slots._products import project_each
from keras_relational.layers.slots._rnn import SlotRNN
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class RIMsCell(SlotCell):
    """One step of recurrent independent mechanisms, as an RNN cell.

    The state has a part h_k for each module, which is an LSTM with its own
    weights θ_k. Modules attend to the positions x_p of the input, and to a null
    input x_0 = 0. The modules that attend least to the null input are updated.
    They then read from all modules:

        s_k,p = softmax_p((h_k W_q,k) · (x_p W_e) / √d)
        z_k = Σ_p s_k,p x_p W_v
        S = the `num_active` modules with the smallest s_k,0
        h'_k = LSTM_θ_k(z_k, h_k)  for k in S,  h_k elsewhere
        ŝ_k,k' = softmax_k'((h'_k Ŵ_q,k) · (h'_k' Ŵ_e,k') / √d)
        h_k ← h'_k + Σ_k' ŝ_k,k' h'_k' Ŵ_v,k'  for k in S

    Only the modules in S change, and only their dynamics get a gradient.
    Reference: equations (1) to (6) of [Goyal et al., 2019](
    https://arxiv.org/abs/1909.10893).

    With several heads S is chosen by the mean of s_k,0 over the heads, and z_k
    is the concatenation of the sums of all heads. Ŵ_v is the product of two
    matrices: one makes the values of each head, the other maps all heads back
    to `units`. The second is scaled down by 100 at first. Otherwise the h of a
    GRU would grow with every step.

    Args:
        units: Positive integer. Size of the state of one module.
        num_modules: Positive integer. Number of modules, k_T in the paper.
        num_active: Positive integer. Number of modules that are updated at a
            step, k_A in the paper. The others are computed, too.
        dynamics: `"lstm"` or `"gru"`, the kind of network that a module is.
        num_heads: Positive integer. Number of heads of the attention to the
            input.
        key_dim: Positive integer. Size of the queries and keys, for each head
            of the attention to the input.
        value_dim: Positive integer. Size of the values, for each head of the
            attention to the input.
        num_message_heads: Positive integer. Number of heads of the attention
            between modules.
        message_key_dim: Positive integer. Size of the queries and keys, for
            each head of the attention between modules.
        message_value_dim: Positive integer. Size of the values, for each head
            of the attention between modules.
        dropout: Number from 0 up to, but not including, 1. Fraction of
            attention scores that are set to zero in training, in the attention
            to the input and in the attention between modules.
        seed: Integer or `None`. Seed of dropout.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: Float tensor: a vector `(batch, m)`, a set `(batch, n, m)` or
            an image `(batch, height, width, m)`.
        states: List of h `(batch, num_modules * units)`, one module after the
            other. With LSTMs also c, of the same shape.
        training: Boolean. If `True`, apply dropout. On JAX `keras.layers.RNN`
            cannot draw random numbers in its loop: use `RIMs` for training
            there, or `unroll=True`.
        return_attention_scores: Boolean. If `True`, also return the attention
            scores.

    Returns:
        h, and the list of the new states. With `return_attention_scores`, also
        a tuple of three tensors: the scores of inputs `(batch, num_heads,
        num_modules, 1 + n)`, the null input first, the activity `(batch,
        num_modules)`, 1 for active modules and 0 for the others, and the scores
        of messages `(batch, num_message_heads, num_modules, num_modules)`.

    Raises:
        ValueError: If an argument has a value that is not allowed, or if the
            inputs have another rank or unknown sizes.

    Example:

    >>> cell = RIMsCell(units=100, num_modules=6, num_active=4)
    >>> keras.layers.RNN(cell)(keras.Input((50, 32))).shape
    (None, 600)
    """

    def __init__(
        self,
        units: int,
        num_modules: int,
        num_active: int,
        dynamics: str = "lstm",
        num_heads: int = 1,
        key_dim: int = 64,
        value_dim: int = 64,
        num_message_heads: int = 4,
        message_key_dim: int = 32,
        message_value_dim: int = 32,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: object,
    ):
        super().__init__(**kwargs)
        check_positive_integers(
            num_modules=num_modules,
            num_active=num_active,
            num_message_heads=num_message_heads,
        )
        self.units = units
        self.num_modules = num_modules
        self.num_active = num_active
        self.dynamics = dynamics
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.num_message_heads = num_message_heads
        self.message_key_dim = message_key_dim
        self.message_value_dim = message_value_dim
        self.dropout = dropout
        self.seed = seed
        self.set_up_slots(num_modules)

    def build(self, input_shape: Sequence[int | None]) -> None:
        features = check_step_inputs(self, input_shape, "batch")[-1]
        self.input_spec = keras.layers.InputSpec(axes={-1: features})
        modules, units = self.num_modules, self.units
        keys = self.num_heads * self.key_dim
        message_keys = self.num_message_heads * self.message_key_dim
        message_values = self.num_message_heads * self.message_value_dim
        # Saved files list the weights in this order.
        add_weights(
            self,
            self._kernel_initializer,
            key_kernel=(features, keys),  # W_e
            value_kernel=(features, self.num_heads * self.value_dim),  # W_v
        )
        add_weights(
            self,
            self._kernel_initializer,
            stacked(axis=0),
            query_kernel=(modules, units, keys),  # W_q,k
            message_query_kernel=(modules, units, message_keys),  # Ŵ_q,k
            message_key_kernel=(modules, units, message_keys),  # Ŵ_e,k
            # Ŵ_v,k, first for each head, then back to units.
            message_value_kernel=(modules, units, message_values),
        )
        add_weights(
            self,
            self._kernel_initializer,
            scaled(MESSAGE_SCALE, stacked(axis=0)),
            message_output_kernel=(modules, message_values, units),
        )
        add_dynamics(self, modules, axis=0)  # θ_k

    def keys_and_values(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        x = super().keys_and_values(inputs)
        return ops.pad(x, [(0, 0), (1, 0), (0, 0)])  # x_0 = 0 comes first.

    def products(self) -> dict[str, Products]:
        """Products with h and h'. Each module has kernels of its own."""
        keys, values = self.message_key_kernel, self.message_value_kernel
        return {
            "h": Products(self.query_kernel, self.recurrent_kernel),
            "new_h": Products(self.message_query_kernel, keys, values),
        }

    def step(
        self,
        keys_and_values: keras.KerasTensor,
        states: Sequence[keras.KerasTensor],
        products: dict[str, Products],
        mask: keras.KerasTensor | None = None,
        dropout_mask: keras.KerasTensor | None = None,
        message_dropout_mask: keras.KerasTensor | None = None,
    ) -> tuple[list[keras.KerasTensor], list[keras.KerasTensor]]:
        """Equations (1) to (6).

        The scores are multiplied by the dropout masks.
        """
        h, *c = old = self.split_slots(states)
        if mask is not None:  # The null input is always valid.
            mask = ops.pad(mask, [(0, 0), (1, 0)], constant_values=True)

        # s_k,p = softmax_p((h_k W_q,k) · (x_p W_e) / √d)
        # z_k = Σ_p s_k,p x_p W_v
        queries, from_state = products["h"](h)
        queries = split_heads(queries, self.num_heads)
        keys, values = self.split_keys_and_values(keys_and_values)
        z, scores = dot_product_attention(
            queries, keys, values, mask, dropout_mask
        )

        # S = the `num_active` modules with the smallest s_k,0
        relevance = -ops.sum(scores[..., 0], axis=1)
        active = most_relevant(relevance, self.num_active)
        is_active = ops.any(active, axis=1)[..., None]

        # h'_k = LSTM_θ_k(z_k, h_k)  for k in S,  h_k elsewhere
        updated = update(self, project_each(z, self.kernel), from_state, h, c)
        new_h, *new_c = (
            ops.where(is_active, new, x)
            for new, x in zip(updated, old, strict=True)
        )

        # ŝ_k,k' = softmax_k'((h'_k Ŵ_q,k) · (h'_k' Ŵ_e,k') / √d)
        # h_k ← h'_k + Σ_k' ŝ_k,k' h'_k' Ŵ_v,k'  for k in S
        queries, keys, values = products["new_h"](new_h)
        read, message_scores = attend_to_slots(
            queries, keys, values, self.num_message_heads, message_dropout_mask
        )
        read = project_each(read, self.message_output_kernel)
        new_h = ops.where(is_active, new_h + read, new_h)

        new_states = self.join_slots([new_h, *new_c])
        return new_states, [scores, is_active[..., 0], message_scores]

    def scores_shapes(self, step_shape: Sequence[int]) -> list[tuple[int, ...]]:
        """The shapes of the scores of inputs, of activity, and of messages."""
        modules = self.num_modules
        return [
            (self.num_heads, modules, 1 + num_positions(step_shape)),
            (modules,),
            (self.num_message_heads, modules, modules),
        ]

    def get_initial_state(
        self, batch_size: int | None = None
    ) -> list[keras.KerasTensor]:
        return zero_states(self, batch_size, self.state_size)


@keras.saving.register_keras_serializable(package="keras_relational")
class RIMs(SlotRNN):
    """A recurrent layer of independent mechanisms.

    Modules compete for the input. Each is an LSTM with its own weights. Only
    the modules that attend most to the input are updated, and read from all
    modules. `RIMsCell` has the equations. Reference: [Goyal et al.,
    2019](https://arxiv.org/abs/1909.10893).

    RIMs can replace `keras.layers.LSTM`. Masks, states and
    `keras.layers.Bidirectional` work as with an LSTM. Activations and
    initializers are fixed. There are no regularizers, constraints,
    `recurrent_dropout`, `use_bias` or `use_cudnn`. `dropout` acts on attention
    scores. A step's input is a vector, a set or an image (`accepts_sets` is
    `True`).

    Args:
        units: Positive integer. Size of the state of one module.
        num_modules: Positive integer. Number of modules.
        num_active: Positive integer. Number of modules that are updated at a
            step. The others are computed, too.
        dynamics: `"lstm"` or `"gru"`, the kind of network that a module is.
        **kwargs: The other arguments of `RIMsCell`, by name, and those of
            `keras.layers.RNN`: `return_sequences`, `return_state`,
            `go_backwards`, `stateful`, `unroll`, `zero_output_for_mask`,
            `name`, `dtype` and `trainable`.

    Call arguments:
        sequences: Float tensor `(batch, time, m)` of vectors, `(batch, time, n,
            m)` of sets or `(batch, time, height, width, m)` of images.
        initial_state: Optional list of tensors: h `(batch, num_modules *
            units)` and, with LSTMs, c of the same shape. By default it is zero.
        mask: Optional boolean tensor: a mask of steps `(batch, time)`, or a
            mask of positions, which has the shape of `sequences` without its
            last axis. `True` marks a real step or position. Padded positions
            get no attention. A step is real if any of its positions is. At a
            padded step the state does not change, and the layer repeats its
            last output. Before the first real step the output is zero. With
            `zero_output_for_mask` it is zero at all padded steps.
        training: Boolean. If `True`, apply dropout.
        return_attention_scores: Boolean. If `True`, also return the attention
            scores of all steps.

    Returns:
        h of the last step, `(batch, num_modules * units)`, one module after the
        other. With `return_sequences`, h of all steps, `(batch, time,
        num_modules * units)`. With `return_state`, a tuple: h, then the final
        states. With `return_attention_scores`, a pair: these results, and a
        tuple of three tensors:

        - the scores of inputs `(batch, time, num_heads, num_modules, 1 + n)`,
          the null input first,
        - `(batch, time, num_modules)`: 1 for active modules, 0 for the others,
        - the scores of messages `(batch, time, num_message_heads, num_modules,
          num_modules)`: the reader comes first, then the module that it reads.

        The scores are in the order of the inputs, even with `go_backwards`. At
        padded steps all scores are zero.

    Raises:
        ValueError: If an argument has a value that is not allowed, if the
            inputs have another rank or unknown sizes, or if the mask or the
            initial state has another shape.

    Example:

    >>> layer = RIMs(units=100, num_modules=6, num_active=4)
    >>> layer(keras.Input((50, 32))).shape
    (None, 600)
    """

    cell_class = RIMsCell

    def __init__(
        self,
        units: int,
        num_modules: int,
        num_active: int,
        dynamics: str = "lstm",
        **kwargs: object,
    ):
        super().__init__(units, num_modules, num_active, dynamics, **kwargs)
