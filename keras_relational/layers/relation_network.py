import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._entities import entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._entities import no_mask
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers._operations import at_least_float32
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class RelationNetwork(keras.layers.Layer):
    """The mean of a two-layer network over all ordered pairs of entities.

    With the entities `o_1, …, o_n`,

        outputs = 1/n² Σ_ij relu(W relu(S o_i + R o_j))

    `o_i` is the sender of the pair, `o_j` the receiver. `S` and `R` are the two
    halves of the hidden layer's kernel. Pairs of an entity with itself count,
    and there are no biases. Applied separately, `S` and `R` need `n` products
    each instead of `n²`. In inference the output layer takes the pairs of one
    sender at a time, which needs `n` times less memory than all pairs at once.

    Reference: the relation net of [Santoro et al., 2017](
    https://arxiv.org/abs/1706.01427), in the form of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307), section 4 and Table S2.

    Args:
        units: Positive integer, size of the output.
        hidden_units: Positive integer, size of the hidden layer.
        kernel_initializer: Initializer of the kernels.

    Call arguments:
        inputs: Float tensor `(batch, n, m)` or `(batch, height, width, m)`.
            The number of entities may vary.
        mask: Optional boolean tensor `(batch, n)` or `(batch, height, width)`.
            `True` marks a valid entity. The mean is over pairs of valid
            entities. If no entity is valid, the outputs are zero.
        training: Boolean. If `True`, all pairs are computed at once. Their
            gradient needs all of them in memory anyway.

    Returns:
        Tensor `(batch, units)` in the compute dtype.

    Raises:
        ValueError: If a size is not a positive integer, or the inputs are not
            3D or 4D with a fixed last axis.

    Example:

    >>> RelationNetwork(640, 256)(keras.Input((25, 34))).shape
    (None, 640)
    """

    def __init__(
        self,
        units: int,
        hidden_units: int,
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(units=units, hidden_units=hidden_units)
        self.units = units
        self.hidden_units = hidden_units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        features = entities_shape(self, input_shape)[-1]
        self.input_spec = keras.layers.InputSpec(axes={-1: features})
        add_weights(
            self,
            self.kernel_initializer,
            sender_kernel=(features, self.hidden_units),
            receiver_kernel=(features, self.hidden_units),
            output_kernel=(self.hidden_units, self.units),
        )

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        training: bool | None = None,
    ) -> keras.KerasTensor:
        entities, mask = flatten_entities(self, inputs, mask)
        batch, n = ops.shape(entities)[:2]
        senders = ops.matmul(entities, self.sender_kernel)
        receivers = ops.matmul(entities, self.receiver_kernel)
        if mask is None:
            mask = ops.ones((batch, n), "bool")
        valid = at_least_float32(ops.cast(mask, senders.dtype))
        count = ops.sum(valid, axis=1, keepdims=True)
        # 1/n for valid entities, 0 for the others.
        weights = ops.where(mask, 1 / ops.maximum(count, 1), 0)
        weights = ops.cast(weights, senders.dtype)

        def weighted_sum(sent):
            """Some senders and their weights → `(batch, units)`."""
            some, their_weights = sent
            hidden = ops.relu(some[:, :, None] + receivers[:, None])
            hidden = ops.reshape(hidden, (-1, self.hidden_units))
            pairs = ops.relu(ops.matmul(hidden, self.output_kernel))
            num_pairs = ops.shape(some)[1] * n
            pairs = ops.reshape(pairs, (-1, num_pairs, self.units))
            pair_weights = their_weights[:, :, None] * weights[:, None]
            pair_weights = ops.reshape(pair_weights, (-1, 1, num_pairs))
            return ops.squeeze(ops.matmul(pair_weights, pairs), 1)

        if training:
            return weighted_sum((senders, weights))
        one_by_one = [
            ops.swapaxes(x, 0, 1)[:, :, None] for x in (senders, weights)
        ]
        return ops.sum(ops.map(weighted_sum, one_by_one), axis=0)

    compute_mask = no_mask

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], self.units)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "units": self.units,
            "hidden_units": self.hidden_units,
            "kernel_initializer": serialize(self.kernel_initializer),
        }
