import keras
import numpy as np
from keras import ops

from keras_relational.layers import slots
from keras_relational.layers.attention import masked_softmax
from keras_relational.layers.attention import scaled_dot_products
from keras_relational.layers.attention import split_heads
from keras_relational.layers.attention import weighted_sum
from keras_relational.layers.cells import check_built
from keras_relational.layers.cells import repeat_for_batch
from keras_relational.layers.initial_weights import add_weights
from keras_relational.layers.initial_weights import clone_initializer
from keras_relational.layers.operations import at_least_float32
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class SCOFFCell(slots.SlotCell):
    """One step of SCOFF, as an RNN cell: object files that choose schemata.

    Object files h_k, the slots of the state, look for their part of the input,
    positions a_p; each is updated by the one of several schemata, GRUs θ_j with
    which all are tried, that suits it best; then they tell each other:

        s_k,p = softmax_k((W_q h_k) · (a_p W_e) / √d)
        z_k = Σ_p s_k,p a_p W_v
        h̃_k,j = GRU_θ_j(z_k, h_k)
        i_k = argmax_j((h_k W̃_q) · (h̃_k,j W̃_e) + γ_j),   γ ~ Gumbel(0, 1)
        h'_k = h̃_k,i_k
        ŝ_k,k' = softmax_k'((h_k Ŵ_q) · (h'_k' Ŵ_e) / √d)
        h_k ← h'_k + Σ_k' ŝ_k,k' h'_k' Ŵ_v

    Object files compete for each position, in the first softmax. No weight
    belongs to one of them, so they are exchangeable, and the same weights serve
    any number. The choice of a schema is hard, and its gradient that of
    softmax((… + γ) / temperature); γ is 0 except in training. Reference:
    Algorithm 1 of [Goyal et al., 2020](https://arxiv.org/abs/2006.16225).

    With several heads, z_k is theirs side by side, and Ŵ_v the product of one
    matrix a head and one that leads back to `units`. The paper gives sizes of
    heads and does not say so; nor the sizes of the encodings of positions
    (here `position_dim`) and of the keys of schemata (here `key_dim`).

    Object files that start alike would stay alike. Each starts from a mean and
    a scale that are learned and shared, and noise of its own that is the same
    in every layer: h_k = mean + scale · noise_k.

    Of initial weights the paper says nothing. Here W_v is drawn smaller by
    √positions, whose values z adds up, and the matrix of Ŵ_v that leads back to
    `units` a hundred times smaller: a layer that is not trained yet is nearly a
    GRU with an attended input. With both of full size h would grow with every
    step, and with it the differences between schemata, until none of them were
    drawn but one. Training may get there too, in episodes of hundreds of steps:
    the h of a GRU is what it was, in part, and messages on top. That of an LSTM
    is drawn anew from c, which gets no messages.

    With `num_active`, only that many object files are updated in a step, those
    with the most input attention, and the others keep their state: what the
    appendix calls SCOFF; without, it is its SCOFF-ab. Schemata are tried for
    those alone. An LSTM's messages are added to its h alone. The pseudocode of
    appendix G differs from Algorithm 1, which is followed here: there queries
    of messages come from the new h, and their queries, keys and values are of
    the schema that was chosen.

    Args:
        units: Positive integer, size of an object file.
        num_object_files: Positive integer, n_f in the paper.
        num_schemata: Positive integer, n_s in the paper.
        dynamics: `"gru"` or `"lstm"`, what a schema is.
        num_active: Number of object files updated in a step; all by default.
        num_heads: Heads of the attention to the input.
        key_dim: Size of its keys for a head, d_e in the paper.
        value_dim: Size of its values for a head.
        num_message_heads: Heads of the attention between object files.
        message_key_dim: Size of its keys for a head.
        message_value_dim: Size of its values for a head.
        position_dim: Size of the encodings e_p that are learned for positions
            of a set or image and appended to what is there, or 0.
        temperature: Positive number to begin with. A schedule, such as a
            callback, changes it by `cell.current_temperature.assign`.
        activation: As in `keras.layers.GRU`, as the rest.
        recurrent_activation: See above.
        kernel_initializer: Of all kernels but the recurrent one, two of which
            are then made smaller, as said above.
        recurrent_initializer: See above.
        bias_initializer: See above.
        unit_forget_bias: As in `keras.layers.LSTM`; for LSTMs.
        dropout: Share of attention scores that are dropped in training.
        seed: Seed of the choice in training, and of dropout.

    Call arguments:
        inputs: Float tensor: a vector `(batch, m)`, a set `(batch, n, m)` or
            an image `(batch, height, width, m)`.
        states: `(batch, num_object_files * units)`, h, file after file; for an
            LSTM c too.
        training: Whether to draw γ, and dropout. On JAX `keras.layers.RNN`
            cannot draw anything in its loop: train `SCOFF` there, or let it
            have `unroll=True`.
        return_attention_scores: Whether to return them, too.

    Returns:
        h, and the list of the new states; and with `return_attention_scores`
        three tensors of scores, those of `SCOFF` at one step.

    Raises:
        ValueError: If a size is not a positive integer, `dynamics` is unknown,
            or the inputs are something else, or other positions than at build.

    Example:

    >>> cell = SCOFFCell(units=100, num_object_files=6, num_schemata=4)
    >>> keras.layers.RNN(cell)(keras.Input((50, 32))).shape
    (None, 600)
    """

    def __init__(
        self,
        units,
        num_object_files,
        num_schemata,
        dynamics="gru",
        num_active=None,
        num_heads=1,
        key_dim=64,
        value_dim=64,
        num_message_heads=4,
        message_key_dim=32,
        message_value_dim=32,
        position_dim=16,
        temperature=1.0,
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
        check_positive_integers(
            num_object_files=num_object_files, num_schemata=num_schemata
        )
        if not isinstance(position_dim, int) or position_dim < 0:
            raise ValueError(
                "`position_dim` must be an integer, 0 or more. Received: "
                f"position_dim={position_dim}"
            )
        if temperature <= 0:
            raise ValueError(
                "`temperature` must be positive. Received: "
                f"temperature={temperature}"
            )
        super().__init__(
            num_slots=num_object_files,
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
        self.num_object_files = num_object_files
        self.num_schemata = num_schemata
        self.position_dim = position_dim
        self.temperature = temperature

    def build(self, input_shape):
        slots.check_shape(self, input_shape, "batch")
        step_shape = tuple(input_shape[1:])
        self.input_spec = keras.layers.InputSpec(axes={-1: step_shape[-1]})
        features = step_shape[-1]
        self.position_encodings = None
        if len(step_shape) > 1 and self.position_dim:
            features += self.position_dim
            self.position_encodings = self.add_weight(
                (slots.num_positions(step_shape), self.position_dim),
                keras.initializers.RandomNormal(stddev=1.0),
                name="position_encodings",
            )
        files, heads = self.units, self.num_heads
        message_keys = self.num_message_heads * self.message_key_dim
        message_values = self.num_message_heads * self.message_value_dim
        add_weights(
            self,
            self.kernel_initializer,
            query_kernel=(files, heads * self.key_dim),
            key_kernel=(features, heads * self.key_dim),
            schema_query_kernel=(files, self.key_dim),
            schema_key_kernel=(files, self.key_dim),
            message_query_kernel=(files, message_keys),
            message_key_kernel=(files, message_keys),
            message_value_kernel=(files, message_values),
        )
        add_weights(
            self,
            self.kernel_initializer,
            lambda *own: slots.scaled(
                clone_initializer(*own), slots.num_positions(step_shape) ** -0.5
            ),
            value_kernel=(features, heads * self.value_dim),
        )
        add_weights(
            self,
            self.kernel_initializer,
            lambda *own: slots.scaled(
                clone_initializer(*own), slots.MESSAGE_SCALE
            ),
            message_output_kernel=(message_values, files),
        )
        self.add_dynamics(self.num_schemata, axis=1)
        self.initial_mean = self.add_weight(
            (files,), "zeros", name="initial_mean"
        )
        self.initial_scale = self.add_weight(
            (files,), "ones", name="initial_scale"
        )
        self.current_temperature = self.add_weight(
            (),
            keras.initializers.Constant(self.temperature),
            trainable=False,
            name="current_temperature",
        )

    def step(self, inputs, states, noise, mask=None):
        """The new states, and three kinds of scores: `scores_shapes`.

        Args:
            inputs: As in a call.
            states: As in a call.
            noise: What `noise` has drawn, or nothing.
            mask: Optional boolean tensor `(batch, n)`, `True` for positions
                that are there.
        """
        gumbel, keep, message_keep = [*noise, None, None, None][:3]
        old = self.as_slots(states)
        values, scores = self._attention(inputs, old[0], mask)
        shares = ops.cast(scores, values.dtype)
        if keep is not None:
            shares = shares * keep
        active = None
        if self.num_active is not None:
            relevance = ops.sum(scores, axis=(1, 3))
            active = slots.most_relevant(relevance, self.num_active)
        # Nothing is computed for object files that are not updated.
        h, *c = [slots.picked(x, active) for x in old]
        candidates = self.updated(
            self._from_inputs(slots.picked(shares, active, axis=2), values),
            self._products(h, self.recurrent_kernel),
            *(ops.expand_dims(h, 2), [ops.expand_dims(x, 2) for x in c]),
        )
        gumbel = slots.picked(gumbel, active)
        choice, schema_scores = self._choice(h, candidates[0], gumbel)
        new = [
            ops.sum(ops.expand_dims(choice, -1) * candidate, axis=2)
            for candidate in candidates
        ]
        all_h = slots.put_back(new[0], active, old[0])
        read, message_scores = slots.messages(
            slots.product(h, self.message_query_kernel),
            slots.product(all_h, self.message_key_kernel),
            slots.product(all_h, self.message_value_kernel),
            self.num_message_heads,
            slots.picked(message_keep, active, axis=2),
        )
        new[0] = new[0] + slots.product(read, self.message_output_kernel)
        new = [
            slots.put_back(one, active, other)
            for one, other in zip(new, old, strict=True)
        ]
        schema_scores = slots.put_back(schema_scores, active)
        message_scores = slots.put_back(message_scores, active, axis=2)
        return self.as_states(new), [scores, schema_scores, message_scores]

    def _attention(self, inputs, h, mask):
        """Values of positions, by heads, and scores of them for each file."""
        a = slots.as_positions(inputs)
        if self.position_encodings is not None:
            encodings = ops.cast(self.position_encodings, a.dtype)
            if a.shape[1] != encodings.shape[0]:
                raise ValueError(
                    f"{self.name} was built for {encodings.shape[0]} positions "
                    "a step, and has an encoding for each. Received: "
                    f"{a.shape[1]} of them. Pad the inputs to as many and mask "
                    "the padding, or let `position_dim` be 0."
                )
            shape = (ops.shape(a)[0], *encodings.shape)
            encodings = ops.broadcast_to(encodings, shape)
            a = ops.concatenate([a, encodings], axis=-1)
        queries, keys, values = (
            split_heads(slots.product(x, kernel), self.num_heads)
            for x, kernel in (
                (h, self.query_kernel),
                (a, self.key_kernel),
                (a, self.value_kernel),
            )
        )
        scores = ops.swapaxes(
            masked_softmax(scaled_dot_products(keys, queries)), 2, 3
        )
        if mask is not None:
            scores = ops.where(mask[:, None, None], scores, 0)
        return values, scores

    def _from_inputs(self, shares, values):
        """z times the kernel: `(batch, files, schemata, gates)`."""
        files, n = shares.shape[2:]
        if n >= files:
            return self._products(weighted_sum(shares, values), self.kernel)
        # Of fewer positions than files, it is less to multiply first.
        heads, _, size = values.shape[1:]
        rows = ops.reshape(ops.swapaxes(values, 1, 2), (-1, heads, size))
        kernels = ops.reshape(self.kernel, (heads, size, -1))
        values = slots.each_its_own(rows, kernels)
        values = ops.reshape(values, (-1, n * heads, values.shape[-1]))
        shares = ops.transpose(shares, (0, 2, 3, 1))
        shares = ops.reshape(shares, (-1, files, n * heads))
        shape = (-1, files, *self.kernel.shape[1:])
        return ops.reshape(ops.matmul(shares, values), shape)

    def _products(self, x, kernel):
        """`(batch, files, m)` times `(m, schemata, gates)`."""
        shape = (-1, x.shape[1], *kernel.shape[1:])
        kernel = ops.reshape(kernel, (kernel.shape[0], -1))
        return ops.reshape(slots.product(x, kernel), shape)

    def _choice(self, h, candidates, gumbel):
        """Of a schema, one-hot, and its scores: `(batch, files, schemata)`."""
        query = slots.product(h, self.schema_query_kernel)
        # A query for what is not a key yet saves the keys of all candidates.
        query = slots.product(query, ops.transpose(self.schema_key_kernel))
        logits = ops.sum(
            at_least_float32(ops.expand_dims(query, 2))
            * at_least_float32(candidates),
            axis=-1,
        )
        if gumbel is not None:
            logits = logits + ops.cast(gumbel, logits.dtype)
        chosen = ops.one_hot(
            ops.argmax(logits, axis=-1), self.num_schemata, dtype=logits.dtype
        )
        temperature = ops.cast(self.current_temperature, logits.dtype)
        scores = masked_softmax(logits / temperature)
        chosen = chosen + scores - ops.stop_gradient(scores)
        return ops.cast(chosen, candidates.dtype), scores

    def noise(self, batch_shape, step_shape, training):
        """γ and, with dropout, what other scores are multiplied by.

        Args:
            batch_shape: As for `SlotCell`, as the rest.
            step_shape: See above.
            training: See above.

        Returns:
            List of three tensors, one, or none.
        """
        if not training:
            return []
        shape = (*batch_shape, *self.scores_shapes(step_shape)[1])
        draws = slots.uniform(shape, self.seed_generator)
        gumbel = -ops.log(-ops.log(ops.maximum(draws, 1e-7)))
        return [gumbel, *super().noise(batch_shape, step_shape, training)]

    def scores_shapes(self, step_shape):
        """Of input, schemata and messages, without the batch."""
        files = self.num_object_files
        return [
            (self.num_heads, files, slots.num_positions(step_shape)),
            (files, self.num_schemata),
            (self.num_message_heads, files, files),
        ]

    def get_initial_state(self, batch_size=None):
        check_built(self)
        # The first files' noise is the same for any number of them, so that
        # weights can be moved to a layer with another number.
        noise = np.random.default_rng(0).standard_normal(
            (self.num_object_files, self.units), "float32"
        )
        h = self.initial_mean + self.initial_scale * noise
        h = ops.reshape(ops.cast(h, self.compute_dtype), (1, self.output_size))
        h = repeat_for_batch(h, batch_size)
        if self.dynamics == "gru":
            return [h]
        return [h, ops.zeros_like(h)]

    def arguments(self):
        """Those of the constructor, as they are stored in a configuration."""
        return {
            **super().arguments(),
            "num_object_files": self.num_object_files,
            "num_schemata": self.num_schemata,
            "position_dim": self.position_dim,
            "temperature": self.temperature,
        }


@keras.saving.register_keras_serializable(package="keras_relational")
class SCOFF(slots.SlotRNN):
    """Object files that share schemata, where a GRU or LSTM would be.

    At each step object files compete for parts of the input; each is updated
    by that one of several schemata, GRUs, which suits it; and they tell each
    other: the equations are at `SCOFFCell`. Reference: Algorithm 1 of [Goyal et
    al., 2020](https://arxiv.org/abs/2006.16225).

    It takes the place of `keras.layers.GRU`: masks, states and
    `keras.layers.Bidirectional` are as there, and arguments, but for
    regularizers, constraints, `recurrent_dropout`, `use_bias`, `reset_after`
    and `use_cudnn`, which it has not, and `dropout`, which is one of attention
    here. Its size of state is that of all object files; its number of weights
    does not depend on how many there are. Where it begins is learned, but not
    by a stateful one, which begins where it stopped: call `reset_state` after
    loading it, or setting its weights. A mask of positions it turns into one of
    steps for the layers that follow; `keras.layers.Bidirectional` does not.

    Args:
        units: As for `SCOFFCell`, as all before `return_sequences`.
        num_object_files: See above.
        num_schemata: See above.
        dynamics: See above.
        num_active: See above.
        num_heads: See above.
        key_dim: See above.
        value_dim: See above.
        num_message_heads: See above.
        message_key_dim: See above.
        message_value_dim: See above.
        position_dim: See above.
        temperature: See above.
        activation: See above.
        recurrent_activation: See above.
        kernel_initializer: See above.
        recurrent_initializer: See above.
        bias_initializer: See above.
        unit_forget_bias: See above.
        dropout: See above.
        seed: See above.
        return_sequences: As in `keras.layers.GRU`, as the rest.
        return_state: See above.
        go_backwards: See above.
        stateful: See above.
        unroll: See above.

    Call arguments:
        sequences: Float tensor `(batch, time, m)` of vectors, `(batch, time, n,
            m)` of sets or `(batch, time, height, width, m)` of images.
        initial_state: Optional: h `(batch, num_object_files * units)`, and c
            for LSTMs, in place of the one that is learned.
        mask: Optional boolean tensor `(batch, time)`, `True` for real steps; or
            of positions, `sequences` without its last axis, of which those that
            are not there get no attention, and a step is real if one of them
            is. At others nothing changes, and the last output is put out again,
            or zero if there is none.
        training: Whether schemata are drawn, not just chosen, and whether there
            is dropout.
        return_attention_scores: Whether to return those of all steps, too.

    Returns:
        h at the last step, `(batch, num_object_files * units)`, object file by
        object file, or at all, `(batch, time, …)`; with `return_state` a tuple
        of that and the states. With `return_attention_scores` a pair of all
        that and three tensors: the scores of inputs `(batch, time, num_heads,
        num_object_files, n)`, which sum to 1 over object files; of schemata
        `(batch, time, num_object_files, num_schemata)`, the largest of which is
        chosen; and of messages `(batch, time, num_message_heads,
        num_object_files, num_object_files)`, the reader first. They are zero at
        padded steps, and the last two for object files that are not updated.

    Raises:
        ValueError: As for `SCOFFCell`, and if the mask or the initial state has
            another shape.

    Example:

    >>> layer = SCOFF(units=100, num_object_files=6, num_schemata=4)
    >>> layer(keras.Input((50, 32))).shape
    (None, 600)
    """

    def __init__(
        self,
        units,
        num_object_files,
        num_schemata,
        dynamics="gru",
        num_active=None,
        num_heads=1,
        key_dim=64,
        value_dim=64,
        num_message_heads=4,
        message_key_dim=32,
        message_value_dim=32,
        position_dim=16,
        temperature=1.0,
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
        cell = SCOFFCell(
            units=units,
            num_object_files=num_object_files,
            num_schemata=num_schemata,
            dynamics=dynamics,
            num_active=num_active,
            num_heads=num_heads,
            key_dim=key_dim,
            value_dim=value_dim,
            num_message_heads=num_message_heads,
            message_key_dim=message_key_dim,
            message_value_dim=message_value_dim,
            position_dim=position_dim,
            temperature=temperature,
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
