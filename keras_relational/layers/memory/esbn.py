import keras
from keras import ops

from keras_relational.layers._attention import dot_products
from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._keras_rnn import rnn
from keras_relational.layers._operations import at_least_float32
from keras_relational.layers.memory import lstm_controller
from keras_relational.layers.memory._esbn_recurrence import esbn_recurrence
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class ESBN(keras.layers.Layer):
    """The Emergent Symbol Binding Network: an LSTM that binds values to keys.

    An LSTM, the controller, writes a key for each value of a sequence. An
    external memory stores the key beside the value: a key stands for a role, a
    value for its filler. The controller never sees a value. It sees only the
    keys that it reads from the memory. With the values z_1 to z_T, and with k_r
    and h zero at first,

        h_t = LSTM(h_{t−1}, k_r,t−1)
        g_k,t, g_v,t = sigmoid(linear(h_t))
        k_w,t, k_q,t = relu(linear(h_t))
        k_r,t = g_k,t Σ_i<t softmax_i(z_i · z_t) k_w,i
        ẑ_t+1 = g_v,t Σ_i<t softmax_i(k_w,i · k_q,t) z_i

    While the memory is empty, k_r and ẑ are zero. The extra step T + 1 has no
    value. In it the controller sees the key that was read at step T.

    With `confidence`, one more number c_t is appended to the key that is read.
    It says how well the values matched:

        c_t = g_k,t Σ_i<t softmax_i(z_i · z_t) sigmoid(γ z_i · z_t + β)

    γ and β are learned. An ESBN needs this number to tell whether two values
    are the same. Without it, step 2 reads the first key with weight 1, whatever
    the values are. So h_1, h_2 and h_3 are the same for all inputs.

    We measured this with three seeds, on 2,000 new pairs of random vectors of
    16 numbers, after 5 epochs of 4,000 pairs, with 64 units and keys of 32
    numbers. The default is the model of the first paper. It is right for 48 to
    52 percent of the pairs, with or without `TemporalContextNormalization`
    before it. With `confidence` it is right for 96 to 97 percent, and with both
    for 100 percent. Use both wherever sameness matters. Values of one length
    serve as well: each is then more like itself than like any other.

    Reference: Algorithm 1 of [Sinha et al.,
    2020](https://arxiv.org/abs/2012.01944), section 4.2. Initial weights are
    from appendix A.1, which does not mention biases. Here biases are uniform
    within ±1/√fan-in. With biases of zero, the controller would return zeros
    forever. The confidence is from section 3 of [Webb et al.,
    2021](https://arxiv.org/abs/2012.14601). That paper also normalizes the
    values first.

    Args:
        units: Positive integer, size of the controller.
        key_dim: Positive integer, size of the keys.
        extra_step: Boolean. If `True`, the controller makes the extra step,
            T + 1.
        return_sequences: Boolean. If `True`, the layer returns all steps.
            Otherwise it returns the last one.
        return_retrieved: Boolean. If `True`, the layer also returns ẑ, the
            prediction of the next value.
        confidence: Boolean. If `True`, the controller also sees the confidence
            of each key that is read.

    Call arguments:
        inputs: Float tensor `(batch, time, features)`, any number of steps.
        mask: Optional boolean tensor `(batch, time)`. `True` marks a real step.
            At a padded step nothing is written or read, the state does not
            change, and the layer repeats its last outputs. A sequence
            without any real step has no extra step either.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            weights with which it reads its memory.

    Returns:
        h of the last step, `(batch, units)`, in the compute dtype. With
        `return_retrieved`, a pair: h, and ẑ `(batch, features)`. With
        `return_sequences`, both have an axis of steps after the batch: T steps,
        or T + 1 with the extra one.

        With `return_attention_scores`, a pair: these outputs, and the weights
        with which keys were read, before the gate, `(batch, steps, time)` for
        all steps. With `return_retrieved`, the weights are a pair too: the
        weights of the keys read, and the weights of the values retrieved.

    Raises:
        ValueError: If a size is not a positive integer, the inputs are not 3D
            with a fixed last axis, or the mask has another shape.

    Example:

    >>> ESBN(units=512, key_dim=256)(keras.Input((9, 128))).shape
    (None, 512)

    A layer that can tell whether values are the same:

    >>> from keras_relational.layers import TemporalContextNormalization
    >>> values = TemporalContextNormalization()(keras.Input((2, 16)))
    >>> ESBN(units=64, key_dim=32, confidence=True)(values).shape
    (None, 64)
    """

    def __init__(
        self,
        units: int,
        key_dim: int,
        extra_step: bool = True,
        return_sequences: bool = False,
        return_retrieved: bool = False,
        confidence: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(units=units, key_dim=key_dim)
        self.units = units
        self.key_dim = key_dim
        self.extra_step = extra_step
        self.return_sequences = return_sequences
        self.return_retrieved = return_retrieved
        self.confidence = confidence
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if len(input_shape) != 3 or input_shape[-1] is None:
            raise ValueError(
                f"{self.name} takes sequences (batch, time, features) with "
                "fixed features. Received: inputs.shape="
                f"{tuple(input_shape)}"
            )
        self.input_spec = keras.layers.InputSpec(ndim=3)
        lstm_controller.add_lstm_weights(
            self, self.key_dim + bool(self.confidence), self.units
        )
        lstm_controller.add_key_and_gate_weights(self, "write", self.key_dim)
        if self.return_retrieved:
            lstm_controller.add_key_and_gate_weights(
                self, "query", self.key_dim
            )
        if self.confidence:
            self.confidence_gain = self.add_weight(
                (), "ones", name="confidence_gain"
            )
            self.confidence_bias = self.add_weight(
                (), "zeros", name="confidence_bias"
            )

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        values, mask = flatten_entities(self, inputs, mask)
        valid = None if mask is None else self._valid_steps(mask)
        readable = self._readable(values, mask, valid)
        key_scores, confidence = self._match_values(values, readable)
        h, keys = self._control(key_scores, confidence, valid)
        results, scores = [h], [key_scores]
        if self.return_retrieved:
            retrieved, value_scores = self._retrieve(h, keys, values, readable)
            if valid is not None:
                retrieved = _repeat_last_valid(retrieved, valid)
            results.append(retrieved)
            scores.append(value_scores)
        if not self.return_sequences:
            results = [x[:, -1] for x in results]
        scores = [ops.cast(x, self.compute_dtype) for x in scores]
        outputs = self._one_or_pair(results)
        if not return_attention_scores:
            return outputs
        return outputs, self._one_or_pair(scores)

    def written_keys(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor:
        """The keys that the controller writes for a sequence of values.

        Args:
            inputs: Float tensor `(batch, time, features)`.
            mask: Optional boolean tensor `(batch, time)`. `True` marks a real
                step. The key of a padded step is never read.

        Returns:
            Tensor `(batch, time, key_dim)`.
        """
        (scores, confidence), valid = self._matched(inputs, mask)
        return self._control(scores, confidence, valid)[1]

    def read_confidence(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor:
        """How well the value of each step matches those in memory.

        This is c_t without its gate: Σ_i<t softmax_i(z_i · z_t) sigmoid(γ z_i ·
        z_t + β). The weights with which keys are read add up to 1 even if no
        value in memory is like z_t, and c_t tells.

        Args:
            inputs: Float tensor `(batch, time, features)`.
            mask: Optional boolean tensor `(batch, time)`. `True` marks a real
                step.

        Returns:
            Tensor `(batch, steps)`, from 0 to 1. It is 0 at the first step, at
            the extra step and at padded steps.

        Raises:
            ValueError: If the layer has no confidence.
        """
        if not self.confidence:
            raise ValueError(
                f"{self.name} has no confidence. Make it with confidence=True"
            )
        (_, confidence), _ = self._matched(inputs, mask)
        return confidence[..., 0]

    def _matched(self, inputs, mask):
        """The result of `_match_values`, and the mask of all steps."""
        if not self.built:
            self.build(inputs.shape)
        inputs = ops.cast(ops.convert_to_tensor(inputs), self.compute_dtype)
        values, mask = flatten_entities(self, inputs, mask)
        valid = None if mask is None else self._valid_steps(mask)
        readable = self._readable(values, mask, valid)
        return self._match_values(values, readable), valid

    def _valid_steps(self, mask):
        """The mask of all steps. The extra step is real if any step is."""
        if not self.extra_step:
            return mask
        return ops.concatenate(
            [mask, ops.any(mask, axis=1, keepdims=True)], axis=1
        )

    def _readable(self, values, mask, valid):
        """The values that each step may read, `(1 or batch, steps, time)`."""
        time = ops.shape(values)[1]
        steps = time + 1 if self.extra_step else time
        readable = ops.arange(steps)[None, :, None] > ops.arange(time)
        if mask is not None:
            readable = readable & valid[..., None] & mask[:, None]
        return readable

    def _match_values(
        self, values: keras.KerasTensor, readable: keras.KerasTensor
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        """softmax_i(z_i · z_t) of all steps at once, and the confidence.

        Matching does not depend on the controller, so one matrix product serves
        all steps.
        """
        time = ops.shape(values)[1]
        similarities = dot_products(values, values)
        key_scores = masked_softmax(similarities, readable[:, :time])
        confidence = similarities[..., :0]
        if self.confidence:
            matches = ops.sigmoid(
                at_least_float32(self.confidence_gain) * similarities
                + at_least_float32(self.confidence_bias)
            )
            confidence = ops.sum(key_scores * matches, axis=-1, keepdims=True)
        # The extra step reads no key.
        rows = [(0, 0), (0, int(self.extra_step)), (0, 0)]
        return ops.pad(key_scores, rows), ops.pad(confidence, rows)

    def _control(self, key_scores, confidence, valid):
        """h_t and k_w,t of all steps. `esbn_step` is one of them."""
        batch, steps, time = ops.shape(key_scores)
        if valid is None:
            valid = ops.ones((batch, steps), "bool")
        else:
            # At a padded step, the key that was read last is read again.
            read = ops.concatenate([key_scores, confidence], axis=-1)
            read = _repeat_last_valid(read, valid)
            key_scores, confidence = read[..., :time], read[..., time:]
        # The key of the extra step is never read.
        key_scores = ops.pad(
            key_scores, [(0, 0), (0, 0), (0, int(self.extra_step))]
        )
        arguments = (
            *(key_scores, confidence, ops.expand_dims(valid, -1)),
            *(self.kernel, self.recurrent_kernel, self.bias),
            *(self.write_kernel, self.write_bias),
        )
        outputs = esbn_recurrence(
            *(
                ops.cast(ops.convert_to_tensor(x), self.compute_dtype)
                for x in arguments
            )
        )
        return outputs[..., : self.units], outputs[:, :time, self.units :]

    def _retrieve(self, h, keys, values, readable):
        """ẑ_t+1 of all steps at once, and softmax_i(k_w,i · k_q,t)."""
        query, gate = key_and_gate(
            ops.matmul(h, self.query_kernel) + self.query_bias
        )
        value_scores = masked_softmax(dot_products(query, keys), readable)
        retrieved = ops.matmul(ops.cast(value_scores, values.dtype), values)
        return gate * retrieved, value_scores

    def _one_or_pair(self, results):
        return tuple(results) if self.return_retrieved else results[0]

    def compute_mask(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor | tuple | None:
        if mask is None or not self.return_sequences:
            return None
        mask = self._valid_steps(mask)
        return (mask, mask) if self.return_retrieved else mask

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple:
        batch, time, features = input_shape
        steps = None if time is None else time + bool(self.extra_step)
        first = (batch, steps) if self.return_sequences else (batch,)
        shapes = (*first, self.units), (*first, features)
        return shapes if self.return_retrieved else shapes[0]

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        batch, time, _ = inputs.shape
        steps = None if time is None else time + bool(self.extra_step)
        shapes = self.compute_output_shape(inputs.shape)
        shapes = shapes if self.return_retrieved else (shapes,)
        outputs = self._one_or_pair(
            [keras.KerasTensor(shape, self.compute_dtype) for shape in shapes]
        )
        if not return_attention_scores:
            return outputs
        return outputs, self._one_or_pair(
            [
                keras.KerasTensor((batch, steps, time), self.compute_dtype)
                for _ in shapes
            ]
        )

    def get_config(self) -> dict:
        names = (
            *("units", "key_dim", "extra_step", "return_sequences"),
            *("return_retrieved", "confidence"),
        )
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own}


def esbn_step(
    state: tuple[keras.KerasTensor, keras.KerasTensor, keras.KerasTensor],
    keys: keras.KerasTensor,
    key_scores: keras.KerasTensor,
    confidence: keras.KerasTensor,
    kernel: keras.KerasTensor,
    recurrent_kernel: keras.KerasTensor,
    bias: keras.KerasTensor,
    write_kernel: keras.KerasTensor,
    write_bias: keras.KerasTensor,
) -> tuple[tuple, keras.KerasTensor]:
    """One step of the controller, as the equations of `ESBN` state it.

    The layer calls `esbn_recurrence`, which computes all steps at once and
    trains faster. `esbn_steps` is a loop over this step, with the same result.

    Args:
        state: h_{t−1} and the LSTM's cell state, each `(batch, units)`, and
            k_r,t−1 with its confidence, `(batch, size)`.
        keys: `(batch, n, key_dim)`, the keys written so far.
        key_scores: `(batch, n)`, the weights with which step t reads them.
        confidence: `(batch, 1)`, or `(batch, 0)` for an ESBN without it.
        kernel: Kernel of the LSTM `(size, 4 * units)`.
        recurrent_kernel: Recurrent kernel of the LSTM `(units, 4 * units)`.
        bias: Bias of the LSTM `(4 * units,)`.
        write_kernel: Kernel `(units, key_dim + 1)` of k_w,t and g_k,t.
        write_bias: Bias `(key_dim + 1,)` of k_w,t and g_k,t.

    Returns:
        The new state, and k_w,t `(batch, key_dim)`.
    """
    h, c, key_read = state
    # h_t = LSTM(h_{t−1}, k_r,t−1)
    h, c = lstm_controller.lstm_step(
        key_read, h, c, kernel, recurrent_kernel, bias
    )
    # k_w,t = relu(linear(h_t)) and g_k,t = sigmoid(linear(h_t))
    key, gate = key_and_gate(ops.matmul(h, write_kernel) + write_bias)
    # k_r,t = g_k,t Σ_i<t softmax_i(z_i · z_t) k_w,i
    key_read = ops.matmul(key_scores[:, None], keys)[:, 0]
    key_read = gate * ops.concatenate([key_read, confidence], axis=-1)
    return (h, c, key_read), key


def esbn_steps(
    key_scores: keras.KerasTensor,
    confidence: keras.KerasTensor,
    valid: keras.KerasTensor,
    *weights: keras.KerasTensor,
) -> keras.KerasTensor:
    """All steps of the controller by `esbn_step`, one after the other.

    The result is that of `esbn_recurrence`. Tests check that both are equal,
    and a benchmark compares their speed.

    Args:
        key_scores: Float tensor `(batch, steps, steps)`, the weights with which
            each step reads the keys of earlier steps.
        confidence: Float tensor `(batch, steps, 1)`, or `(batch, steps, 0)` for
            an ESBN without confidence.
        valid: Float tensor `(batch, steps, 1)`, 1 for a real step and 0 for a
            padded one.
        *weights: The five weights of the controller, in the order of
            `esbn_step`.

    Returns:
        Tensor `(batch, steps, units + key_dim)`: h_t, then k_w,t.
    """
    kernel, recurrent_kernel, _, write_kernel, _ = weights
    batch, steps = ops.shape(key_scores)[:2]
    size, units, key_dim = (
        kernel.shape[0],
        recurrent_kernel.shape[0],
        write_kernel.shape[1] - 1,
    )

    def zeros(*shape):
        return ops.zeros((batch, *shape), key_scores.dtype)

    def step(inputs, states):
        scores, confidence, valid, is_step = inputs
        *state, keys = states
        new_state, key = esbn_step(state, keys, scores, confidence, *weights)
        state = [
            ops.where(valid > 0, new, old)
            for new, old in zip(new_state, state, strict=True)
        ]
        keys = keys + is_step[..., None] * key[:, None]
        return ops.concatenate([state[0], key], axis=-1), (*state, keys)

    # Row t has a 1 at t, where the key of step t is written.
    is_step = ops.broadcast_to(
        ops.eye(steps, dtype=key_scores.dtype), (batch, steps, steps)
    )
    _, outputs, _ = rnn(
        step,
        (key_scores, confidence, valid, is_step),
        (zeros(units), zeros(units), zeros(size), zeros(steps, key_dim)),
        input_length=key_scores.shape[1],
        return_all_outputs=True,
    )
    return outputs


def key_and_gate(
    outputs: keras.KerasTensor,
) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """Splits a linear layer's outputs into a key and a gate.

    Args:
        outputs: Float tensor `(..., key_dim + 1)`.

    Returns:
        The key, after ReLU, `(..., key_dim)`, and the gate, after the sigmoid,
        `(..., 1)`.
    """
    return ops.relu(outputs[..., :-1]), ops.sigmoid(outputs[..., -1:])


def _repeat_last_valid(sequence, valid):
    """At a padded step, repeats the entry of the last real step before it."""
    step = ops.arange(ops.shape(valid)[1])
    last = ops.where(valid, step, 0)
    # The largest index of a real step so far.
    last = ops.max(ops.where(step[:, None] >= step, last[:, None], 0), axis=-1)
    return ops.take_along_axis(sequence, last[..., None], axis=1)
