import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import dot_products
from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._entities import check_entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._entities import no_mask
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers._initial_weights import clone_initializer
from keras_relational.layers._operations import float32_or_more
from keras_relational.layers._sublayers import built_dense
from keras_relational.layers._sublayers import built_normalization
from keras_relational.layers._sublayers import normalized_dense
from keras_relational.layers.slots._dynamics import joined_gru
from keras_relational.layers.slots._initializers import scaled
from keras_relational.layers.slots._noise import fixed_normal
from keras_relational.layers.slots._noise import normal
from keras_relational.validation import check_positive_integers

# Added to the attention of a slot, before it is divided by its sum. ε in the
# paper.
EPSILON = 1e-8


@keras.saving.register_keras_serializable(package="keras_relational")
class SlotAttention(keras.layers.Layer):
    """Slots that compete for the entities, such as the places of an image.

    With x = LayerNorm(inputs), each slot s_k starts at mean + scale · noise_k,
    and is updated `num_iterations` times:

        q = LayerNorm(s) W_Q
        α_jk = softmax_k(x_j W_K · q_k / √units) + ε
        u_k = Σ_j α_jk x_j W_V / Σ_j α_jk
        s = GRU(u, s)
        s = s + W₂ relu(W₁ LayerNorm(s) + b₁) + b₂

    The softmax is over the slots. So each entity is shared out among them, and
    a slot comes to stand for entities that belong together: an object. The
    slots go into any layer that takes entities, or into `SCOFF`.

    Reference: Algorithm 1 of [Locatello et al., 2020](
    https://arxiv.org/abs/2006.15055). The noise is drawn anew for each example
    in training. Otherwise it is the same fixed numbers for all examples, so
    that a trained model gives one answer. The authors draw in both cases.

    Args:
        num_slots: Positive integer, number of slots.
        units: Positive integer, size of a slot.
        hidden_units: Positive integer, size of the hidden layer.
        num_iterations: Positive integer, number of updates.
        kernel_initializer: Initializer of all kernels but one, and of the mean
            and the logarithm of the scale of the first slots.
        recurrent_initializer: Initializer of the recurrent kernel of the GRU.
        seed: Integer or `None`. Seed of the noise in training.

    Call arguments:
        inputs: Float tensor `(batch, n, m)`. Entities have no order: a layer
            before this one tells the place of each, such as
            `AppendCoordinates`.
        mask: Optional boolean tensor `(batch, n)`. `True` marks a valid entity.
            No slot attends to the others. Without a valid entity all slots are
            zero. The mask is not passed on.
        training: Boolean. If `True`, the noise is drawn.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            α of the last update, without ε.

    Returns:
        Tensor `(batch, num_slots, units)` in the compute dtype. With
        `return_attention_scores`, a pair: this tensor, and the scores `(batch,
        num_slots, n)`.

    Raises:
        ValueError: If a size is not a positive integer, or the inputs are not
            3D with a last axis of known size.

    Example:

    >>> slots = SlotAttention(5, units=64, hidden_units=128)
    >>> slots(keras.Input((49, 32))).shape
    (None, 5, 64)
    """

    def __init__(
        self,
        num_slots: int,
        units: int,
        hidden_units: int,
        num_iterations: int = 3,
        kernel_initializer: InitializerLike = "glorot_uniform",
        recurrent_initializer: InitializerLike = "orthogonal",
        seed: int | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(
            num_slots=num_slots,
            units=units,
            hidden_units=hidden_units,
            num_iterations=num_iterations,
        )
        self.num_slots = num_slots
        self.units = units
        self.hidden_units = hidden_units
        self.num_iterations = num_iterations
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(
            recurrent_initializer
        )
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    input_dtype = property(float32_or_more)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        features = check_entities_shape(self, input_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: features})
        units = self.units
        add_weights(
            self,
            self.kernel_initializer,
            initial_mean=(1, units),
            initial_log_scale=(1, units),
            key_kernel=(features, units),
            value_kernel=(features, units),
            query_kernel=(units, units),
        )
        slots_shape = (None, self.num_slots, units)
        self.input_normalization = built_normalization(
            self, input_shape, "input_normalization"
        )
        self.query_normalization = built_normalization(
            self, slots_shape, "query_normalization"
        )
        self.update_normalization = built_normalization(
            self, slots_shape, "update_normalization"
        )
        number = len(self.weights)
        self.gru = keras.layers.GRUCell(
            units,
            kernel_initializer=clone_initializer(
                self.kernel_initializer, number
            ),
            # Drawn in float32, which the orthogonal initializer needs.
            recurrent_initializer=scaled(1)(
                self.recurrent_initializer, number + 1
            ),
            dtype=self.dtype_policy,
            name="gru",
        )
        self.gru.build((None, units))
        self.hidden = built_dense(
            self, slots_shape, self.hidden_units, "hidden", "relu"
        )
        hidden_shape = (None, self.num_slots, self.hidden_units)
        self.update = built_dense(self, hidden_shape, units, "update")

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        entities, mask = flatten_entities(self, inputs, mask)
        x = self.input_normalization(entities)
        # x W_K · q = x · q W_Kᵀ, and W_V may follow the sum: slots are few.
        kernel = ops.matmul(self.query_kernel, ops.transpose(self.key_kernel))
        queries_of = normalized_dense(self.query_normalization, kernel)
        gru = joined_gru(self.gru, self.value_kernel)
        hidden_of = normalized_dense(
            self.update_normalization, self.hidden.kernel, self.hidden.bias
        )
        slots = self._first_slots(ops.shape(entities)[0], training)
        slots = ops.reshape(slots, (-1, self.units))
        scores = None
        for _ in range(self.num_iterations):
            update, scores = self._read(queries_of(slots), x, mask)
            slots = gru(update, slots)
            slots = slots + self.update(ops.relu(hidden_of(slots)))
        slots = ops.reshape(slots, (-1, self.num_slots, self.units))
        if mask is not None:
            slots = ops.where(ops.any(mask, axis=1)[:, None, None], slots, 0)
        if return_attention_scores:
            return slots, ops.cast(scores, self.compute_dtype)
        return slots

    compute_mask = no_mask

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], self.num_slots, self.units)

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        shape = self.compute_output_shape(inputs.shape)
        outputs = keras.KerasTensor(shape, self.compute_dtype)
        if not return_attention_scores:
            return outputs
        shape = (*shape[:2], inputs.shape[1])
        return outputs, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_slots": self.num_slots,
            "units": self.units,
            "hidden_units": self.hidden_units,
            "num_iterations": self.num_iterations,
            "kernel_initializer": serialize(self.kernel_initializer),
            "recurrent_initializer": serialize(self.recurrent_initializer),
            "seed": self.seed,
        }

    def _first_slots(self, batch, training):
        shape = (batch, self.num_slots, self.units)
        if training:
            noise = normal(shape, self.seed_generator)
        else:
            noise = fixed_normal(self.num_slots, self.units)
        noise = ops.cast(noise, self.compute_dtype)
        slots = self.initial_mean + ops.exp(self.initial_log_scale) * noise
        return ops.broadcast_to(slots, shape)

    def _read(self, queries, x, mask):
        """What slots read, as rows, and the scores `(batch, num_slots, n)`."""
        queries = ops.reshape(queries, (-1, self.num_slots, x.shape[-1]))
        logits = dot_products(x, queries) / self.units**0.5
        scores = ops.swapaxes(masked_softmax(logits), 1, 2)
        weights = scores + EPSILON
        if mask is not None:
            valid = ops.expand_dims(mask, 1)
            scores = ops.where(valid, scores, 0)
            weights = ops.where(valid, weights, 0)
        total = ops.sum(weights, axis=-1, keepdims=True)
        weights = weights / ops.maximum(total, EPSILON)
        means = ops.matmul(ops.cast(weights, x.dtype), x)
        return ops.reshape(means, (-1, x.shape[-1])), scores
