from collections.abc import Sequence

import keras
from keras import ops

from keras_relational.layers._attention import over_rows
from keras_relational.layers._cells import check_step_shape
from keras_relational.layers._cells import repeat_for_batch
from keras_relational.layers._operations import recomputed
from keras_relational.layers._sublayers import LayerNormalization
from keras_relational.layers.slots._active import attend_to_slots
from keras_relational.layers.slots._products import Products
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class RelationalMemoryCell(keras.layers.Layer):
    """One step of a relational memory core, as an RNN cell.

    The rows of a memory M attend to each other and to the input x̂ = linear(x):

        A = softmax(M W_q [M; x̂] W_kᵀ / √d) [M; x̂] W_v, for each head
        M̃ = norm(M + A)
        M̃ ← norm(M̃ + linear(relu(linear(M̃))))
        i, f = W x̂ + U tanh(M) + b
        M ← sigmoid(i) tanh(M̃) + sigmoid(f + 1) M

    The initial M has ones on its diagonal and zeros elsewhere. A stateful
    `keras.layers.RNN` resets M to zeros, and equal rows stay equal. So after a
    reset, assign the result of `get_initial_state` to its `states`. For masked
    steps before the first valid one, Keras' RNN returns zeros on TensorFlow and
    the initial M on JAX. Reference:
    [Santoro et al., 2018](https://arxiv.org/abs/1806.01822), section 3. The
    gates are an input gate and a forget gate. There is no output gate.

    Args:
        units: Positive integer. Size of a row.
        num_slots: Positive integer. Number of rows.
        num_heads: Positive integer, a divisor of `units`. Number of heads of
            the attention.
        key_dim: Positive integer or `None`. Size of the queries and keys of a
            head. `None` takes `units / num_heads`, the size of the values.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, features)`.
        states: List of one tensor: M `(batch, num_slots * units)`, one row
            after the other.
        training: Boolean. `keras.layers.RNN` passes it. It changes nothing.
        return_attention_scores: Boolean. If `True`, also return the attention
            scores.

    Returns:
        M, and a list of M as the new state. With `return_attention_scores` also
        the scores `(batch, num_heads, num_slots, num_slots + 1)`, with the
        input's scores last.

    Raises:
        ValueError: If a size is not a positive integer, or `units` is not a
            multiple of `num_heads`.

    Example:

    >>> cell = RelationalMemoryCell(units=128, num_slots=4, num_heads=4)
    >>> keras.layers.RNN(cell)(keras.Input((50, 32))).shape
    (None, 512)
    """

    def __init__(
        self,
        units: int,
        num_slots: int,
        num_heads: int,
        key_dim: int | None = None,
        **kwargs: object,
    ):
        super().__init__(**kwargs)
        check_positive_integers(
            units=units, num_slots=num_slots, num_heads=num_heads
        )
        if units % num_heads:
            raise ValueError(
                "`units` must be a multiple of `num_heads`. Received: units="
                f"{units}, num_heads={num_heads}"
            )
        key_dim = units // num_heads if key_dim is None else key_dim
        check_positive_integers(key_dim=key_dim)
        self.units = units
        self.num_slots = num_slots
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.output_size = num_slots * units
        self.state_size = [self.output_size]
        keys = num_heads * key_dim
        self.embedding = self._dense("embedding", units)
        self.query = self._dense("query", keys, use_bias=False)
        self.key = self._dense("key", keys, use_bias=False)
        self.value = self._dense("value", units, use_bias=False)
        self.attention_norm = LayerNormalization(
            dtype=self.dtype_policy, name="attention_norm"
        )
        self.hidden = self._dense("hidden", units, activation="relu")
        self.transformed = self._dense("transformed", units)
        self.norm = LayerNormalization(dtype=self.dtype_policy, name="norm")
        self.input_gates = self._dense("input_gates", 2 * units)
        self.memory_gates = self._dense(
            "memory_gates", 2 * units, use_bias=False
        )

    def _dense(self, name, units, **kwargs):
        return keras.layers.Dense(
            units, dtype=self.dtype_policy, name=name, **kwargs
        )

    def build(self, input_shape: Sequence[int | None]) -> None:
        check_step_shape(self, input_shape)
        self.embedding.build(input_shape)
        self.input_gates.build((None, self.units))
        for layer in (
            *(self.query, self.key, self.value, self.attention_norm),
            *(self.hidden, self.transformed, self.norm, self.memory_gates),
        ):
            layer.build((None, None, self.units))

    def call(
        self,
        inputs: keras.KerasTensor,
        states: Sequence[keras.KerasTensor],
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> tuple:
        memory, scores = recomputed(self.step)(inputs, states[0])
        return (memory, [memory], scores)[: 2 + bool(return_attention_scores)]

    def step(
        self, inputs: keras.KerasTensor, memory: keras.KerasTensor
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        """The new memory, and the attention scores."""
        shape = (ops.shape(inputs)[0], self.num_slots, self.units)
        memory = ops.reshape(memory, shape)
        x = ops.expand_dims(self.embedding(inputs), 1)
        rows = ops.concatenate([memory, x], axis=1)
        kernels = [x.kernel for x in (self.query, self.key, self.value)]
        queries, keys, values = Products(*kernels)(rows)
        attended, scores = attend_to_slots(
            queries[:, : self.num_slots], keys, values, self.num_heads
        )
        new = self.attention_norm(memory + attended)
        transformed = over_rows(self.hidden, new)
        new = self.norm(new + over_rows(self.transformed, transformed))
        gates = over_rows(self.memory_gates, ops.tanh(memory))
        i, f = ops.split(gates, 2, axis=-1)
        i_x, f_x = ops.split(over_rows(self.input_gates, x), 2, axis=-1)
        i, f = ops.sigmoid(i + i_x), ops.sigmoid(f + f_x + 1)
        memory = i * ops.tanh(new) + f * memory
        return ops.reshape(memory, (-1, self.output_size)), scores

    def get_initial_state(
        self, batch_size: int | None = None
    ) -> list[keras.KerasTensor]:
        memory = ops.eye(self.num_slots, self.units, dtype=self.compute_dtype)
        memory = ops.reshape(memory, (1, self.output_size))
        return [repeat_for_batch(memory, batch_size)]

    def get_config(self) -> dict:
        names = ("units", "num_slots", "num_heads", "key_dim")
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own}
