import functools

import keras
from keras import ops

from keras_relational.layers import slots
from keras_relational.layers.attention import dot_product_attention
from keras_relational.layers.attention import split_heads
from keras_relational.layers.cells import zero_states
from keras_relational.layers.initial_weights import add_weights
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class RIMsCell(slots.SlotCell):
    """One step of recurrent independent mechanisms, as an RNN cell.

    Modules h_k with dynamics of their own, LSTMs θ_k, attend to the input,
    positions x_p, or to x_0 = 0, where there is nothing to see:

        s_k,p = softmax_p((h_k W_q,k) · (x_p W_e) / √d)
        z_k = Σ_p s_k,p x_p W_v
        S = the `num_active` modules with the smallest s_k,0
        h'_k = LSTM_θ_k(z_k, h_k)  for k in S,  h_k elsewhere
        ŝ_k,k' = softmax_k'((h'_k Ŵ_q,k) · (h'_k' Ŵ_e,k') / √d)
        h_k ← h'_k + Σ_k' ŝ_k,k' h'_k' Ŵ_v,k'  for k in S

    so that of the modules only those in S change, and only their dynamics get a
    gradient. Reference: equations (1) to (6) of [Goyal et al., 2019](
    https://arxiv.org/abs/1909.10893). With several heads S goes by the mean of
    their s_k,0, z_k is what they see side by side, and Ŵ_v the product of one
    matrix a head and one that leads back to `units`. The latter is drawn a
    hundred times smaller than other kernels: a GRU's h would grow with every
    step.

    Args:
        units: Positive integer, size of a module.
        num_modules: Positive integer, k_T in the paper.
        num_active: Positive integer, k_A in the paper.
        dynamics: `"lstm"` or `"gru"`.
        num_heads: Heads of the attention to the input.
        key_dim: Size of its keys for a head.
        value_dim: Size of its values for a head.
        num_message_heads: Heads of the attention between modules.
        message_key_dim: Size of its keys for a head.
        message_value_dim: Size of its values for a head.
        activation: As in `keras.layers.LSTM`, as the rest.
        recurrent_activation: See above.
        kernel_initializer: Of all kernels but the recurrent one.
        recurrent_initializer: See above.
        bias_initializer: See above.
        unit_forget_bias: As in `keras.layers.LSTM`; for LSTMs.
        dropout: Share of attention scores that are dropped in training.
        seed: Seed of dropout.

    Call arguments:
        inputs: Float tensor: a vector `(batch, m)`, a set `(batch, n, m)` or
            an image `(batch, height, width, m)`.
        states: `(batch, num_modules * units)`, h, module after module; for an
            LSTM c too.
        training: Whether there is dropout. On JAX `keras.layers.RNN` cannot
            draw anything in its loop: train `RIMs` there, or let it have
            `unroll=True`.
        return_attention_scores: Whether to return them, too.

    Returns:
        h, and the list of the new states; and with `return_attention_scores`
        three tensors of scores, those of `RIMs` at one step.

    Raises:
        ValueError: If a size is not a positive integer, more modules are active
            than there are, `dynamics` is unknown, or the inputs are something
            else.

    Example:

    >>> cell = RIMsCell(units=100, num_modules=6, num_active=4)
    >>> keras.layers.RNN(cell)(keras.Input((50, 32))).shape
    (None, 600)
    """

    def __init__(
        self,
        units,
        num_modules,
        num_active,
        dynamics="lstm",
        num_heads=1,
        key_dim=64,
        value_dim=64,
        num_message_heads=4,
        message_key_dim=32,
        message_value_dim=32,
        activation="tanh",
        recurrent_activation="sigmoid",
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        unit_forget_bias=True,
        dropout=0.0,
        seed=None,
        **kwargs,
    ):
        check_positive_integers(num_modules=num_modules, num_active=num_active)
        super().__init__(
            num_slots=num_modules,
            units=units,
            dynamics=dynamics,
            num_active=num_active,
            num_heads=num_heads,
            key_dim=key_dim,
            value_dim=value_dim,
            num_message_heads=num_message_heads,
            message_key_dim=message_key_dim,
            message_value_dim=message_value_dim,
            activation=activation,
            recurrent_activation=recurrent_activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            unit_forget_bias=unit_forget_bias,
            dropout=dropout,
            seed=seed,
            **kwargs,
        )
        self.num_modules = num_modules

    def build(self, input_shape):
        slots.check_shape(self, input_shape, "batch")
        step_shape = tuple(input_shape[1:])
        self.input_spec = keras.layers.InputSpec(axes={-1: step_shape[-1]})
        add_weights(
            self,
            self.kernel_initializer,
            key_kernel=(step_shape[-1], self.num_heads * self.key_dim),
            value_kernel=(step_shape[-1], self.num_heads * self.value_dim),
        )
        add_weights(
            self,
            self.kernel_initializer,
            functools.partial(slots.one_each, axis=0),
            **{
                name: (self.num_modules, *shape)
                for name, shape in self._shapes_of_a_module().items()
            },
        )
        values = self.num_message_heads * self.message_value_dim
        add_weights(
            self,
            self.kernel_initializer,
            lambda *own: slots.scaled(
                slots.one_each(*own, axis=0), slots.MESSAGE_SCALE
            ),
            message_output_kernel=(self.num_modules, values, self.units),
        )
        self.add_dynamics(self.num_modules, axis=0)

    def _shapes_of_a_module(self):
        keys = self.num_message_heads * self.message_key_dim
        values = self.num_message_heads * self.message_value_dim
        return {
            "query_kernel": (self.units, self.num_heads * self.key_dim),
            "message_query_kernel": (self.units, keys),
            "message_key_kernel": (self.units, keys),
            "message_value_kernel": (self.units, values),
        }

    def step(self, inputs, states, noise, mask=None):
        """The new states, and three kinds of scores: `scores_shapes`.

        Args:
            inputs: As in a call.
            states: As in a call.
            noise: What `noise` has drawn, or nothing.
            mask: Optional boolean tensor `(batch, n)`, `True` for positions
                that are there.
        """
        keep, message_keep = noise or (None, None)
        h, *c = old = self.as_slots(states)
        z, scores = self._attended_inputs(inputs, h, keep, mask)
        relevance = -ops.sum(scores[..., 0], axis=1)
        active = slots.most_relevant(relevance, self.num_active)
        new = self.updated(
            slots.each_its_own(z, self.kernel),
            slots.each_its_own(h, self.recurrent_kernel),
            *(h, c),
        )
        there = ops.any(active, axis=1)[..., None]
        new = [
            ops.where(there, one, other)
            for one, other in zip(new, old, strict=True)
        ]
        read, message_scores = slots.messages(
            slots.each_its_own(new[0], self.message_query_kernel),
            slots.each_its_own(new[0], self.message_key_kernel),
            slots.each_its_own(new[0], self.message_value_kernel),
            self.num_message_heads,
            message_keep,
        )
        read = slots.each_its_own(read, self.message_output_kernel)
        new[0] = ops.where(there, new[0] + read, new[0])
        return self.as_states(new), [scores, there[..., 0], message_scores]

    def _attended_inputs(self, inputs, h, keep, mask):
        """z `(batch, modules, heads * value_dim)`, and the scores."""
        x = ops.pad(slots.as_positions(inputs), [(0, 0), (1, 0), (0, 0)])
        queries = slots.each_its_own(h, self.query_kernel)
        queries = split_heads(queries, self.num_heads)
        keys, values = (
            split_heads(slots.product(x, kernel), self.num_heads)
            for kernel in (self.key_kernel, self.value_kernel)
        )
        if mask is not None:  # The null input is always there.
            mask = ops.pad(mask, [(0, 0), (1, 0)], constant_values=True)
        return dot_product_attention(queries, keys, values, mask, keep)

    def scores_shapes(self, step_shape):
        """Of input, activity and messages, without the batch."""
        modules = self.num_modules
        return [
            (self.num_heads, modules, 1 + slots.num_positions(step_shape)),
            (modules,),
            (self.num_message_heads, modules, modules),
        ]

    def get_initial_state(self, batch_size=None):
        return zero_states(self, batch_size, self.state_size)

    def arguments(self):
        """Those of the constructor, as they are stored in a configuration."""
        return {**super().arguments(), "num_modules": self.num_modules}


