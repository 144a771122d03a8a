import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import dot_product_attention
from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._attention import projections
from keras_relational.layers._attention import scaled_dot_products
from keras_relational.layers._attention import split_heads
from keras_relational.layers._attention import weighted_sum
from keras_relational.layers._entities import check_entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._entities import no_mask
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers._initial_weights import clone_initializer
from keras_relational.layers._operations import float32_or_more
from keras_relational.layers._operations import shapes_match
from keras_relational.layers._sublayers import built_dense
from keras_relational.layers._sublayers import built_normalization
from keras_relational.layers.transformer.two_simplicial_attention import (
    TwoSimplicialAttention,
)
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class VirtualEntities(keras.layers.Layer):
    """Learned entities that are the same for every example.

    `outputs[b, j] = embeddings[j]`. They are the scratch pad of the
    2-simplicial Transformer: e_{N+1} to e_{N+M} in section 2 of [Clift et al.,
    2019](https://arxiv.org/abs/1909.00668).

    Args:
        num_entities: Positive integer, number of virtual entities, M in the
            paper.
        embeddings_initializer: Initializer of the entities `(num_entities, m)`.

    Call arguments:
        inputs: Float tensor `(batch, n, m)`. Only its batch size and its last
            axis are used.
        mask: Optional boolean tensor `(batch, n)`. It changes nothing, and is
            not passed on.

    Returns:
        Tensor `(batch, num_entities, m)` in the compute dtype.

    Raises:
        ValueError: If `num_entities` is not a positive integer, or the inputs
            are not 3D with a last axis of known size.

    Example:

    >>> VirtualEntities(2)(keras.Input((40, 64))).shape
    (None, 2, 64)
    """

    def __init__(
        self,
        num_entities: int,
        embeddings_initializer: InitializerLike = "random_normal",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(num_entities=num_entities)
        self.num_entities = num_entities
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer
        )
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        features = check_entities_shape(self, input_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: features})
        add_weights(
            self,
            self.embeddings_initializer,
            embeddings=(self.num_entities, features),
        )

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor:
        batch = ops.shape(inputs)[0]
        return ops.broadcast_to(
            self.embeddings, (batch, *self.embeddings.shape)
        )

    compute_mask = no_mask

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], self.num_entities, input_shape[-1])

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_entities": self.num_entities,
            "embeddings_initializer": serialize(self.embeddings_initializer),
        }


