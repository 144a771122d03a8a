import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import dot_products
from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._attention import project_to_heads
from keras_relational.layers._entities import check_same_size
from keras_relational.layers._entities import entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._entities import no_mask
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class MultiHeadAttentionPooling(keras.layers.Layer):
    """Multi-head self-attention, summed over positions with learned weights.

    With the entities `L`, `(n, m)`, each head computes

        Q = L W_Q        K = L W_K        V = L W_V
        outputs = wᵀ softmax(Q Kᵀ) V

    `w` has one learned weight for each of the `n` positions, so the number of
    entities is fixed when the layer is built. The logits are not scaled, and
    there are no biases. The layer concatenates the outputs of all heads.

    Reference: the MHA baseline of [Shanahan et al.,
    2020](https://arxiv.org/abs/1905.10307), section 4 and Table S2. The paper
    only says "a weighted sum of the resulting vectors". The weights w follow
    the authors' model.

    Args:
        num_heads: Positive integer, k in the paper.
        key_dim: Positive integer, size of keys and queries.
        value_dim: Positive integer, size of values, j + 4 in the paper.
        kernel_initializer: Initializer of the kernels W_Q, W_K and W_V.
        position_initializer: Initializer of `w` of all heads, `(n, num_heads)`.
            The default has deviation 1/√n, as for a linear layer with `n`
            inputs: 0.2 for 25 entities. The paper does not mention it. With
            deviation 0.1 this baseline stays far below the paper's accuracies.

    Call arguments:
        inputs: Float tensor `(batch, n, m)` or `(batch, height, width, m)`. An
            image is read row by row.
        mask: Optional boolean tensor `(batch, n)` or `(batch, height, width)`.
            `True` marks a valid entity. The other entities neither attend nor
            get attention. If no entity is valid, the outputs are zero.
        return_attention_scores: Boolean. If `True`, the layer also returns
            softmax(Q Kᵀ).

    Returns:
        Tensor `(batch, num_heads * value_dim)` in the compute dtype. With
        `return_attention_scores`, a pair: this tensor, and the scores `(batch,
        num_heads, n, n)`. Each row of scores belongs to one query.

    Raises:
        ValueError: If a size is not a positive integer, the inputs are not 3D
            or 4D of fixed size, or later inputs have another size.

    Example:

    >>> layer = MultiHeadAttentionPooling(32, key_dim=16, value_dim=20)
    >>> layer(keras.Input((5, 5, 34))).shape
    (None, 640)
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int,
        kernel_initializer: InitializerLike = "glorot_uniform",
        position_initializer: InitializerLike = "lecun_normal",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(
            num_heads=num_heads, key_dim=key_dim, value_dim=value_dim
        )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.position_initializer = keras.initializers.get(position_initializer)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        _, num_entities, features = entities_shape(self, input_shape, True)
        self.built_shape = tuple(input_shape)
        add_weights(
            self,
            self.kernel_initializer,
            query_kernel=(features, self.num_heads * self.key_dim),
            key_kernel=(features, self.num_heads * self.key_dim),
            value_kernel=(features, self.num_heads * self.value_dim),
        )
        add_weights(
            self,
            self.position_initializer,
            position_kernel=(num_entities, self.num_heads),
        )

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        check_same_size(self, self.built_shape, inputs.shape)
        entities, mask = flatten_entities(self, inputs, mask)
        batch = ops.shape(entities)[0]

        def heads(kernel):  # (batch, num_heads, n, size)
            return project_to_heads(entities, kernel, self.num_heads)

        queries, keys = heads(self.query_kernel), heads(self.key_kernel)
        logits = dot_products(queries, keys)
        if mask is None:
            scores = masked_softmax(logits)
        else:
            valid = ops.expand_dims(mask, 1)
            pair_mask = ops.expand_dims(valid, 3) & ops.expand_dims(valid, 2)
            scores = masked_softmax(logits, pair_mask)
        scores = ops.cast(scores, self.compute_dtype)
        # wᵀ (scores V) = (wᵀ scores) V: for each head, one row instead of n.
        weights = ops.expand_dims(ops.transpose(self.position_kernel), 1)
        weights = ops.matmul(weights, scores)
        outputs = ops.matmul(weights, heads(self.value_kernel))
        outputs = ops.reshape(outputs, (batch, self._output_size()))
        if return_attention_scores:
            return outputs, scores
        return outputs

    compute_mask = no_mask

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], self._output_size())

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        batch, num_entities, _ = entities_shape(self, inputs.shape, True)
        if self.built:
            check_same_size(self, self.built_shape, inputs.shape)
        outputs = keras.KerasTensor(
            (batch, self._output_size()), self.compute_dtype
        )
        if not return_attention_scores:
            return outputs
        shape = (batch, self.num_heads, num_entities, num_entities)
        return outputs, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "kernel_initializer": serialize(self.kernel_initializer),
            "position_initializer": serialize(self.position_initializer),
        }

    def _output_size(self):
        return self.num_heads * self.value_dim
