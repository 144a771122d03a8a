import keras
from keras import ops

from keras_relational.layers import lstm_controller
from keras_relational.layers.attention import dot_products
from keras_relational.layers.attention import masked_softmax
from keras_relational.layers.entities import flatten_entities
from keras_relational.layers.operations import at_least_float32
from keras_relational.layers.operations import custom_gradient
from keras_relational.layers.operations import update_row
from keras_relational.validation import check_positive_integers


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
    before, by `TemporalContextNormalization`. Without it the first three steps
    are the same for all inputs, as the first key is read with the weight 1
    whatever the values are: of two fillers alone, it cannot be told whether
    they are alike. So the default, that of the first paper, stays at chance on
    same/different, and so it does behind the normalization alone. Of 2,000
    pairs of random vectors of 16 numbers, none seen in training, it solves 48
    to 52 percent, with `confidence` 96 to 97, and with both 100: three seeds
    each, 5 epochs of 4,000 pairs, 64 units, keys of 32 numbers. Take both
    wherever it matters whether two values are the same.

    How values match is known before the controller starts: all of it is one
    product. Values are retrieved after it has ended, for all steps at once.

    Args:
        units: Positive integer, size of the controller.
        key_dim: Positive integer, size of the keys.
        extra_step: Whether there is one.
        return_sequences: Whether to return all steps, or the last one.
        return_retrieved: Whether to return ẑ too.
        confidence: Whether keys that are read come with one. It is needed to
            tell whether two values are the same.

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
        ValueError: If a size is not a positive integer, the inputs are not 3D
            with a fixed last axis, or the mask has another shape.

    Example:

    >>> ESBN(units=512, key_dim=256)(keras.Input((9, 128))).shape
    (None, 512)

    Whether values are the same:

    >>> from keras_relational.layers import TemporalContextNormalization
    >>> values = TemporalContextNormalization()(keras.Input((2, 16)))
    >>> ESBN(units=64, key_dim=32, confidence=True)(values).shape
    (None, 64)
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

    def build(self, input_shape):
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
        lstm_controller.add_head(self, "write", self.key_dim)
        if self.return_retrieved:
            lstm_controller.add_head(self, "query", self.key_dim)
        if self.confidence:
            self.confidence_gain = self.add_weight(
                (), "ones", name="confidence_gain"
            )
            self.confidence_bias = self.add_weight(
                (), "zeros", name="confidence_bias"
            )

    def written_keys(self, inputs, mask=None):
        """The keys that the controller writes for a sequence of values.

        Args:
            inputs: As in a call.
            mask: As in a call. What is written for padding is never read.

        Returns:
            Tensor `(batch, time, key_dim)`.
        """
        if not self.built:
            self.build(inputs.shape)
        inputs = ops.cast(ops.convert_to_tensor(inputs), self.compute_dtype)
        return self._bound(inputs, mask)[-1]

    def call(self, inputs, mask=None, return_attention_scores=False):
        values, running, readable, key_scores, h, keys = self._bound(
            inputs, mask
        )
        results, scores = [h], [key_scores]
        if self.return_retrieved:
            query, gate = _key_and_gate(
                ops.matmul(h, self.query_kernel) + self.query_bias, self.key_dim
            )
            value_scores = masked_softmax(dot_products(query, keys), readable)
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

    def _bound(self, inputs, mask):
        """What is bound to what, and how it is read."""
        values, mask = flatten_entities(self, inputs, mask)
        time = ops.shape(values)[1]
        steps = time + 1 if self.extra_step else time
        step, row = ops.arange(steps)[:, None], ops.arange(time)
        running, readable = None, step > row
        if mask is not None:
            running = self._steps_mask(mask)
            readable = readable & running[..., None] & mask[:, None]

        matches = dot_products(values, values)
        if self.extra_step:  # It has no value, and reads no key.
            matches = ops.pad(matches, [(0, 0), (0, 1), (0, 0)])
        key_scores = masked_softmax(matches, readable & (step < time))
        sure = matches[..., :0]
        if self.confidence:
            sure = ops.sigmoid(
                at_least_float32(self.confidence_gain) * matches
                + at_least_float32(self.confidence_bias)
            )
            sure = ops.sum(key_scores * sure, axis=-1, keepdims=True)
        outputs = self._control(key_scores, sure, running)
        h, keys = outputs[..., : self.units], outputs[:, :time, self.units :]
        return values, running, readable, key_scores, h, keys

    def _one_or_pair(self, results):
        return tuple(results) if self.return_retrieved else results[0]

    def _steps_mask(self, mask):
        """Of the steps: the extra one is real if any other is."""
        if not self.extra_step:
            return mask
        return ops.concatenate(
            [mask, ops.any(mask, axis=1, keepdims=True)], axis=1
        )

    def _control(self, read, sure, running):
        """The controller, step by step: its h, and the keys it writes."""
        batch, steps, _ = ops.shape(read)
        # The key of an extra step is never read.
        read = ops.pad(read, [(0, 0), (0, 0), (0, int(self.extra_step))])
        if running is None:
            running = ops.ones((batch, steps), "bool")
        arguments = (
            *(read, sure, running[..., None]),
            *(self.kernel, self.recurrent_kernel, self.bias),
            *(self.write_kernel, self.write_bias),
        )
        return _controlled(
            *(
                ops.cast(ops.convert_to_tensor(x), self.compute_dtype)
                for x in arguments
            )
        )

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


