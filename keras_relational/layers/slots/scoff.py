from collections.abc import Sequence

import keras
from keras import ops

from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._attention import project
from keras_relational.layers._attention import scaled_dot_products
from keras_relational.layers._attention import split_heads
from keras_relational.layers._cells import check_built
from keras_relational.layers._cells import repeat_for_batch
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers._operations import at_least_float32
from keras_relational.layers.slots._active import attend_to_slots
from keras_relational.layers.slots._active import gather_active
from keras_relational.layers.slots._active import most_relevant
from keras_relational.layers.slots._active import scatter_active
from keras_relational.layers.slots._cell import SlotCell
from keras_relational.layers.slots._dynamics import add_dynamics
from keras_relational.layers.slots._dynamics import update
from keras_relational.layers.slots._initializers import MESSAGE_SCALE
from keras_relational.layers.slots._initializers import scaled
from keras_relational.layers.slots._initializers import stacked
from keras_relational.layers.slots._noise import fixed_normal
from keras_relational.layers.slots._noise import gumbel_noise
from keras_relational.layers.slots._positions import append_encodings
from keras_relational.layers.slots._positions import check_step_inputs
from keras_relational.layers.slots._positions import num_positions
from keras_relational.layers.slots._products import Products
from keras_relational.layers.slots._products import project_attended
from keras_relational.layers.slots._rnn import SlotRNN
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

SCHEMA_KEYS = ("shared", "separate")


