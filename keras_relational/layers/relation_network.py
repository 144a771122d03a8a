import keras
from keras import ops

from keras_relational.layers.entities import entities_shape
from keras_relational.layers.entities import flatten_entities
from keras_relational.layers.initial_weights import add_weights
from keras_relational.layers.operations import at_least_float32
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class RelationNetwork(keras.layers.Layer):
    """The mean, over all ordered pairs of entities, of a two-layer network.

    With the entities `o_1, …, o_n`,

        outputs = 1/n² Σ_ij relu(W relu(S o_i + R o_j))

    that is, the pair `(o_i, o_j)`, a sender and a receiver, meets a hidden
    layer whose kernel is `S` over the one and `R` over the other: `n` products
    each instead of `n²`. The output layer takes the pairs of one sender at a
    time, few enough to stay in a processor's cache until they are averaged.
    Pairs of an entity with itself are included, and there are no biases.
    Reference: the relation net of [Santoro et al., 2017](
    https://arxiv.org/abs/1706.01427) as [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307), section 4 and Table S2, set it up.

    Args:
        units: Positive integer, size of the output.
        hidden_units: Positive integer, size of the hidden layer.
        kernel_initializer: Initializer of the kernels.

    Call arguments:
        inputs: Float tensor `(batch, n, m)` or `(batch, height, width, m)`, of
            any size.
        mask: Optional boolean tensor `(batch, n)` or `(batch, height, width)`:
            `True` for entities that are there. The mean is over pairs of
            those; where none is there the outputs are zero.

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
        units,
        hidden_units,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_integers(units=units, hidden_units=hidden_units)
        self.units = units
        self.hidden_units = hidden_units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        features = entities_shape(self, input_shape)[-1]
        self.input_spec = keras.layers.InputSpec(axes={-1: features})
        add_weights(
            self,
            self.kernel_initializer,
            sender_kernel=(features, self.hidden_units),
            receiver_kernel=(features, self.hidden_units),
            output_kernel=(self.hidden_units, self.units),
        )

    def call(self, inputs, mask=None):
        entities, mask = flatten_entities(self, inputs, mask)
        batch, n = ops.shape(entities)[:2]
        senders = ops.matmul(entities, self.sender_kernel)
        receivers = ops.matmul(entities, self.receiver_kernel)
        if mask is None:
            mask = ops.ones((batch, n), "bool")
        there = at_least_float32(ops.cast(mask, senders.dtype))
        count = ops.sum(there, axis=1, keepdims=True)
        shares = ops.where(mask, 1 / ops.maximum(count, 1), 0)
        shares = ops.cast(shares, senders.dtype)

        def mean_over_receivers(sender):
            """`(batch, hidden_units)` → `(batch, units)`."""
            hidden = ops.relu(sender[:, None] + receivers)
            hidden = ops.reshape(hidden, (batch * n, self.hidden_units))
            pairs = ops.relu(ops.matmul(hidden, self.output_kernel))
            pairs = ops.reshape(pairs, (batch, n, self.units))
            return ops.sum(pairs * shares[..., None], axis=1)

        means = ops.map(mean_over_receivers, ops.swapaxes(senders, 0, 1))
        return ops.einsum("nbu,bn->bu", means, shares)

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.units)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "hidden_units": self.hidden_units,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }
