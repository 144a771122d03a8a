import keras
from keras import ops

from keras_relational.layers._attention import dot_products_of_few
from keras_relational.layers._cells import check_built
from keras_relational.layers._cells import check_step_shape
from keras_relational.layers._cells import repeat_for_batch
from keras_relational.layers._cells import zero_states
from keras_relational.layers._operations import recomputed
from keras_relational.layers.memory import lstm_controller
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class NTMCell(keras.layers.Layer):
    """A Neural Turing Machine that addresses its memory by content alone.

    With input x, the last vector read r, and memory M,

        h = LSTM(h, [x, r])
        k_r, k_w, e, a = relu(linear(h))
        r ← Σ_i softmax_i(M_i · k_r) M_i
        M_i ← M_i (1 − w_i e) + w_i a,    w = softmax_i(M_i · k_w)

    A step reads from the memory before it writes. The initial memory is
    learned.

    Reference: [Graves et al., 2014](https://arxiv.org/abs/1410.5401), as
    [Sinha et al., 2020](https://arxiv.org/abs/2012.01944), section 4.3 and
    appendix A.1, simplify it: one read head and one write head, no addressing
    by location, dot products instead of cosine similarities, and a ReLU before
    all four vectors. There is no key strength, because the length of a key
    already scales its dot products.

    A stateful `keras.layers.RNN` resets all states to zero, including the
    memory. It does not return to the learned memory.

    Args:
        units: Positive integer, size of the controller.
        memory_size: Positive integer, number of rows of the memory.
        memory_dim: Positive integer, size of a row.

    Call arguments:
        inputs: Float tensor `(batch, features)`.
        states: List of four tensors: h `(batch, units)`, the LSTM's cell state
            `(batch, units)`, r `(batch, memory_dim)`, and M `(batch,
            memory_size * memory_dim)`.
        training: Boolean. `keras.layers.RNN` passes it. It changes nothing.
        return_attention_scores: Boolean. If `True`, the cell also returns the
            weights of reading and writing.

    Returns:
        The output h `(batch, units)`, and the list of new states. With
        `return_attention_scores` also a tensor `(batch, 2, memory_size)`: the
        weights of reading, then the weights of writing.

    Raises:
        ValueError: If a size is not a positive integer, or the inputs are not
            2D with a fixed last axis.

    Example:

    >>> rnn = keras.layers.RNN(NTMCell(512))
    >>> rnn(keras.Input((9, 128))).shape
    (None, 512)
    """

    def __init__(
        self,
        units: int,
        memory_size: int = 10,
        memory_dim: int = 256,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(
            units=units, memory_size=memory_size, memory_dim=memory_dim
        )
        self.units = units
        self.memory_size = memory_size
        self.memory_dim = memory_dim
        self.output_size = units
        self.state_size = [units, units, memory_dim, memory_size * memory_dim]

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        features = check_step_shape(self, input_shape)
        lstm_controller.add_lstm_weights(
            self, features + self.memory_dim, self.units
        )
        size = 4 * self.memory_dim
        self.head_kernel = self.add_weight(
            (self.units, size),
            lstm_controller.relu_initializer(),
            name="head_kernel",
        )
        self.head_bias = self.add_weight(
            (size,),
            lstm_controller.bias_initializer(self.units),
            name="head_bias",
        )
        self.initial_memory = self.add_weight(
            (self.memory_size, self.memory_dim),
            lstm_controller.sigmoid_initializer(),
            name="initial_memory",
        )

    def call(
        self,
        inputs: keras.KerasTensor,
        states: list[keras.KerasTensor],
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> tuple:
        h, c, read, memory = states
        x = ops.concatenate([inputs, read], axis=-1)
        h, c = lstm_controller.lstm_step(
            x, h, c, self.kernel, self.recurrent_kernel, self.bias
        )
        heads = ops.matmul(h, self.head_kernel) + self.head_bias
        read, memory, weights = recomputed(self._address)(heads, memory)
        states = [h, c, read, memory]
        return (h, states, weights) if return_attention_scores else (h, states)

    def _address(self, heads, memory):
        """The new r and M, and the weights of reading and writing."""
        memory = ops.reshape(memory, (-1, self.memory_size, self.memory_dim))
        # In this order: read key, write key, erase vector, add vector.
        heads = ops.reshape(ops.relu(heads), (-1, 4, self.memory_dim))
        # For both keys: (batch, 2, memory_size).
        similarities = dot_products_of_few(heads[:, :2], memory)
        weights = ops.cast(ops.softmax(similarities, axis=-1), memory.dtype)
        read = ops.matmul(weights[:, :1], memory)[:, 0]
        written = weights[:, 1, :, None]
        memory = memory * (1 - written * heads[:, 2:3]) + written * heads[:, 3:]
        return read, ops.reshape(memory, (-1, self.state_size[3])), weights

    def get_initial_state(
        self, batch_size: int | None = None
    ) -> list[keras.KerasTensor]:
        """The states before the first step.

        Args:
            batch_size: Number of examples.

        Returns:
            List of four tensors: zeros, and the learned memory.

        Raises:
            ValueError: If the cell is not built yet.
        """
        check_built(self)
        memory = ops.cast(self.initial_memory, self.compute_dtype)
        memory = ops.reshape(memory, (1, self.state_size[3]))
        return [
            *zero_states(self, batch_size, self.state_size[:3]),
            repeat_for_batch(memory, batch_size),
        ]

    def get_config(self) -> dict:
        names = ("units", "memory_size", "memory_dim")
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own}