@keras.saving.register_keras_serializable(package="keras_relational")
class SCOFFCell(SlotCell):
    """One step of SCOFF, as an RNN cell: object files that choose schemata.

    The state consists of object files h_k. They compete for the positions a_p
    of the input. Each object file then tries all schemata, and takes the result
    of the one that fits best. A schema is a GRU with weights θ_j. At the end
    the object files exchange messages:

        s_k,p = softmax_k((h_k W_q) · (a_p W_e) / √d)
        z_k = Σ_p s_k,p a_p W_v
        h̃_k,j = GRU_θ_j(z_k, h_k)
        i_k = argmax_j((h_k W̃_q) · (h̃_k,j W̃_e) + γ_j),   γ ~ Gumbel(0, 1)
        h'_k = h̃_k,i_k
        ŝ_k,k' = softmax_k'((h_k Ŵ_q) · (h'_k' Ŵ_e) / √d)
        h_k ← h'_k + Σ_k' ŝ_k,k' h'_k' Ŵ_v

    The first softmax runs over object files: they compete for each position.
    All object files share all weights, so they are exchangeable, and the same
    weights serve any number of them. The noise γ is drawn in training only. The
    choice i_k is a one-hot vector with the gradient of softmax((… + γ) / τ):
    the straight-through Gumbel-softmax. τ is the cell's weight
    `current_temperature`: 1, unless a callback assigns another. Reference:
    Algorithm 1 of [Goyal et al., 2020](https://arxiv.org/abs/2006.16225).

    What the paper leaves open:

    - Several heads: z_k is the concatenation of their sums. Ŵ_v is the product
      of two matrices: one makes the values of each head, the other maps all
      heads back to `units`.
    - Initial state: h_k = mean + scale · noise_k. The mean and the scale are
      learned and shared. The noise is fixed: object files that start alike
      would stay alike.
    - Initial weights: Glorot's uniform, orthogonal recurrent kernels, biases of
      0, and 1 for the forget gate of an LSTM. W_v is divided by √positions, the
      last matrix of Ŵ_v by 100, so that a new layer is nearly a GRU with
      attended input.
    - Messages are not bounded. A GRU keeps part of its h, messages included, so
      its state may grow without end. An LSTM computes h from c at each step.
      With `gated_messages`, m_k is read by all heads of object file k, and no
      number grows by more than 1 a step:

            h_k ← h'_k + σ(m_k Ŵ_g + b_g) tanh(m_k Ŵ_o + b_o)

    - One schema may take over before the others have learned anything.
      `schema_keys="separate"` and a small `balance` work against this. The
      choice is then

            i_k = argmax_j((h_k W̃_q + b) · (h̃_k,j W̃_e,j + b_j) / √d + γ_j)

    With `num_active` only the object files with the most input attention are
    updated. The paper's appendix calls this SCOFF, and the dense layer
    SCOFF-ab.

    Args:
        units: Positive integer. Size of the state of one object file.
        num_object_files: Positive integer. Number of object files, n_f in the
            paper.
        num_schemata: Positive integer. Number of schemata that object files
            choose from, n_s in the paper.
        dynamics: `"gru"` or `"lstm"`, the kind of network that a schema is.
        num_active: Positive integer or `None`. Number of object files that are
            updated at a step: those with the most attention to the input. The
            others keep their state. With `None` all are updated.
        num_heads: Positive integer. Number of heads of the attention to the
            input.
        key_dim: Positive integer. Size of the queries and keys, for each head
            of the attention to the input and for the choice of schemata, d_e in
            the paper.
        value_dim: Positive integer. Size of the values, for each head of the
            attention to the input.
        num_message_heads: Integer, 0 or more. Number of heads of the attention
            between object files. With 0 they exchange no messages. A single
            object file could only read itself.
        message_key_dim: Positive integer. Size of the queries and keys, for
            each head of the attention between object files.
        message_value_dim: Positive integer. Size of the values, for each head
            of the attention between object files.
        position_dim: Integer, 0 or more. Size of the learned encoding e_p that
            is appended to each position of a set or an image. With 0 there are
            no encodings, and the number of positions may differ from call to
            call. Vectors get no encoding.
        schema_keys: `"shared"` or `"separate"`. `"shared"` is the paper's form:
            one W̃_e for all schemata. With `"separate"` each schema has its own
            W̃_e, queries and keys have biases, and the scores are divided by
            √key_dim.
        gated_messages: Boolean. If `False`, an object file adds the messages
            that it reads to its state, as in the paper. If `True`, it adds no
            more than 1 to each number at a step.
        balance: Number, 0 or more. Weight of a loss that `SCOFF` adds in
            training: Σ_j m_j log m_j, where m_j is schema j's share of all
            scores in a batch. It is smallest if all schemata are used alike.
            The paper has no such loss. A `SCOFFCell` alone adds none.
        dropout: Number from 0 up to, but not including, 1. Fraction of
            attention scores that are set to zero in training, in the attention
            to the input and in the attention between object files.
        seed: Integer or `None`. Seed of the random choice of schemata in
            training, and of dropout.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: Float tensor: a vector `(batch, m)`, a set `(batch, n, m)` or
            an image `(batch, height, width, m)`.
        states: List of h `(batch, num_object_files * units)`, one object file
            after the other. With LSTMs also c, of the same shape.
        training: Boolean. If `True`, draw γ and apply dropout. On JAX
            `keras.layers.RNN` cannot draw random numbers in its loop: use
            `SCOFF` for training there, or `unroll=True`.
        return_attention_scores: Boolean. If `True`, also return the attention
            scores.

    Returns:
        h, and the list of the new states. With `return_attention_scores`, also
        a tuple of three tensors: the scores of inputs `(batch, num_heads,
        num_object_files, n)`, of schemata `(batch, num_object_files,
        num_schemata)` and of messages `(batch, num_message_heads,
        num_object_files, num_object_files)`.

    Raises:
        ValueError: If an argument has a value that is not allowed, if the
            inputs have another rank or unknown sizes, or if there are position
            encodings, for another number of positions.

    Example:

    >>> cell = SCOFFCell(units=100, num_object_files=6, num_schemata=4)
    >>> keras.layers.RNN(cell)(keras.Input((50, 32))).shape
    (None, 600)
    """

    def __init__(
        self,
        units: int,
        num_object_files: int,
        num_schemata: int,
        dynamics: str = "gru",
        num_active: int | None = None,
        num_heads: int = 1,
        key_dim: int = 64,
        value_dim: int = 64,
        num_message_heads: int = 4,
        message_key_dim: int = 32,
        message_value_dim: int = 32,
        position_dim: int = 16,
        schema_keys: str = "shared",
        gated_messages: bool = False,
        balance: float = 0.0,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: object,
    ):
        super().__init__(**kwargs)
        check_positive_integers(
            num_object_files=num_object_files, num_schemata=num_schemata
        )
        none_or_more = {
            "num_message_heads": num_message_heads,
            "position_dim": position_dim,
        }
        for name, value in none_or_more.items():
            if not isinstance(value, int) or value < 0:
                raise ValueError(
                    f"`{name}` must be an integer, 0 or more. Received: "
                    f"{name}={value}"
                )
        check_choice("schema_keys", schema_keys, SCHEMA_KEYS)
        if not balance >= 0:
            raise ValueError(
                f"`balance` must be 0 or more. Received: balance={balance}"
            )
        self.units = units
        self.num_object_files = num_object_files
        self.num_schemata = num_schemata
        self.dynamics = dynamics
        self.num_active = num_active
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.num_message_heads = num_message_heads
        self.message_key_dim = message_key_dim
        self.message_value_dim = message_value_dim
        self.position_dim = position_dim
        self.schema_keys = schema_keys
        self.gated_messages = gated_messages
        self.balance = balance
        self.dropout = dropout
        self.seed = seed
        self.set_up_slots(num_object_files)

    def build(self, input_shape: Sequence[int | None]) -> None:
        step_shape = check_step_inputs(self, input_shape, "batch")
        self.input_spec = keras.layers.InputSpec(axes={-1: step_shape[-1]})
        n, features = num_positions(step_shape), step_shape[-1]
        # Saved files list the weights in this order.
        self.position_encodings = None
        if len(step_shape) > 1 and self.position_dim:
            features += self.position_dim
            self.position_encodings = self.add_weight(
                (n, self.position_dim),
                keras.initializers.RandomNormal(stddev=1.0),
                name="position_encodings",
            )
        units, keys = self.units, self.num_heads * self.key_dim
        add_weights(
            self,
            self._kernel_initializer,
            query_kernel=(units, keys),  # W_q
            key_kernel=(features, keys),  # W_e
            schema_query_kernel=(units, self.key_dim),  # W̃_q
        )
        self.add_schema_keys()
        if self.num_message_heads:
            self.add_message_attention()
        add_weights(
            self,
            self._kernel_initializer,
            scaled(n**-0.5),
            value_kernel=(features, self.num_heads * self.value_dim),  # W_v
        )
        if self.num_message_heads:
            self.add_message_outputs()
        add_dynamics(self, self.num_schemata, axis=1)  # θ_j
        self.initial_mean = self.add_weight(
            (units,), "zeros", name="initial_mean"
        )
        self.initial_scale = self.add_weight(
            (units,), "ones", name="initial_scale"
        )
        self.current_temperature = self.add_weight(
            (), "ones", trainable=False, name="current_temperature"
        )

    def add_schema_keys(self) -> None:
        """Adds W̃_e, or with separate keys every W̃_e,j and the biases."""
        if self.schema_keys == "shared":
            add_weights(
                self,
                self._kernel_initializer,
                schema_key_kernel=(self.units, self.key_dim),
            )
            return
        add_weights(
            self,
            self._kernel_initializer,
            stacked(axis=0),
            schema_key_kernel=(self.num_schemata, self.units, self.key_dim),
        )
        add_weights(
            self,
            "zeros",
            schema_query_bias=(self.key_dim,),
            schema_key_bias=(self.num_schemata, self.key_dim),
        )

    def add_message_attention(self) -> None:
        """Adds Ŵ_q, Ŵ_e and the part of Ŵ_v that makes the values."""
        keys = self.num_message_heads * self.message_key_dim
        values = self.num_message_heads * self.message_value_dim
        add_weights(
            self,
            self._kernel_initializer,
            message_query_kernel=(self.units, keys),
            message_key_kernel=(self.units, keys),
            message_value_kernel=(self.units, values),
        )

    def add_message_outputs(self) -> None:
        """Adds the part of Ŵ_v that maps back to `units`, and the gate."""
        shape = self.num_message_heads * self.message_value_dim, self.units
        add_weights(
            self,
            self._kernel_initializer,
            scaled(MESSAGE_SCALE),
            message_output_kernel=shape,
        )
        if self.gated_messages:
            add_weights(
                self, self._kernel_initializer, message_gate_kernel=shape
            )
            add_weights(
                self,
                "zeros",
                message_output_bias=(self.units,),
                message_gate_bias=(self.units,),
            )

    def keys_and_values(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        # Step 1. The network that computes c_p comes before this cell.
        # a_p = [c_p e_p]
        return super().keys_and_values(append_encodings(self, inputs))

    def products(self) -> dict[str, Products]:
        """Products with h, with h of the active object files, and with h'."""
        of_all, of_match = [self.query_kernel], self.schema_query_kernel
        if self.schema_keys == "shared":
            # (h W̃_q) W̃_eᵀ · h̃ is the same, without the keys of all candidates.
            keys = ops.transpose(self.schema_key_kernel)
            of_match = ops.matmul(of_match, keys)
        recurrent = ops.reshape(self.recurrent_kernel, (self.units, -1))
        of_active, of_new = [of_match, recurrent], []
        if self.num_message_heads:
            of_active.append(self.message_query_kernel)
            of_new = [self.message_key_kernel, self.message_value_kernel]
        if self.num_active is None:
            of_all, of_active = of_all + of_active, []
        kernels = {"h": of_all, "active_h": of_active, "new_h": of_new}
        return {name: Products(*each) for name, each in kernels.items() if each}

    def step(
        self,
        keys_and_values: keras.KerasTensor,
        states: Sequence[keras.KerasTensor],
        products: dict[str, Products],
        mask: keras.KerasTensor | None = None,
        gumbel: keras.KerasTensor | None = None,
        dropout_mask: keras.KerasTensor | None = None,
        message_dropout_mask: keras.KerasTensor | None = None,
    ) -> tuple[list[keras.KerasTensor], list[keras.KerasTensor]]:
        """Algorithm 1, steps 2 to 4.

        `gumbel` is γ, `(batch, num_object_files, num_schemata)`. The scores are
        multiplied by the dropout masks.
        """
        old_h, *old_c = self.split_slots(states)

        # Step 2: object files compete for the positions.
        # s_k,p = softmax_k((h_k W_q) · (a_p W_e) / √d)
        queries, *of_h = products["h"](old_h)
        queries = split_heads(queries, self.num_heads)
        keys, values = self.split_keys_and_values(keys_and_values)
        # The softmax runs over the last axis: the object files.
        scores = masked_softmax(scaled_dot_products(keys, queries))
        scores = ops.swapaxes(scores, 2, 3)  # (batch, heads, files, n)
        if mask is not None:
            scores = ops.where(mask[:, None, None], scores, 0)
        # Sparse SCOFF: from here on only the active object files are computed.
        active = None
        if self.num_active is not None:
            relevance = ops.sum(scores, axis=(1, 3))
            active = most_relevant(relevance, self.num_active)
        h, *c = (gather_active(x, active) for x in (old_h, *old_c))
        if active is not None:
            of_h = products["active_h"](h)
        schema_queries, from_state, *of_h = of_h
        # z_k = Σ_p s_k,p a_p W_v, multiplied at once by the kernels of all
        # schemata.
        weights = ops.cast(scores, values.dtype)
        if dropout_mask is not None:
            weights = weights * dropout_mask
        weights = gather_active(weights, active, axis=2)
        from_inputs = project_attended(weights, values, self.kernel)

        # Step 3: object files pick the most relevant schema and update.
        # h̃_k,j = GRU_θ_j(z_k, h_k)
        candidates = update(
            self,
            from_inputs,
            ops.reshape(from_state, ops.shape(from_inputs)),
            ops.expand_dims(h, 2),
            [ops.expand_dims(x, 2) for x in c],
        )
        # h'_k = h̃_k,i_k, with i_k as a one-hot vector.
        choice, schema_scores = self.choose_schema(
            schema_queries, candidates[0], gather_active(gumbel, active)
        )
        choice = ops.expand_dims(choice, -1)
        new_h, *new_c = (ops.sum(choice * x, axis=2) for x in candidates)

        # Step 4: object files transmit information to each other.
        # ŝ_k,k' = softmax_k'((h_k Ŵ_q) · (h'_k' Ŵ_e) / √d)
        # h_k ← h'_k + Σ_k' ŝ_k,k' h'_k' Ŵ_v
        if self.num_message_heads:
            all_h = scatter_active(new_h, active, old_h)
            (queries,), (keys, values) = of_h, products["new_h"](all_h)
            dropout = gather_active(message_dropout_mask, active, axis=2)
            read, message_scores = attend_to_slots(
                queries, keys, values, self.num_message_heads, dropout
            )
            message_scores = scatter_active(message_scores, active, axis=2)
            new_h = new_h + self.message(read)
        else:
            files = self.num_object_files
            message_scores = ops.zeros((ops.shape(h)[0], 0, files, files))

        new_states = [
            scatter_active(new, active, old)
            for new, old in zip((new_h, *new_c), (old_h, *old_c), strict=True)
        ]
        return self.join_slots(new_states), [
            scores,
            scatter_active(schema_scores, active),
            message_scores,
        ]

    def message(self, read: keras.KerasTensor) -> keras.KerasTensor:
        """The change of the state, from the values that all heads have read."""
        message = project(read, self.message_output_kernel)
        if not self.gated_messages:
            return message
        gate = project(read, self.message_gate_kernel)
        message = message + ops.cast(self.message_output_bias, message.dtype)
        gate = gate + ops.cast(self.message_gate_bias, gate.dtype)
        return ops.sigmoid(gate) * ops.tanh(message)

    def choose_schema(
        self,
        query: keras.KerasTensor,
        candidates: keras.KerasTensor,
        gumbel: keras.KerasTensor | None = None,
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        """`i_k = argmax_j((h_k W̃_q) · (h̃_k,j W̃_e) + γ_j)`, differentiably.

        `query` is `h W̃_q`, or `h W̃_q W̃_eᵀ` with the same keys for all schemata.
        Returns a pair of tensors `(batch, files, num_schemata)`: i_k as a
        one-hot vector, which has the gradient of the softmax, and the softmax.
        """
        if self.schema_keys == "shared":
            of_units = ops.expand_dims(query, 2)
        else:
            query = query + ops.cast(self.schema_query_bias, query.dtype)
            query = query * self.key_dim**-0.5
            kernel = ops.transpose(self.schema_key_kernel, (2, 0, 1))
            of_units = project(query, kernel)
        logits = ops.sum(
            at_least_float32(of_units) * at_least_float32(candidates), axis=-1
        )
        if self.schema_keys == "separate":
            of_bias = project(query, ops.transpose(self.schema_key_bias))
            logits = logits + at_least_float32(of_bias)
        if gumbel is not None:
            logits = logits + ops.cast(gumbel, logits.dtype)
        # The first of the largest. `ops.argmax` uses an operation that ONNX
        # and LiteRT lack.
        one, other = ops.expand_dims(logits, -1), ops.expand_dims(logits, -2)
        is_before = ops.tri(self.num_schemata, k=-1, dtype="bool")
        loses = (one < other) | ((one == other) & is_before)
        chosen = ops.cast(~ops.any(loses, axis=-1), logits.dtype)
        temperature = ops.cast(self.current_temperature, logits.dtype)
        scores = masked_softmax(logits / temperature)
        chosen = chosen + scores - ops.stop_gradient(scores)
        return ops.cast(chosen, candidates.dtype), scores

    def noise(
        self, batch_shape: Sequence, step_shape: Sequence[int], training: bool
    ) -> dict[str, keras.KerasTensor]:
        """Draws γ and the masks of dropout."""
        if not training:
            return {}
        shape = (*batch_shape, self.num_object_files, self.num_schemata)
        gumbel = gumbel_noise(shape, self.seed_generator)
        return {
            "gumbel": gumbel,
            **super().noise(batch_shape, step_shape, training),
        }

    def scores_shapes(self, step_shape: Sequence[int]) -> list[tuple[int, ...]]:
        """The shapes of the scores of inputs, of schemata and of messages."""
        files = self.num_object_files
        return [
            (self.num_heads, files, num_positions(step_shape)),
            (files, self.num_schemata),
            (self.num_message_heads, files, files),
        ]

    def get_initial_state(
        self, batch_size: int | None = None
    ) -> list[keras.KerasTensor]:
        check_built(self)
        noise = fixed_normal(self.num_object_files, self.units)
        h = self.initial_mean + self.initial_scale * noise
        h = ops.reshape(ops.cast(h, self.compute_dtype), (1, self.output_size))
        h = repeat_for_batch(h, batch_size)
        if self.dynamics == "gru":
            return [h]
        return [h, ops.zeros_like(h)]


@keras.saving.register_keras_serializable(package="keras_relational")
class SCOFF(SlotRNN):
    """A recurrent layer of object files that share schemata.

    At each step object files compete for parts of the input. Each object file
    is updated by the schema that fits it best. Then the object files exchange
    messages. `SCOFFCell` has the equations. Reference: Algorithm 1 of [Goyal et
    al., 2020](https://arxiv.org/abs/2006.16225).

    SCOFF can replace `keras.layers.GRU`. Masks, states and
    `keras.layers.Bidirectional` work as with a GRU. The state has
    `num_object_files * units` numbers, and the number of weights does not
    depend on `num_object_files`. Activations and initializers are fixed. There
    are no regularizers, constraints, `recurrent_dropout`, `use_bias`,
    `reset_after` or `use_cudnn`. `dropout` acts on attention scores.

    The initial state is learned. A stateful layer starts from the state at
    which it stopped. To start from the learned state, call `reset_state`, also
    after you load the layer or set its weights.

    A step's input is a vector, a set or an image (`accepts_sets` is `True`).
    SCOFF passes on a mask of steps, even if its inputs have a mask of
    positions. `keras.layers.Bidirectional` passes on the mask as it is.

    Args:
        units: Positive integer. Size of the state of one object file.
        num_object_files: Positive integer. Number of object files.
        num_schemata: Positive integer. Number of schemata that object files
            choose from.
        dynamics: `"gru"` or `"lstm"`, the kind of network that a schema is.
        **kwargs: The other arguments of `SCOFFCell`, by name, and those of
            `keras.layers.RNN`: `return_sequences`, `return_state`,
            `go_backwards`, `stateful`, `unroll`, `zero_output_for_mask`,
            `name`, `dtype` and `trainable`.

    Call arguments:
        sequences: Float tensor `(batch, time, m)` of vectors, `(batch, time, n,
            m)` of sets or `(batch, time, height, width, m)` of images.
        initial_state: Optional list of tensors: h `(batch, num_object_files *
            units)` and, with LSTMs, c of the same shape. By default it is the
            learned state.
        mask: Optional boolean tensor: a mask of steps `(batch, time)`, or a
            mask of positions, which has the shape of `sequences` without its
            last axis. `True` marks a real step or position. Padded positions
            get no attention. A step is real if any of its positions is. At a
            padded step the state does not change, and the layer repeats its
            last output. Before the first real step the output is zero. With
            `zero_output_for_mask` it is zero at all padded steps.
        training: Boolean. If `True`, draw schemata at random, with Gumbel
            noise, and apply dropout.
        return_attention_scores: Boolean. If `True`, also return the attention
            scores of all steps.

    Returns:
        h of the last step, `(batch, num_object_files * units)`, one object file
        after the other. With `return_sequences`, h of all steps, `(batch, time,
        num_object_files * units)`. With `return_state`, a tuple: h, then the
        final states. With `return_attention_scores`, a pair: these results, and
        a tuple of three tensors:

        - the scores of inputs `(batch, time, num_heads, num_object_files, n)`,
          which sum to 1 over object files,
        - the scores of schemata `(batch, time, num_object_files,
          num_schemata)`: the schema with the largest score is chosen,
        - the scores of messages `(batch, time, num_message_heads,
          num_object_files, num_object_files)`: the reader comes first, then the
          object file that it reads.

        The scores are in the order of the inputs, even with `go_backwards`. At
        padded steps all scores are zero. Object files that are not updated have
        zeros as scores of schemata and of messages.

    Raises:
        ValueError: If an argument has a value that is not allowed, if the
            inputs have another rank or unknown sizes, if there are position
            encodings, for another number of positions, or if the mask or the
            initial state has another shape.

    Example:

    >>> layer = SCOFF(units=100, num_object_files=6, num_schemata=4)
    >>> layer(keras.Input((50, 32))).shape
    (None, 600)
    """

    cell_class = SCOFFCell

    def __init__(
        self,
        units: int,
        num_object_files: int,
        num_schemata: int,
        dynamics: str = "gru",
        **kwargs: object,
    ):
        super().__init__(
            units, num_object_files, num_schemata, dynamics, **kwargs
        )

    def call(
        self,
        sequences: keras.KerasTensor,
        initial_state: Sequence[keras.KerasTensor] | None = None,
        mask: keras.KerasTensor | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        balanced = training and self.balance > 0
        outputs = super().call(
            sequences,
            initial_state,
            mask,
            training,
            return_attention_scores or balanced,
        )
        if not balanced:
            return outputs
        results, scores = outputs
        # m_j. Scores of padded steps and of inactive object files are zero.
        totals = ops.sum(scores[1], axis=(0, 1, 2))
        shares = totals / ops.maximum(ops.sum(totals), 1e-7)
        self.add_loss(self.balance * ops.sum(shares * ops.log(shares + 1e-7)))
        return outputs if return_attention_scores else results
