import keras
from keras import ops

from keras_relational.layers.attention import masked_softmax
from keras_relational.layers.initial_weights import add_weights
from keras_relational.layers.operations import shapes_match
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class SlotPooling(keras.layers.Layer):
    """One vector of the slots of a state, whatever their order.

    A network that is the same for all slots, and attention over them,

        f_k = relu(h_k W + b)
        z = Σ_k softmax_k(f_k w) f_k

    with a w for each head and z their parts of f side by side. Reference:
    [Goyal et al., 2020](https://arxiv.org/abs/2006.16225), section 4: the state
    of each object file is mapped by a siamese network, and an attention over
    them ensures that they are exchangeable. It also says that they are
    concatenated, but not how the attention works, which adds them up here.

    Args:
        num_slots: Positive integer, number of slots side by side in the input.
        units: Positive integer, size of the output.
        num_heads: Positive integer, a divisor of `units`.
        kernel_initializer: Initializer of W and w.
        bias_initializer: Initializer of b.

    Call arguments:
        inputs: Float tensor `(batch, ..., num_slots * m)`, such as SCOFF's
            outputs at all steps.
        mask: Optional boolean tensor, the inputs without their last axis,
            `True` for vectors that are there. The others are zero, and the mask
            is passed on.
        return_attention_scores: Whether to return the softmax, too.

    Returns:
        Tensor `(batch, ..., units)`. With `return_attention_scores` a pair of
        that and `(batch, ..., num_heads, num_slots)`; where the mask is `False`
        every slot has the same there.

    Raises:
        ValueError: If a size is not a positive integer, `units` cannot be
            divided among the heads, or the inputs among the slots; or the
            mask has another shape.

    Example:

    >>> SlotPooling(num_slots=6, units=512)(keras.Input((50, 600))).shape
    (None, 50, 512)
    """

    def __init__(
        self,
        num_slots,
        units,
        num_heads=4,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_integers(
            num_slots=num_slots, units=units, num_heads=num_heads
        )
        if units % num_heads:
            raise ValueError(
                "`units` must be a multiple of `num_heads`. Received: units="
                f"{units}, num_heads={num_heads}"
            )
        self.num_slots = num_slots
        self.units = units
        self.num_heads = num_heads
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        size = input_shape[-1]
        if size is None or size % self.num_slots:
            raise ValueError(
                f"{self.name} takes {self.num_slots} slots of one size, side "
                f"by side. Received: inputs.shape={tuple(input_shape)}"
            )
        self.input_spec = keras.layers.InputSpec(axes={-1: size})
        add_weights(
            self,
            self.kernel_initializer,
            kernel=(size // self.num_slots, self.units),
            score_kernel=(self.units, self.num_heads),
        )
        self.bias = self.add_weight(
            (self.units,), self.bias_initializer, name="bias"
        )

    def call(self, inputs, mask=None, return_attention_scores=False):
        if mask is not None:
            if not shapes_match(mask.shape, inputs.shape[:-1]):
                raise ValueError(
                    f"{self.name} takes a mask with one value a vector, of "
                    f"shape {tuple(inputs.shape[:-1])}. Received: mask.shape="
                    f"{tuple(mask.shape)}"
                )
            inputs = ops.where(ops.expand_dims(mask, -1), inputs, 0)
        shape = tuple(ops.shape(inputs)[:-1])
        slots = ops.reshape(
            inputs, (*shape, self.num_slots, self.kernel.shape[0])
        )
        features = ops.relu(ops.matmul(slots, self.kernel) + self.bias)
        scores = ops.matmul(features, self.score_kernel)
        scores = masked_softmax(ops.swapaxes(scores, -1, -2))
        # (..., heads, 1, slots) times (..., heads, slots, size of a head)
        parts = ops.reshape(
            features, (*shape, self.num_slots, self.num_heads, -1)
        )
        parts = ops.swapaxes(parts, -2, -3)
        pooled = ops.matmul(ops.expand_dims(scores, -2), parts)
        pooled = ops.reshape(pooled, (*shape, self.units))
        if mask is not None:
            pooled = ops.where(ops.expand_dims(mask, -1), pooled, 0)
        return (pooled, scores) if return_attention_scores else pooled

    def compute_mask(self, inputs, mask=None):
        return mask

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def compute_output_spec(
        self, inputs, mask=None, return_attention_scores=False
    ):
        shape = inputs.shape[:-1]
        pooled = keras.KerasTensor((*shape, self.units), self.compute_dtype)
        if not return_attention_scores:
            return pooled
        shape = (*shape, self.num_heads, self.num_slots)
        return pooled, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "num_slots": self.num_slots,
            "units": self.units,
            "num_heads": self.num_heads,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
            "bias_initializer": keras.initializers.serialize(
                self.bias_initializer
            ),
        }
