from collections.abc import Callable
from collections.abc import Sequence

import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers._operations import shapes_match
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class SlotPooling(keras.layers.Layer):
    """Pools the slots of a state into one vector that ignores their order.

    The same layer maps every slot h_k to features f_k, and attention adds them
    up:

        f_k = relu(h_k W + b)
        z = Σ_k softmax_k(f_k w) f_k

    Each head has its own w, and adds up its own part of f_k. z is the
    concatenation of the sums of all heads. Reference: [Goyal et al.,
    2020](https://arxiv.org/abs/2006.16225), section 4: a siamese network maps
    the state of each object file, and attention over the results makes object
    files exchangeable. The paper also says that the results are concatenated,
    but not how the attention works. Here the attention adds them up.

    Args:
        num_slots: Positive integer. Number of slots. The last axis of the
            inputs has them one after the other.
        units: Positive integer. Size of the output.
        num_heads: Positive integer, a divisor of `units`. Number of heads of
            the attention.
        kernel_initializer: Initializer of W and w.
        bias_initializer: Initializer of b.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, ..., num_slots * m)`, such as SCOFF's
            outputs at all steps.
        mask: Optional boolean tensor of the shape of `inputs` without its last
            axis. `True` marks a valid vector. For the others the output is
            zero. The layer passes the mask on.
        return_attention_scores: Boolean. If `True`, also return the scores,
            softmax_k(f_k w).

    Returns:
        Tensor `(batch, ..., units)`. With `return_attention_scores` a pair of
        this tensor and the scores `(batch, ..., num_heads, num_slots)`. Where
        the mask is `False`, all slots have the same score.

    Raises:
        ValueError: If a size is not a positive integer, if `units` is not a
            multiple of `num_heads` or the inputs' last axis of `num_slots`, or
            if the mask has another shape.

    Example:

    >>> SlotPooling(num_slots=6, units=512)(keras.Input((50, 600))).shape
    (None, 50, 512)
    """

    def __init__(
        self,
        num_slots: int,
        units: int,
        num_heads: int = 4,
        kernel_initializer: str | Callable = "glorot_uniform",
        bias_initializer: str | Callable = "zeros",
        **kwargs: object,
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

    def build(self, input_shape: Sequence[int | None]) -> None:
        size = input_shape[-1]
        if size is None or size % self.num_slots:
            raise ValueError(
                f"{self.name} takes {self.num_slots} slots of one size, one "
                "after the other, in the last axis of its inputs. Received: "
                f"inputs.shape={tuple(input_shape)}"
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

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple[keras.KerasTensor, keras.KerasTensor]:
        if mask is not None:
            if not shapes_match(mask.shape, inputs.shape[:-1]):
                raise ValueError(
                    f"{self.name} takes a mask with one value for each vector, "
                    f"of shape {tuple(inputs.shape[:-1])}. Received: "
                    f"mask.shape={tuple(mask.shape)}"
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

    def compute_output_shape(
        self, input_shape: Sequence[int | None]
    ) -> tuple[int | None, ...]:
        return (*input_shape[:-1], self.units)

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple[keras.KerasTensor, keras.KerasTensor]:
        shape = inputs.shape[:-1]
        pooled = keras.KerasTensor((*shape, self.units), self.compute_dtype)
        if not return_attention_scores:
            return pooled
        shape = (*shape, self.num_heads, self.num_slots)
        return pooled, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_slots": self.num_slots,
            "units": self.units,
            "num_heads": self.num_heads,
            "kernel_initializer": serialize(self.kernel_initializer),
            "bias_initializer": serialize(self.bias_initializer),
        }