@keras.saving.register_keras_serializable(package="keras_relational")
class RIMs(slots.SlotRNN):
    """Recurrent independent mechanisms, where an LSTM or GRU would be.

    Modules, each an LSTM of its own, compete for the input; only those that see
    most of it are updated, and hear of the others: the equations are at
    `RIMsCell`. Reference: [Goyal et al., 2019](
    https://arxiv.org/abs/1909.10893). Arguments, masks, states and
    `keras.layers.Bidirectional` are as in `keras.layers.LSTM`, which has
    regularizers, constraints, `recurrent_dropout`, `use_bias` and `use_cudnn`
    besides.

    Args:
        units: As for `RIMsCell`, as all before `return_sequences`.
        num_modules: See above.
        num_active: See above.
        dynamics: See above.
        num_heads: See above.
        key_dim: See above.
        value_dim: See above.
        num_message_heads: See above.
        message_key_dim: See above.
        message_value_dim: See above.
        activation: See above.
        recurrent_activation: See above.
        kernel_initializer: See above.
        recurrent_initializer: See above.
        bias_initializer: See above.
        unit_forget_bias: See above.
        dropout: See above.
        seed: See above.
        return_sequences: As in `keras.layers.LSTM`, as the rest.
        return_state: See above.
        go_backwards: See above.
        stateful: See above.
        unroll: See above.

    Call arguments:
        sequences: Float tensor `(batch, time, m)` of vectors, `(batch, time, n,
            m)` of sets or `(batch, time, height, width, m)` of images.
        initial_state: Optional: h `(batch, num_modules * units)`, and c for
            LSTMs, in place of zeros.
        mask: Optional boolean tensor `(batch, time)`, `True` for real steps; or
            of positions, `sequences` without its last axis, of which those that
            are not there get no attention, and a step is real if one of them
            is. At others nothing changes, and the last output is put out again,
            or zero if there is none.
        training: Whether there is dropout.
        return_attention_scores: Whether to return those of all steps, too.

    Returns:
        h at the last step, `(batch, num_modules * units)`, module by module, or
        at all, `(batch, time, …)`; with `return_state` a tuple of that and the
        states. With `return_attention_scores` a pair of all that and three
        tensors: the scores of inputs `(batch, time, num_heads, num_modules, 1 +
        n)`, that of nothing first; 1 for modules that are active, `(batch,
        time, num_modules)`; and the scores of messages `(batch, time,
        num_message_heads, num_modules, num_modules)`, the reader first. They
        are zero at padded steps.

    Raises:
        ValueError: As for `RIMsCell`, and if the mask has another shape.

    Example:

    >>> layer = RIMs(units=100, num_modules=6, num_active=4)
    >>> layer(keras.Input((50, 32))).shape
    (None, 600)
    """

    def __init__(
        self,
        units,
        num_modules,
        num_active,
        dynamics="lstm",
        num_heads=1,
        key_dim=64,
        value_dim=64,
        num_message_heads=4,
        message_key_dim=32,
        message_value_dim=32,
        activation="tanh",
        recurrent_activation="sigmoid",
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        unit_forget_bias=True,
        dropout=0.0,
        seed=None,
        return_sequences=False,
        return_state=False,
        go_backwards=False,
        stateful=False,
        unroll=False,
        **kwargs,
    ):
        cell = RIMsCell(
            units=units,
            num_modules=num_modules,
            num_active=num_active,
            dynamics=dynamics,
            num_heads=num_heads,
            key_dim=key_dim,
            value_dim=value_dim,
            num_message_heads=num_message_heads,
            message_key_dim=message_key_dim,
            message_value_dim=message_value_dim,
            activation=activation,
            recurrent_activation=recurrent_activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            unit_forget_bias=unit_forget_bias,
            dropout=dropout,
            seed=seed,
            dtype=kwargs.get("dtype"),
        )
        super().__init__(
            cell,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            **kwargs,
        )
