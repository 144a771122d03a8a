import keras
from keras import ops

from keras_relational.layers import lstm_controller
from keras_relational.layers.shared import check_positive_integers
from keras_relational.layers.shared import check_set
from keras_relational.layers.shared import masked_softmax


@keras.saving.register_keras_serializable(package="keras_relational")
class ESBN(keras.layers.Layer):
    """The Emergent Symbol Binding Network: a controller that sees no values.

    An external memory binds each value z_t, a filler, to a key that the
    controller, an LSTM, writes for it, a role. Keys and values meet only
    there. With inputs z_1 to z_T, k_r and h zero at first,

        h_t = LSTM(h_{t−1}, k_r,t−1)
        g_k,t, g_v,t = sigmoid(linear(h_t))
        k_w,t, k_q,t = relu(linear(h_t))
        k_r,t = g_k,t Σ_i<t softmax_i(z_i · z_t) k_w,i
        ẑ_t+1 = g_v,t Σ_i<t softmax_i(k_w,i · k_q,t) z_i

    and zeros are read while memory is empty. At an extra time step T + 1 there
    is no input; the controller gets to see the key read at T. Reference:
    Algorithm 1 of [Sinha et al., 2020](https://arxiv.org/abs/2012.01944),
    section 4.2 and, for the initial weights, A.1; biases, of which it says
    nothing, are uniform within ±1/√fan-in, since with none the controller
    would put out zeros for ever.

    With `confidence`, each key read comes with one number more, how well the
    value matched: the mean, by the same weights and gate, of sigmoid(γ z_i ·
    z_t + β), γ and β learned. Reference: [Webb et al., 2021](
    https://arxiv.org/abs/2012.14601), section 3, who also normalize the values
    before, by `TemporalContextNormalization`.

    How values match is known before the controller starts: all of it is one
    product. Values are retrieved after it has ended, for all steps at once.

    Args:
        units: Positive integer, size of the controller.
        key_dim: Positive integer, size of the keys.
        extra_step: Whether there is one.
        return_sequences: Whether to return all steps, or the last one.
        return_retrieved: Whether to return ẑ too.
        confidence: Whether keys that are read come with one.

    Call arguments:
        inputs: Float tensor `(batch, time, features)` of any number of steps.
        mask: Optional boolean tensor `(batch, time)`, `True` for real steps.
            Nothing is written, read or counted at padded ones. There is no
            extra step where there is no real one, either.
        return_attention_scores: Whether to return the weights of reading too.

    Returns:
        h at the last step, `(batch, units)`, in the compute dtype; with
        `return_retrieved` a pair of that and ẑ, `(batch, features)`. With
        `return_sequences` both have an axis of T steps, or T + 1 with the extra
        one, after the batch. With `return_attention_scores` all that, and
        the weights of the keys read, `(batch, steps, time)` of all steps,
        before the gate; with `return_retrieved` a pair of those and the weights
        of the values retrieved.

    Raises:
        ValueError: If a size is not a positive integer, or the inputs are not
            3D with a fixed last axis.

    Example:

    >>> ESBN(units=512, key_dim=256)(keras.Input((9, 128))).shape
    (None, 512)
    """

    def __init__(
        self,
        units,
        key_dim,
        extra_step=True,
        return_sequences=False,
        return_retrieved=False,
        confidence=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_integers(units=units, key_dim=key_dim)
        self.units = units
        self.key_dim = key_dim
        self.extra_step = extra_step
        self.return_sequences = return_sequences
        self.return_retrieved = return_retrieved
        self.confidence = confidence
        self.supports_masking = True
        self.controller = keras.layers.RNN(
            _Controller(
                units, key_dim, confidence, dtype=self.dtype_policy, name="cell"
            ),
            return_sequences=True,
            dtype=self.dtype_policy,
            name="controller",
        )

    def build(self, input_shape):
        check_set(self, input_shape)
        self.controller.build((None, None, self.units))
        if self.return_retrieved:
            lstm_controller.add_head(self, "query", self.key_dim)
        if self.confidence:
            self.confidence_gain = self.add_weight(
                (), "ones", name="confidence_gain"
            )
            self.confidence_bias = self.add_weight(
                (), "zeros", name="confidence_bias"
            )

    def call(self, inputs, mask=None, return_attention_scores=False):
        values, time = inputs, ops.shape(inputs)[1]
        steps = time + 1 if self.extra_step else time
        step, row = ops.arange(steps)[:, None], ops.arange(time)
        running, readable = None, step > row
        if mask is not None:
            values = ops.where(ops.expand_dims(mask, -1), values, 0)
            running = self._steps_mask(mask)
            readable = readable & running[..., None] & mask[:, None]

        matches = _products(values, values)
        if self.extra_step:  # It has no value, and reads no key.
            matches = ops.pad(matches, [(0, 0), (0, 1), (0, 0)])
        key_scores = masked_softmax(matches, readable & (step < time))
        sure = None
        if self.confidence:
            sure = ops.sigmoid(
                ops.cast(self.confidence_gain, "float32") * matches
                + ops.cast(self.confidence_bias, "float32")
            )
            sure = ops.sum(key_scores * sure, axis=-1, keepdims=True)
        h, keys = self._control(key_scores, step == row, sure, running)

        results, scores = [h], [key_scores]
        if self.return_retrieved:
            query, gate = _key_and_gate(
                ops.matmul(h, self.query_kernel) + self.query_bias, self.key_dim
            )
            value_scores = masked_softmax(_products(query, keys), readable)
            scores.append(value_scores)
            retrieved = ops.matmul(ops.cast(value_scores, values.dtype), values)
            retrieved = gate * retrieved
            if mask is not None:
                retrieved = _kept(retrieved, running)
            results.append(retrieved)
        if not self.return_sequences:
            results = [x[:, -1] for x in results]
        scores = [ops.cast(x, self.compute_dtype) for x in scores]
        outputs = self._one_or_pair(results)
        if not return_attention_scores:
            return outputs
        return outputs, self._one_or_pair(scores)

    def _one_or_pair(self, results):
        return tuple(results) if self.return_retrieved else results[0]

    def _steps_mask(self, mask):
        """Of the steps: the extra one is real if any other is."""
        if not self.extra_step:
            return mask
        return ops.concatenate(
            [mask, ops.any(mask, axis=1, keepdims=True)], axis=1
        )

    def _control(self, read, written, sure, running):
        """The controller, step by step: its h, and the keys in memory."""
        batch, (steps, time) = ops.shape(read)[0], ops.shape(written)
        written = ops.broadcast_to(written, (batch, steps, time))
        inputs = [
            ops.cast(x, self.compute_dtype)
            for x in (read, written, sure)
            if x is not None
        ]
        sizes = [(x,) for x in self.controller.cell.state_size[:3]]
        outputs = self.controller(
            ops.concatenate(inputs, axis=-1),
            initial_state=[
                ops.zeros((batch, *size), self.compute_dtype)
                for size in (*sizes, (time * self.key_dim,))
            ],
            mask=running,
        )
        return outputs[..., : self.units], outputs[:, :time, self.units :]

    def compute_mask(self, inputs, mask=None):
        if mask is None or not self.return_sequences:
            return None
        mask = self._steps_mask(mask)
        return (mask, mask) if self.return_retrieved else mask

    def compute_output_shape(self, input_shape):
        batch, time, features = input_shape
        steps = None if time is None else time + bool(self.extra_step)
        batch = (batch, steps) if self.return_sequences else (batch,)
        shapes = (*batch, self.units), (*batch, features)
        return shapes if self.return_retrieved else shapes[0]

    def compute_output_spec(
        self, inputs, mask=None, return_attention_scores=False
    ):
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

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "key_dim": self.key_dim,
            "extra_step": self.extra_step,
            "return_sequences": self.return_sequences,
            "return_retrieved": self.return_retrieved,
            "confidence": self.confidence,
        }


