import keras
from keras import ops

from keras_relational.layers import lstm_controller
from keras_relational.layers.attention import dot_products
from keras_relational.layers.cells import check_built
from keras_relational.layers.cells import check_step_shape
from keras_relational.layers.cells import repeat_for_batch
from keras_relational.layers.cells import zero_states
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class NTMCell(keras.layers.Layer):
    """A Neural Turing Machine that addresses its memory by content alone.

    With input x, what was read last r, and memory M, at first one that is
    learned,

        h = LSTM(h, [x, r])
        k_r, k_w, e, a = relu(linear(h))
        r ← Σ_i softmax_i(M_i · k_r) M_i
        M_i ← M_i (1 − w_i e) + w_i a,    w = softmax_i(M_i · k_w)

    where a step reads what the ones before it have written. Reference: [Graves
    et al., 2014](https://arxiv.org/abs/1410.5401), as [Sinha et al., 2020](
    https://arxiv.org/abs/2012.01944), section 4.3 and A.1, simplify it: one
    read and one write head, no addressing by location, dot products for cosine
    similarities, ReLU before all four vectors. As a product, unlike a cosine,
    has a scale of its own, there is no key strength. Mind that a stateful
    `keras.layers.RNN` is reset to zeros, its memory too.

    Args:
        units: Positive integer, size of the controller.
        memory_size: Positive integer, number of rows of the memory.
        memory_dim: Positive integer, size of a row.

    Call arguments:
        inputs: Float tensor `(batch, features)`.
        states: h, c, r `(batch, memory_dim)` and M `(batch, memory_size *
            memory_dim)`.
        return_attention_scores: Whether to return them, too.

    Returns:
        The output h `(batch, units)`, and the new states; and with
        `return_attention_scores` the softmax that is read with and w, `(batch,
        2, memory_size)`.

    Raises:
        ValueError: If a size is not a positive integer, or not fixed.

    Example:

    >>> rnn = keras.layers.RNN(NTMCell(512))
    >>> rnn(keras.Input((9, 128))).shape
    (None, 512)
    """

    def __init__(self, units, memory_size=10, memory_dim=256, **kwargs):
        super().__init__(**kwargs)
        check_positive_integers(
            units=units, memory_size=memory_size, memory_dim=memory_dim
        )
        self.units = units
        self.memory_size = memory_size
        self.memory_dim = memory_dim
        self.output_size = units
        self.state_size = [units, units, memory_dim, memory_size * memory_dim]

    def build(self, input_shape):
        check_step_shape(self, input_shape)
        lstm_controller.add_lstm_weights(
            self, input_shape[-1] + self.memory_dim, self.units
        )
        size = 4 * self.memory_dim
        self.head_kernel = self.add_weight(
            (self.units, size),
            lstm_controller.side_by_side(lstm_controller.before_relu(size)),
            name="head_kernel",
        )
        self.head_bias = self.add_weight(
            (size,), lstm_controller.bias(self.units), name="head_bias"
        )
        shape = self.memory_size, self.memory_dim
        self.initial_memory = self.add_weight(
            shape,
            lstm_controller.side_by_side(
                lstm_controller.before_sigmoid(self.memory_dim)
            ),
            name="initial_memory",
        )

    def call(
        self, inputs, states, training=False, return_attention_scores=False
    ):
        h, c, read, memory = states
        memory = ops.reshape(memory, (-1, self.memory_size, self.memory_dim))
        x = ops.concatenate([inputs, read], axis=-1)
        h, c = lstm_controller.lstm_step(self, x, h, c)
        heads = ops.relu(ops.matmul(h, self.head_kernel) + self.head_bias)
        heads = ops.reshape(heads, (-1, 4, self.memory_dim))
        # Both keys at once: (batch, 2, memory_size).
        matches = dot_products(heads[:, :2], memory)
        weights = ops.cast(ops.softmax(matches, axis=-1), memory.dtype)
        read = ops.matmul(weights[:, :1], memory)[:, 0]
        written = weights[:, 1, :, None]
        memory = memory * (1 - written * heads[:, 2:3]) + written * heads[:, 3:]
        memory = ops.reshape(memory, (-1, self.state_size[3]))
        states = [h, c, read, memory]
        return (h, states, weights) if return_attention_scores else (h, states)

    def get_initial_state(self, batch_size=None):
        check_built(self)
        memory = ops.cast(self.initial_memory, self.compute_dtype)
        memory = ops.reshape(memory, (1, self.state_size[3]))
        return [
            *zero_states(self, batch_size, self.state_size[:3]),
            repeat_for_batch(memory, batch_size),
        ]

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "memory_size": self.memory_size,
            "memory_dim": self.memory_dim,
        }