@keras.saving.register_keras_serializable(package="keras_relational")
class RelationalTransformerBlock(keras.layers.Layer):
    """A Transformer block that normalizes before attention and at its end.

    With the entities e, one block computes

        x = LayerNorm(e)
        a_h = softmax(Q_h K_hᵀ / √key_dim) V_h    for each head h,
              with Q_h, K_h, V_h = x W_Q,h, x W_K,h, x W_V,h
        a = concat(a_1, a_2, …)
        outputs = LayerNorm(e + W₂ relu(W₁ a + b₁) + b₂)

    Reference: the block of the relational agent in [Clift et al., 2019](
    https://arxiv.org/abs/1909.00668), equations (1) to (4), section 4 and
    Remark 4.1. Equation (2) leaves out the division by √key_dim, but the
    authors' agents divide.

    Args:
        num_heads: Positive integer, number of heads.
        key_dim: Positive integer, size of queries, keys and values of a head.
        hidden_units: Positive integer, size of the hidden layer.
        num_iterations: Positive integer. The block is applied this many times
            with the same attention and dense weights. Each iteration has its
            own layer normalizations.
        kernel_initializer: Initializer of all kernels.

    Call arguments:
        inputs: Float tensor `(batch, n, m)`.
        mask: Optional boolean tensor `(batch, n)`. `True` marks a valid entity.
            The other entities get no attention, and their outputs are zero.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            attention scores.

    Returns:
        Tensor `(batch, n, m)` in the compute dtype. With
        `return_attention_scores`, a pair: this tensor, and the scores `(batch,
        num_iterations, num_heads, n, n)`, where each row belongs to one query.

    Raises:
        ValueError: If a size is not a positive integer, or the inputs are not
            3D with a last axis of known size.

    Example:

    >>> block = RelationalTransformerBlock(2, key_dim=32, hidden_units=64)
    >>> block(keras.Input((40, 64))).shape
    (None, 40, 64)
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        hidden_units: int,
        num_iterations: int = 1,
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(
            num_heads=num_heads,
            key_dim=key_dim,
            hidden_units=hidden_units,
            num_iterations=num_iterations,
        )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.hidden_units = hidden_units
        self.num_iterations = num_iterations
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    input_dtype = property(float32_or_more)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        features = check_entities_shape(self, input_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: features})
        self._build_attention(features)
        self._build_feedforward(features, self.num_heads * self.key_dim)

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        entities, mask = flatten_entities(self, inputs, mask)
        scores = []
        for iteration in range(self.num_iterations):
            x = self.input_normalizations[iteration](entities)
            attended, score = dot_product_attention(*self._heads(x), mask)
            entities = self._feedforward(entities, attended, iteration)
            scores.append(ops.cast(score, self.compute_dtype))
        if mask is not None:
            entities = ops.where(ops.expand_dims(mask, -1), entities, 0)
        if return_attention_scores:
            return entities, ops.stack(scores, axis=1)
        return entities

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return tuple(input_shape)

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        outputs = keras.KerasTensor(inputs.shape, self.compute_dtype)
        if not return_attention_scores:
            return outputs
        batch, n, _ = inputs.shape
        shape = (batch, self.num_iterations, self.num_heads, n, n)
        return outputs, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "hidden_units": self.hidden_units,
            "num_iterations": self.num_iterations,
            "kernel_initializer": serialize(self.kernel_initializer),
        }

    def _build_attention(self, features):
        width = self.num_heads * self.key_dim
        add_weights(
            self,
            self.kernel_initializer,
            query_kernel=(features, width),
            key_kernel=(features, width),
            value_kernel=(features, width),
        )
        self.input_normalizations = self._normalizations("input", features)

    def _build_feedforward(self, features, width):
        """Builds the dense layers and the output normalizations.

        Args:
            features: Number of features of an entity.
            width: Number of features of the concatenated heads.
        """
        shape = (None, None, width)
        self.hidden = built_dense(
            self, shape, self.hidden_units, "hidden", "relu"
        )
        shape = (None, None, self.hidden_units)
        self.update = built_dense(self, shape, features, "update")
        self.output_normalizations = self._normalizations("output", features)

    def _normalizations(self, name, features):
        """One layer normalization for each iteration."""
        return [
            built_normalization(
                self, (None, None, features), f"{name}_normalization_{i}"
            )
            for i in range(self.num_iterations)
        ]

    def _heads(
        self, x: keras.KerasTensor
    ) -> tuple[keras.KerasTensor, keras.KerasTensor, keras.KerasTensor]:
        """Queries, keys and values, each `(batch, num_heads, n, key_dim)`."""
        kernels = (self.query_kernel, self.key_kernel, self.value_kernel)
        return tuple(
            split_heads(projected, self.num_heads)
            for projected in projections(x, kernels)
        )

    def _feedforward(self, entities, attended, iteration):
        update = self.update(self.hidden(attended))
        # At first the entities are float32 in half precision. `+` takes no two
        # types on TensorFlow.
        total = ops.add(entities, update)
        return self.output_normalizations[iteration](total)


@keras.saving.register_keras_serializable(package="keras_relational")
class SimplicialTransformerBlock(RelationalTransformerBlock):
    """A Transformer block with 1- and 2-simplicial attention.

    With N standard entities, M virtual ones, and x = LayerNorm(e) of all,

        a¹_i = 1-simplicial attention of x_i
               to x_1 … x_N if i is standard, to x_1 … x_{N+M} if i is virtual
        a²_i = TwoSimplicialAttention of x_i to pairs of x_{N+1} … x_{N+M}
               if i is standard, its own value W_U x_i if i is virtual
        outputs = LayerNorm(e + W₂ relu(W₁ [a¹, LayerNorm(a²)] + b₁) + b₂)

    Reference: equations (12) to (14) and section 4 of [Clift et al., 2019](
    https://arxiv.org/abs/1909.00668). The softmax of equation (13) runs over
    the M² pairs of virtual entities. The inner layer normalization is over all
    2-simplicial heads together.

    Args:
        num_heads: Positive integer, number of 1-simplicial heads.
        key_dim: Positive integer, size of queries, keys and values of a
            1-simplicial head.
        num_simplicial_heads: Positive integer, number of 2-simplicial heads.
        simplicial_key_dim: Positive integer, size of queries, keys and values
            of a 2-simplicial head.
        hidden_units: Positive integer, size of the hidden layer.
        num_iterations: Positive integer. The block is applied this many times
            with the same attention and dense weights. Each iteration has its
            own layer normalizations.
        score: `"unsigned"`, `"trilinear"` or `"determinant"`, the score of the
            2-simplicial attention. `TwoSimplicialAttention` defines them.
        kernel_initializer: Initializer of all kernels.

    Call arguments:
        entities: Float tensor `(batch, n, m)`, the standard entities.
        virtual_entities: Float tensor `(batch, v, m)`, the virtual entities.
        entities_mask: Optional boolean tensor `(batch, n)`. `True` marks a
            valid standard entity. The other entities get no attention, and
            their outputs are zero.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            attention scores.

    Returns:
        A pair of tensors in the compute dtype: the standard entities
        `(batch, n, m)` and the virtual entities `(batch, v, m)`. With
        `return_attention_scores`, a pair: this pair, and three tensors of
        scores:

        - standard to standard entities
          `(batch, num_iterations, num_heads, n, n)`,
        - virtual to all entities
          `(batch, num_iterations, num_heads, v, n + v)`,
        - standard entities to pairs of virtual ones
          `(batch, num_iterations, num_simplicial_heads, n, v, v)`.

    Raises:
        ValueError: If a size is not a positive integer, `score` is unknown, or
            the inputs are not 3D with the same last axis.

    Example:

    >>> entities = keras.Input((40, 64))
    >>> virtual_entities = VirtualEntities(2)(entities)
    >>> block = SimplicialTransformerBlock(2, 32, 1, 48, hidden_units=64)
    >>> entities, virtual_entities = block(entities, virtual_entities)
    >>> entities.shape, virtual_entities.shape
    ((None, 40, 64), (None, 2, 64))
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        num_simplicial_heads: int,
        simplicial_key_dim: int,
        hidden_units: int,
        num_iterations: int = 1,
        score: str = "unsigned",
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(
            num_heads,
            key_dim,
            hidden_units,
            num_iterations,
            kernel_initializer,
            **kwargs,
        )
        self.num_simplicial_heads = num_simplicial_heads
        self.simplicial_key_dim = simplicial_key_dim
        self.score = score
        # Created here rather than in `build`, so that its arguments are checked
        # at once.
        self.simplicial_attention = TwoSimplicialAttention(
            num_simplicial_heads,
            simplicial_key_dim,
            score,
            clone_initializer(self.kernel_initializer, 0),
            dtype=self.dtype_policy,
            name="simplicial_attention",
        )

    def build(
        self,
        entities_shape: tuple[int | None, ...],
        virtual_entities_shape: tuple[int | None, ...],
    ) -> None:
        check_entities_shape(self, entities_shape, "entities")
        check_entities_shape(self, virtual_entities_shape, "virtual_entities")
        self._check_virtual_entities(entities_shape, virtual_entities_shape)
        features = entities_shape[-1]
        self._build_attention(features)
        self.simplicial_attention.build(entities_shape, virtual_entities_shape)
        simplicial_width = self.num_simplicial_heads * self.simplicial_key_dim
        self.simplicial_normalizations = self._normalizations(
            "simplicial", simplicial_width
        )
        self._build_feedforward(
            features, self.num_heads * self.key_dim + simplicial_width
        )

    def call(
        self,
        entities: keras.KerasTensor,
        virtual_entities: keras.KerasTensor,
        entities_mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> tuple:
        self._check_virtual_entities(entities.shape, virtual_entities.shape)
        entities, mask = flatten_entities(self, entities, entities_mask)
        virtual_entities = ops.cast(virtual_entities, self.input_dtype)
        n = ops.shape(entities)[1]
        # Standard entities first, then the virtual ones.
        both = ops.concatenate([entities, virtual_entities], axis=1)
        # Standard entities attend to standard ones, virtual ones to all.
        is_virtual = ops.arange(ops.shape(both)[1]) >= n
        seen = is_virtual[:, None] | ~is_virtual
        if mask is not None:
            valid = ops.ones_like(virtual_entities[..., 0], dtype="bool")
            mask_of_both = ops.concatenate([mask, valid], axis=1)
            seen = seen & mask_of_both[:, None, None]
        scores = []
        for iteration in range(self.num_iterations):
            x = self.input_normalizations[iteration](both)
            queries, keys, values = self._heads(x)
            score = masked_softmax(scaled_dot_products(queries, keys), seen)
            attended = weighted_sum(score, values)
            simplicial = self.simplicial_attention(
                x[:, :n],
                base=x[:, n:],
                return_attention_scores=return_attention_scores,
            )
            if return_attention_scores:
                simplicial, simplicial_score = simplicial
                score = ops.cast(score, self.compute_dtype)
                scores.append(
                    (score[:, :, :n, :n], score[:, :, n:], simplicial_score)
                )
            own_values = self.simplicial_attention.values(x[:, n:])
            simplicial = self.simplicial_normalizations[iteration](
                ops.concatenate([simplicial, own_values], axis=1)
            )
            attended = ops.concatenate([attended, simplicial], axis=-1)
            both = self._feedforward(both, attended, iteration)
        entities, virtual_entities = both[:, :n], both[:, n:]
        if mask is not None:
            entities = ops.where(ops.expand_dims(mask, -1), entities, 0)
        if return_attention_scores:
            stacked = tuple(
                ops.stack(iterations, axis=1)
                for iterations in zip(*scores, strict=True)
            )
            return (entities, virtual_entities), stacked
        return entities, virtual_entities

    def compute_mask(
        self,
        entities: keras.KerasTensor,
        entities_mask: keras.KerasTensor | None = None,
    ) -> tuple[keras.KerasTensor | None, None]:
        return entities_mask, None

    def compute_output_shape(
        self,
        entities_shape: tuple[int | None, ...],
        virtual_entities_shape: tuple[int | None, ...],
    ) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
        return tuple(entities_shape), tuple(virtual_entities_shape)

    def compute_output_spec(
        self,
        entities: keras.KerasTensor,
        virtual_entities: keras.KerasTensor,
        entities_mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> tuple:
        self._check_virtual_entities(entities.shape, virtual_entities.shape)
        outputs = tuple(
            keras.KerasTensor(x.shape, self.compute_dtype)
            for x in (entities, virtual_entities)
        )
        if not return_attention_scores:
            return outputs
        (batch, n, _), v = entities.shape, virtual_entities.shape[1]
        n_and_v = None if None in (n, v) else n + v
        shapes = (
            (self.num_heads, n, n),
            (self.num_heads, v, n_and_v),
            (self.num_simplicial_heads, n, v, v),
        )
        return outputs, tuple(
            keras.KerasTensor(
                (batch, self.num_iterations, *shape), self.compute_dtype
            )
            for shape in shapes
        )

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_simplicial_heads": self.num_simplicial_heads,
            "simplicial_key_dim": self.simplicial_key_dim,
            "score": self.score,
        }

    def _check_virtual_entities(self, entities_shape, virtual_entities_shape):
        batch, *_, features = entities_shape
        if not shapes_match(virtual_entities_shape, (batch, None, features)):
            raise ValueError(
                f"{self.name} takes standard and virtual entities with the "
                "same batch size and the same last axis. Received: "
                f"entities.shape={tuple(entities_shape)}, "
                f"virtual_entities.shape={tuple(virtual_entities_shape)}"
            )
