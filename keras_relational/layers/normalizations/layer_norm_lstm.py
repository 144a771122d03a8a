from collections.abc import Callable
from collections.abc import Sequence

import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._cells import check_step_shape
from keras_relational.layers._cells import zero_states
from keras_relational.layers._initial_weights import add_weights
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class LayerNormLSTMCell(keras.layers.Layer):
    """An LSTM cell with layer normalization of its gates and of its memory.

    With input x, hidden state h, memory c, and LN the normalization over all
    units, with one gain for each unit,

        i, f, g, o = LN(W x) + LN(U h) + b
        c ← σ(f) c + σ(i) tanh(g)
        h ← σ(o) tanh(LN(c) + b')

    Reference: [Ba et al., 2016](https://arxiv.org/abs/1607.06450), equations
    (20) to (22). Webb et al., 2020, use it in the row "layer norm. (recurrent)"
    of their Tables 1 and 2.

    Args:
        units: Positive integer. Size of h and of c.
        kernel_initializer: Initializer of W.
        recurrent_initializer: Initializer of U.
        epsilon: Small positive number that is added to the variances.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, features)`.
        states: The pair `(h, c)`, each `(batch, units)`.
        training: Boolean. `keras.layers.RNN` passes it. It changes nothing.

    Returns:
        The output h, and the new pair `[h, c]`.

    Raises:
        ValueError: If `units` is not a positive integer, or if the inputs have
            another rank or an unknown size.

    Example:

    >>> rnn = keras.layers.RNN(LayerNormLSTMCell(8))
    >>> rnn(keras.Input((4, 3))).shape
    (None, 8)
    """

    def __init__(
        self,
        units: int,
        kernel_initializer: str | Callable = "glorot_uniform",
        recurrent_initializer: str | Callable = "orthogonal",
        epsilon: float = 1e-5,
        **kwargs: object,
    ):
        super().__init__(**kwargs)
        check_positive_integers(units=units)
        self.units = units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(
            recurrent_initializer
        )
        self.epsilon = epsilon
        self.state_size = [units, units]
        self.output_size = units
        # The gates have the bias b already, so their norms have no shift.
        self.input_norm, self.recurrent_norm, self.memory_norm = (
            keras.layers.LayerNormalization(
                epsilon=epsilon,
                center=name == "memory_norm",
                name=name,
                dtype=self.dtype_policy,
            )
            for name in ("input_norm", "recurrent_norm", "memory_norm")
        )

    def build(self, input_shape: Sequence[int | None]) -> None:
        features = check_step_shape(self, input_shape)
        gates = 4 * self.units
        add_weights(self, self.kernel_initializer, kernel=(features, gates))
        add_weights(
            self,
            self.recurrent_initializer,
            recurrent_kernel=(self.units, gates),
        )
        add_weights(self, "zeros", bias=(gates,))
        self.input_norm.build((None, gates))
        self.recurrent_norm.build((None, gates))
        self.memory_norm.build((None, self.units))

    def call(
        self,
        inputs: keras.KerasTensor,
        states: Sequence[keras.KerasTensor],
        training: bool = False,
    ) -> tuple[keras.KerasTensor, list[keras.KerasTensor]]:
        h, c = states
        gates = self.input_norm(ops.matmul(inputs, self.kernel))
        gates += self.recurrent_norm(ops.matmul(h, self.recurrent_kernel))
        i, f, g, o = ops.split(gates + self.bias, 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(self.memory_norm(c))
        return h, [h, c]

    def get_initial_state(
        self, batch_size: int | None = None
    ) -> list[keras.KerasTensor]:
        return zero_states(self, batch_size, self.state_size)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "units": self.units,
            "kernel_initializer": serialize(self.kernel_initializer),
            "recurrent_initializer": serialize(self.recurrent_initializer),
            "epsilon": self.epsilon,
        }
