from collections.abc import Callable
from collections.abc import Sequence

import keras
from keras import ops

from keras_relational.layers.attention import dot_product_attention
from keras_relational.layers.attention import split_heads
from keras_relational.layers.cells import zero_states
from keras_relational.layers.initial_weights import add_weights
from keras_relational.layers.positions import check_step_inputs
from keras_relational.layers.positions import flatten_positions
from keras_relational.layers.positions import num_positions
from keras_relational.layers.slot_attention import attend_to_slots
from keras_relational.layers.slot_attention import most_relevant
from keras_relational.layers.slot_cell import SlotCell
from keras_relational.layers.slot_dynamics import add_dynamics
from keras_relational.layers.slot_dynamics import update
from keras_relational.layers.slot_initializers import MESSAGE_SCALE
from keras_relational.layers.slot_initializers import scaled
from keras_relational.layers.slot_initializers import stacked
from keras_relational.layers.slot_products import project
from keras_relational.layers.slot_products import project_each
from keras_relational.layers.slot_rnn import SlotRNN
from keras_relational.layers.slot_rnn import constructor_signature
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class RIMsCell(SlotCell):
    """One step of recurrent independent mechanisms, as an RNN cell.

    The state consists of modules h_k, which are LSTMs θ_k with weights of their
    own. They attend to the positions x_p of the input, and to a null input x_0
    = 0. The modules that attend to it least are updated, then read from all
    others:

        s_k,p = softmax_p((h_k W_q,k) · (x_p W_e) / √d)
        z_k = Σ_p s_k,p x_p W_v
        S = the `num_active` modules with the smallest s_k,0
        h'_k = LSTM_θ_k(z_k, h_k)  for k in S,  h_k elsewhere
        ŝ_k,k' = softmax_k'((h'_k Ŵ_q,k) · (h'_k' Ŵ_e,k') / √d)
        h_k ← h'_k + Σ_k' ŝ_k,k' h'_k' Ŵ_v,k'  for k in S

    Only the modules in S change, and only their dynamics get a gradient.
    Reference: equations (1) to (6) of [Goyal et al., 2019](
    https://arxiv.org/abs/1909.10893).

    With several heads S is chosen by the mean of their s_k,0, and z_k is the
    concatenation of their sums. Ŵ_v is the product of two matrices: one for
    each head, and one that maps all heads back to `units`. The latter is scaled
    down by 100 at first, because a GRU's h would grow with every step
    otherwise.

    Args:
        units: Positive integer. Size of the state of one module.
        num_modules: Positive integer. Number of modules, k_T in the paper.
        num_active: Positive integer. Number of modules that are updated at a
            step, k_A in the paper.
        dynamics: `"lstm"` or `"gru"`. What a module is.
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
        activation: Activation function of a module's new content: the cell
            input and the output of an LSTM, or the candidate state of a GRU.
        recurrent_activation: Activation function of the gates of a module.
        kernel_initializer: Initializer of all kernels except the recurrent one.
            The kernel that ends Ŵ_v is then scaled down by 100.
        recurrent_initializer: Initializer of each module's recurrent kernel.
        bias_initializer: Initializer of the biases of the modules.
        unit_forget_bias: Boolean. If `True`, the bias of an LSTM's forget gate
            is 1 at first. A GRU has no such gate.
        dropout: Number from 0 up to, but not including, 1. Fraction of the
            attention scores that are set to zero in training, both of the
            input's and of the messages'.
        seed: Integer or `None`. Seed of dropout.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: Float tensor: a vector `(batch, m)`, a set `(batch, n, m)` or
            an image `(batch, height, width, m)`.
        states: List of h `(batch, num_modules * units)`, module after module,
            and for LSTMs of c, of the same shape.
        training: Boolean. If `True`, apply dropout. On JAX `keras.layers.RNN`
            cannot draw random numbers in its loop: use `RIMs` for training
            there, or `unroll=True`.
        return_attention_scores: Boolean. If `True`, return the scores, too.

    Returns:
        h, and the list of the new states. With `return_attention_scores` also
        a tuple of three scores, which are those of `RIMs` at one step.

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
        activation: str | Callable = "tanh",
        recurrent_activation: str | Callable = "sigmoid",
        kernel_initializer: str | Callable = "glorot_uniform",
        recurrent_initializer: str | Callable = "orthogonal",
        bias_initializer: str | Callable = "zeros",
        unit_forget_bias: bool = True,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: object,
    ):
        super().__init__(**kwargs)
        check_positive_integers(num_modules=num_modules, num_active=num_active)
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
        self.set_up_slots(num_modules)

    def build(self, input_shape: Sequence[int | None]) -> None:
        check_step_inputs(self, input_shape, "batch")
        features = input_shape[-1]
        self.input_spec = keras.layers.InputSpec(axes={-1: features})
        modules, units = self.num_modules, self.units
        keys = self.num_heads * self.key_dim
        message_keys = self.num_message_heads * self.message_key_dim
        message_values = self.num_message_heads * self.message_value_dim
        # The order of the weights is that of saved files.
        add_weights(
            self,
            self.kernel_initializer,
            key_kernel=(features, keys),  # W_e
            value_kernel=(features, self.num_heads * self.value_dim),  # W_v
        )
        add_weights(
            self,
            self.kernel_initializer,
            stacked(axis=0),
            query_kernel=(modules, units, keys),  # W_q,k
            message_query_kernel=(modules, units, message_keys),  # Ŵ_q,k
            message_key_kernel=(modules, units, message_keys),  # Ŵ_e,k
            # Ŵ_v,k, first for each head, then back to units.
            message_value_kernel=(modules, units, message_values),
        )
        add_weights(
            self,
            self.kernel_initializer,
            scaled(MESSAGE_SCALE, stacked(axis=0)),
            message_output_kernel=(modules, message_values, units),
        )
        add_dynamics(self, modules, axis=0)  # θ_k

    def step(
        self,
        inputs: keras.KerasTensor,
        states: Sequence[keras.KerasTensor],
        mask: keras.KerasTensor | None = None,
        dropout_mask: keras.KerasTensor | None = None,
        message_dropout_mask: keras.KerasTensor | None = None,
    ) -> tuple[list[keras.KerasTensor], list[keras.KerasTensor]]:
        """Equations (1) to (6).

        Args:
            inputs: The inputs of a call.
            states: The states of a call.
            mask: Optional boolean tensor `(batch, n)`, `True` for valid
                positions.
            dropout_mask: Optional factors of the input's scores.
            message_dropout_mask: Optional factors of the messages' scores.

        Returns:
            The new states, and a list of three scores, whose shapes are those
            of `scores_shapes`.
        """
        h, *c = old = self.split_slots(states)

        # The input's positions x_p, after the null input x_0 = 0.
        x = ops.pad(flatten_positions(inputs), [(0, 0), (1, 0), (0, 0)])
        if mask is not None:  # The null input is always valid.
            mask = ops.pad(mask, [(0, 0), (1, 0)], constant_values=True)

        # s_k,p = softmax_p((h_k W_q,k) · (x_p W_e) / √d)
        # z_k = Σ_p s_k,p x_p W_v
        queries = project_each(h, self.query_kernel)
        z, scores = dot_product_attention(
            split_heads(queries, self.num_heads),
            split_heads(project(x, self.key_kernel), self.num_heads),
            split_heads(project(x, self.value_kernel), self.num_heads),
            mask,
            dropout_mask,
        )

        # S = the `num_active` modules with the smallest s_k,0
        relevance = -ops.sum(scores[..., 0], axis=1)
        active = most_relevant(relevance, self.num_active)
        is_active = ops.any(active, axis=1)[..., None]

        # h'_k = LSTM_θ_k(z_k, h_k)  for k in S,  h_k elsewhere
        updated = update(
            self,
            project_each(z, self.kernel),
            project_each(h, self.recurrent_kernel),
            h,
            c,
        )
        new_h, *new_c = (
            ops.where(is_active, new, x)
            for new, x in zip(updated, old, strict=True)
        )

        # ŝ_k,k' = softmax_k'((h'_k Ŵ_q,k) · (h'_k' Ŵ_e,k') / √d)
        # h_k ← h'_k + Σ_k' ŝ_k,k' h'_k' Ŵ_v,k'  for k in S
        read, message_scores = attend_to_slots(
            project_each(new_h, self.message_query_kernel),
            project_each(new_h, self.message_key_kernel),
            project_each(new_h, self.message_value_kernel),
            self.num_message_heads,
            message_dropout_mask,
        )
        read = project_each(read, self.message_output_kernel)
        new_h = ops.where(is_active, new_h + read, new_h)

        new_states = self.join_slots([new_h, *new_c])
        return new_states, [scores, is_active[..., 0], message_scores]

    def scores_shapes(self, step_shape: Sequence[int]) -> list[tuple[int, ...]]:
        """Shapes of the scores of input, activity and messages.

        Args:
            step_shape: Shape of one step's input, without the batch.
        """
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

    Modules, each an LSTM with weights of its own, compete for the input. Only
    those that attend to it most are updated and read from the others:
    `RIMsCell` has the equations. Reference: [Goyal et al., 2019](
    https://arxiv.org/abs/1909.10893).

    RIMs can replace `keras.layers.LSTM`. Masks, states and
    `keras.layers.Bidirectional` work as they do there. There are no
    regularizers, constraints, `recurrent_dropout`, `use_bias` and `use_cudnn`,
    and `dropout` acts on attention scores. Each step's input may be a set or an
    image (`accepts_sets` is `True`).

    Args:
        units: Positive integer. Size of the state of one module.
        num_modules: Positive integer. Number of modules, k_T in the paper.
        num_active: Positive integer. Number of modules that are updated at a
            step, k_A in the paper.
        dynamics: `"lstm"` or `"gru"`. What a module is.
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
        activation: Activation function of a module's new content: the cell
            input and the output of an LSTM, or the candidate state of a GRU.
        recurrent_activation: Activation function of the gates of a module.
        kernel_initializer: Initializer of all kernels except the recurrent one.
            The kernel that ends Ŵ_v is then scaled down by 100.
        recurrent_initializer: Initializer of each module's recurrent kernel.
        bias_initializer: Initializer of the biases of the modules.
        unit_forget_bias: Boolean. If `True`, the bias of an LSTM's forget gate
            is 1 at first. A GRU has no such gate.
        dropout: Number from 0 up to, but not including, 1. Fraction of the
            attention scores that are set to zero in training, both of the
            input's and of the messages'.
        seed: Integer or `None`. Seed of dropout.
        return_sequences: Boolean. If `True`, return h of all steps, else h
            of the last step.
        return_state: Boolean. If `True`, return the final states, too.
        go_backwards: Boolean. If `True`, read each sequence from its end, and
            return the outputs in that order.
        stateful: Boolean. If `True`, a batch starts from the final states of
            the batch before it, example by example.
        unroll: Boolean. If `True`, unroll the loop over the steps, whose number
            must then be fixed.
        **kwargs: Other arguments of `keras.layers.RNN`: `zero_output_for_mask`,
            `name`, `dtype` and `trainable`.

    Call arguments:
        sequences: Float tensor `(batch, time, m)` of vectors, `(batch, time, n,
            m)` of sets or `(batch, time, height, width, m)` of images.
        initial_state: Optional list of h `(batch, num_modules * units)` and,
            for LSTMs, c of the same shape. It replaces zeros.
        mask: Optional boolean tensor: a mask of steps `(batch, time)`, or a
            mask of positions, of the shape of `sequences` without its last
            axis. `True` marks valid ones. Invalid positions get no attention. A
            step is valid if any of its positions is. At other steps the state
            does not change and the layer repeats its last output, or zero if
            there was no valid step yet.
        training: Boolean. If `True`, apply dropout.
        return_attention_scores: Boolean. If `True`, return the scores of all
            steps, too.

    Returns:
        h at the last step, `(batch, num_modules * units)`, module after module;
        with `return_sequences` h at all steps, `(batch, time, …)`. With
        `return_state` a tuple of h and the final states. With
        `return_attention_scores` a pair: all this, and a tuple of three
        tensors:

        - the scores of inputs `(batch, time, num_heads, num_modules, 1 + n)`,
          the null input first,
        - `(batch, time, num_modules)`, 1 for active modules, else 0,
        - the scores of messages `(batch, time, num_message_heads, num_modules,
          num_modules)`, the reader first.

        At padded steps all three are zero.

    Raises:
        ValueError: As `RIMsCell` does, and if the mask or the initial state has
            another shape.

    Example:

    >>> layer = RIMs(units=100, num_modules=6, num_active=4)
    >>> layer(keras.Input((50, 32))).shape
    (None, 600)
    """

    def __init__(
        self,
        units: int,
        num_modules: int,
        num_active: int,
        *args: object,
        **kwargs: object,
    ):
        super().__init__(
            RIMsCell, units, num_modules, num_active, *args, **kwargs
        )

    __init__.__signature__ = constructor_signature(RIMsCell)