class _Controller(keras.layers.Layer):
    """One step: an LSTM on the key read last, its write key, the next read.

    Inputs are the weights of reading, which row of the memory is written to,
    and the confidence, if there is one. Outputs are h and the key written; they
    are the first of the states, as Keras has it on JAX, before c, what was
    read, and the keys in memory, one after the other.
    """

    def __init__(self, units, key_dim, confidence, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.key_dim = key_dim
        self.confidence = confidence
        self.output_size = units + key_dim
        self.state_size = [
            self.output_size,
            units,
            key_dim + bool(confidence),
            key_dim,
        ]

    def build(self, input_shape, states_shape=None):
        lstm_controller.add_lstm_weights(self, self.state_size[2], self.units)
        lstm_controller.add_head(self, "write", self.key_dim)

    def call(self, inputs, states, training=False):
        outputs, c, read, keys = states
        h = outputs[:, : self.units]
        keys = ops.reshape(keys, (ops.shape(h)[0], -1, self.key_dim))
        time = ops.shape(keys)[1]
        h, c = lstm_controller.lstm_step(self, read, h, c)
        key, gate = _key_and_gate(
            ops.matmul(h, self.write_kernel) + self.write_bias, self.key_dim
        )
        read = ops.matmul(inputs[:, None, :time], keys)[:, 0]
        if self.confidence:
            read = ops.concatenate([read, inputs[:, -1:]], axis=-1)
        row = inputs[:, time : 2 * time, None]
        keys = ops.reshape(keys + row * key[:, None], ops.shape(states[3]))
        outputs = ops.concatenate([h, key], axis=-1)
        return outputs, [outputs, c, gate * read, keys]


def _key_and_gate(outputs, key_dim):
    return ops.relu(outputs[..., :key_dim]), ops.sigmoid(outputs[..., key_dim:])


def _kept(sequence, running):
    """Where a step is not there, what it was at the last one that is."""
    step = ops.arange(ops.shape(running)[1])
    last = ops.where(running, step, 0)
    # The last of all steps so far, step by step for each of them.
    last = ops.max(ops.where(step[:, None] >= step, last[:, None], 0), axis=-1)
    return ops.take_along_axis(sequence, last[..., None], axis=1)


def _products(queries, keys):
    """In float32: products of large vectors are too large for float16."""
    queries, keys = ops.cast(queries, "float32"), ops.cast(keys, "float32")
    return ops.matmul(queries, ops.swapaxes(keys, 1, 2))