@custom_gradient
def _controlled(
    read,
    sure,
    running,
    kernel,
    recurrent_kernel,
    bias,
    write_kernel,
    write_bias,
):
    """The recurrence: h and the keys written, side by side, of all steps.

    What changes from step to step has the examples of a batch as its columns:
    the product of a large matrix with a few columns takes half as long on a CPU
    as that of a few rows with it. The gradient is written by hand, for speed:
    that of a weight is one product over all steps, where automatic
    differentiation adds one up for each.

    Args:
        read: `(batch, steps, steps)`, the weights of the keys that each reads.
        sure: `(batch, steps, 1)`, the confidence, or `(batch, steps, 0)`.
        running: `(batch, steps, 1)`, 1 for steps that are there.
        kernel: Of the LSTM, as the rest.
        recurrent_kernel: See above.
        bias: See above.
        write_kernel: Of key and gate.
        write_bias: See above.
    """
    batch, steps = ops.shape(read)[:2]
    units, key_dim = recurrent_kernel.shape[0], write_kernel.shape[1] - 1
    size = kernel.shape[0]
    read, sure, running = (
        ops.transpose(x, (1, 2, 0)) for x in (read, sure, running)
    )
    kernels = ops.concatenate([kernel, recurrent_kernel], axis=0)
    # Once, and not in the loop, where it would be folded into a product that
    # takes twice as long.
    to_gates, to_head = ops.transpose(kernels), ops.transpose(write_kernel)
    bias, write_bias = bias[:, None], write_bias[:, None]

    def zeros(*shape):
        return ops.zeros(shape, read.dtype)

    def forward(t, carry):
        (x, c), *logs = carry
        k, h = x[:size], x[size:]
        gates = ops.matmul(to_gates, x) + bias
        i, f, g, o = ops.split(gates, 4, axis=0)
        i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
        is_there = running[t] > 0
        c = ops.where(is_there, f * c + i * g, c)
        h = ops.where(is_there, o * ops.tanh(c), h)
        head = ops.matmul(to_head, h) + write_bias
        key, gate = ops.relu(head[:key_dim]), ops.sigmoid(head[key_dim:])
        mean = ops.sum(read[t][:, None] * logs[-1], axis=0)
        mean = ops.concatenate([mean, sure[t]], axis=0)
        k = ops.where(is_there, gate * mean, k)
        gates = ops.concatenate([i, f, g, o], axis=0)
        logs = _logged(logs, t, (x, gates, c, h, mean, gate, key))
        return (ops.concatenate([k, h], axis=0), c), *logs

    start = zeros(size + units, batch), zeros(units, batch)
    sizes = (size + units, 4 * units, units, units, size, 1, key_dim)
    logs = [zeros(steps, size, batch) for size in sizes]
    _, *logs = ops.fori_loop(0, steps, forward, (start, *logs))
    xs, gates, cs, hs, means, key_gates, keys = logs

    def gradient(upstream):
        upstream = ops.transpose(upstream, (1, 2, 0))
        earlier_c = ops.concatenate([zeros(1, units, batch), cs[:-1]], axis=0)

        def backward(number, carry):
            t = steps - 1 - number
            (dx, dc, dkeys), *logs = carry
            dk, dh = dx[:size], dx[size:]
            there, gate = running[t], key_gates[t]
            i, f, g, o = ops.split(gates[t], 4, axis=0)
            tanh_c = ops.tanh(cs[t])
            dmean = there * dk * gate
            dgate = ops.sum(there * dk * means[t], axis=0, keepdims=True)
            dkeys = dkeys + read[t][:, None] * dmean[None, :key_dim]
            dkey = dkeys[t] + upstream[t][units:]
            dkey = ops.where(keys[t] > 0, dkey, 0)
            dhead = ops.concatenate([dkey, dgate * gate * (1 - gate)], axis=0)
            dh = dh + upstream[t][:units] + ops.matmul(write_kernel, dhead)
            dnew_h = there * dh
            dnew_c = there * dc + dnew_h * o * (1 - ops.square(tanh_c))
            dgates = ops.concatenate(
                [
                    dnew_c * g * i * (1 - i),
                    dnew_c * earlier_c[t] * f * (1 - f),
                    dnew_c * i * (1 - ops.square(g)),
                    dnew_h * tanh_c * o * (1 - o),
                ],
                axis=0,
            )
            # What a step that is not there passes on.
            passed = (1 - there) * ops.concatenate([dk, dh], axis=0)
            dx = ops.matmul(kernels, dgates) + passed
            dc = (1 - there) * dc + dnew_c * f
            logs = _logged(logs, t, (dgates, dhead, dmean))
            return (dx, dc, dkeys), *logs

        first = (*start, zeros(steps, key_dim, batch))
        sizes = (4 * units, key_dim + 1, size)
        logs = [zeros(steps, size, batch) for size in sizes]
        _, dgates, dheads, dmeans = ops.fori_loop(
            0, steps, backward, (first, *logs)
        )
        dread = ops.einsum("tkb,skb->bts", dmeans[:, :key_dim], keys)
        dkernels = _over_all_steps(xs, dgates)
        return (
            dread,
            ops.transpose(dmeans[:, key_dim:], (2, 0, 1)),
            ops.zeros_like(ops.transpose(running, (2, 0, 1))),
            dkernels[:size],
            dkernels[size:],
            ops.sum(dgates, axis=(0, 2)),
            _over_all_steps(hs, dheads),
            ops.sum(dheads, axis=(0, 2)),
        )

    outputs = ops.concatenate([hs, keys], axis=1)
    return ops.transpose(outputs, (2, 0, 1)), gradient


def _logged(logs, t, columns):
    return [
        update_row(log, t, one) for log, one in zip(logs, columns, strict=True)
    ]


def _over_all_steps(inputs, outputs):
    """The gradient of a kernel."""
    inputs = ops.reshape(
        ops.transpose(inputs, (1, 0, 2)), (inputs.shape[1], -1)
    )
    outputs = ops.reshape(
        ops.transpose(outputs, (0, 2, 1)), (-1, outputs.shape[1])
    )
    return ops.matmul(inputs, outputs)


def _key_and_gate(outputs, key_dim):
    return ops.relu(outputs[..., :key_dim]), ops.sigmoid(outputs[..., key_dim:])


def _kept(sequence, running):
    """Where a step is not there, what it was at the last one that is."""
    step = ops.arange(ops.shape(running)[1])
    last = ops.where(running, step, 0)
    # The last of all steps so far, step by step for each of them.
    last = ops.max(ops.where(step[:, None] >= step, last[:, None], 0), axis=-1)
    return ops.take_along_axis(sequence, last[..., None], axis=1)
