import keras
import numpy as np
from keras import ops

from keras_relational.layers._attention import dot_products
from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._entities import check_same_size
from keras_relational.layers._entities import entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._entities import no_mask


@keras.saving.register_keras_serializable(package="keras_relational")
class CoRelNet(keras.layers.Layer):
    """How similar entities are to each other, and nothing else about them.

    With the entities `z_1, …, z_n`,

        a_ij = z_i · z_j
        R = softmax_j(a)

    The outputs are the entries of `R`, row by row, for the layers that follow.
    So these see which entities are alike, and never what they look like. The
    layer has no weights. What is alike is learned by the encoder before it.
    A normalization between the two helps, such as
    `TemporalContextNormalization`.

    With `causal`, an entity is compared with itself and with those before it.
    Only these entries of `R` are put out.

    Reference: the Compositional Relational Network of [Kerg et al., 2022](
    https://arxiv.org/abs/2206.05056). `causal` is the form of the authors'
    program.

    Args:
        causal: Boolean. If `True`, entities are compared with earlier ones
            only.

    Call arguments:
        inputs: Float tensor `(batch, n, m)` or `(batch, height, width, m)` of
            fixed size. An image is read row by row.
        mask: Optional boolean tensor `(batch, n)` or `(batch, height, width)`.
            `True` marks a valid entity. The rows and columns of the others are
            zero.
        return_attention_scores: Boolean. If `True`, the layer also returns `R`.

    Returns:
        Tensor `(batch, n²)` in the compute dtype, or `(batch, n (n + 1) / 2)`
        with `causal`. With `return_attention_scores`, a pair: this tensor, and
        `R`, `(batch, n, n)`.

    Raises:
        ValueError: If `causal` is not a boolean, the inputs are not 3D or 4D of
            fixed size, or later inputs have another size.

    Example:

    >>> CoRelNet()(keras.Input((9, 128))).shape
    (None, 45)
    """

    def __init__(self, causal: bool = True, **kwargs: object) -> None:
        super().__init__(**kwargs)
        if not isinstance(causal, bool):
            raise ValueError(
                f"`causal` must be True or False. Received: causal={causal!r}"
            )
        self.causal = causal
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        entities_shape(self, input_shape, True)
        self.built_shape = tuple(input_shape)

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        check_same_size(self, self.built_shape, inputs.shape)
        entities, mask = flatten_entities(self, inputs, mask)
        n = entities.shape[1]
        similarities = dot_products(entities, entities)
        pairs = None
        if self.causal:
            pairs = ops.convert_to_tensor(np.tri(n, dtype=bool))[None]
        if mask is not None:
            valid = mask[:, :, None] & mask[:, None, :]
            pairs = valid if pairs is None else pairs & valid
        scores = masked_softmax(similarities, pairs)
        scores = ops.cast(scores, self.compute_dtype)
        outputs = ops.reshape(scores, (-1, n * n))
        if self.causal:
            outputs = ops.take(outputs, np.flatnonzero(np.tri(n)), axis=1)
        if return_attention_scores:
            return outputs, scores
        return outputs

    compute_mask = no_mask

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        batch, n, _ = entities_shape(self, input_shape, True)
        return (batch, n * (n + 1) // 2 if self.causal else n * n)

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        batch, n, _ = entities_shape(self, inputs.shape, True)
        if self.built:
            check_same_size(self, self.built_shape, inputs.shape)
        shape = self.compute_output_shape(inputs.shape)
        outputs = keras.KerasTensor(shape, self.compute_dtype)
        if not return_attention_scores:
            return outputs
        return outputs, keras.KerasTensor((batch, n, n), self.compute_dtype)

    def get_config(self) -> dict:
        return {**super().get_config(), "causal": self.causal}
