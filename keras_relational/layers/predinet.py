import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import dot_products
from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._entities import check_same_size
from keras_relational.layers._entities import entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._entities import no_mask
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class PrediNet(keras.layers.Layer):
    """Each head attends to two entities and compares them by learned relations.

    With the entities `L`, `(n, m)`, each head `h` computes

        Q1 = flatten(L) W_Q1        Q2 = flatten(L) W_Q2        K = L W_K
        E1 = softmax(Q1 Kᵀ) L       E2 = softmax(Q2 Kᵀ) L
        D = E1 W_S − E2 W_S         R = (D, P1, P2)

    `P1` and `P2` are the positions of the two entities: the last two elements
    of `E1` and of `E2`. `AppendCoordinates` appends positions to an image. All
    heads share `W_K` and `W_S`, and each has its own `W_Q1` and `W_Q2`. The
    layer concatenates the `R` of all heads.

    `W_Q1` and `W_Q2` have separate weights for each entity, so the number of
    entities is fixed when the layer is built.

    Reference: [Shanahan et al., 2020](https://arxiv.org/abs/1905.10307),
    section 2. The method `propositions` returns the terms of the propositions
    in equation (1).

    Args:
        num_heads: Positive integer, number of heads, k in the paper.
        num_relations: Positive integer, number of relations that each head
            computes, j in the paper.
        key_dim: Positive integer, size of keys and queries, g in the paper.
        kernel_initializer: Initializer of the kernels.

    Call arguments:
        inputs: Float tensor `(batch, n, m)` or `(batch, height, width, m)`, `m`
            at least 2. An image is read row by row.
        mask: Optional boolean tensor `(batch, n)` or `(batch, height, width)`.
            `True` marks a valid entity. The other entities are set to zero and
            get no attention. If no entity is valid, the outputs are zero.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            attention masks.

    Returns:
        Tensor `(batch, num_heads * (num_relations + 4))` in the compute dtype.
        With `return_attention_scores`, a pair: this tensor, and the pair
        softmax(Q1 Kᵀ), softmax(Q2 Kᵀ), each `(batch, num_heads, n)`.

    Raises:
        ValueError: If a size is not a positive integer, if the inputs are not
            3D or 4D of fixed size or have fewer than two features, or if later
            inputs have another size.

    Example:

    >>> from keras_relational.layers import AppendCoordinates
    >>> model = keras.Sequential()
    >>> model.add(keras.Input((36, 36, 3)))
    >>> model.add(keras.layers.Conv2D(32, 12, strides=6, activation="relu"))
    >>> model.add(AppendCoordinates())
    >>> model.add(PrediNet(num_heads=32, num_relations=16, key_dim=16))
    >>> model.output_shape
    (None, 640)
    """

    def __init__(
        self,
        num_heads: int,
        num_relations: int,
        key_dim: int,
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(
            num_heads=num_heads, num_relations=num_relations, key_dim=key_dim
        )
        self.num_heads = num_heads
        self.num_relations = num_relations
        self.key_dim = key_dim
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        _, num_entities, features = entities_shape(self, input_shape, True)
        if features < 2:
            raise ValueError(
                f"{self.name} takes the last two features of an entity for its "
                "position, so it needs two features or more. Received: "
                f"inputs.shape={tuple(input_shape)}"
            )
        self.built_shape = tuple(input_shape)
        add_weights(
            self,
            self.kernel_initializer,
            # The columns: W_Q1 of every head, then W_Q2 of every head.
            query_kernel=(
                num_entities * features,
                2 * self.num_heads * self.key_dim,
            ),
            key_kernel=(features, self.key_dim),
            relation_kernel=(features, self.num_relations),
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
        _, num_entities, features = entities.shape
        if mask is not None:
            mask = ops.expand_dims(mask, 1)
        # One product computes both queries of all heads.
        queries = ops.matmul(
            ops.reshape(entities, (batch, num_entities * features)),
            self.query_kernel,
        )
        queries = ops.reshape(queries, (batch, -1, self.key_dim))
        keys = ops.matmul(entities, self.key_kernel)
        scores = masked_softmax(dot_products(queries, keys), mask)
        scores = ops.cast(scores, self.compute_dtype)
        # Project before averaging: num_relations + 2 columns instead of m.
        relations = ops.matmul(entities, self.relation_kernel)
        scores_1, scores_2 = ops.split(scores, 2, axis=1)
        distances = ops.matmul(scores_1 - scores_2, relations)
        positions = ops.matmul(scores, entities[..., -2:])
        outputs = ops.concatenate(
            [distances, *ops.split(positions, 2, axis=1)], axis=-1
        )
        outputs = ops.reshape(outputs, (batch, self._output_size()))
        if return_attention_scores:
            return outputs, (scores_1, scores_2)
        return outputs

    def propositions(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> dict[str, keras.KerasTensor]:
        """The outputs as propositions: equation (1) of the paper.

        The proposition of head `h` and relation `i` says that the entities at
        `positions_1[h]` and `positions_2[h]` lie `distances[h, i]` apart.

        Args:
            inputs: Float tensor `(batch, n, m)` or `(batch, height, width, m)`.
            mask: Optional boolean tensor `(batch, n)` or `(batch, height,
                width)`. `True` marks a valid entity.

        Returns:
            Dictionary of tensors: `positions_1` and `positions_2`, each
            `(batch, num_heads, 2)`, in the units of the inputs' last two
            features, and `distances` `(batch, num_heads, num_relations)`.
        """
        outputs = ops.reshape(
            self(inputs, mask=mask), (-1, self.num_heads, self._head_size())
        )
        return {
            "positions_1": outputs[..., -4:-2],
            "positions_2": outputs[..., -2:],
            "distances": outputs[..., :-4],
        }

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
        shape = (batch, self.num_heads, num_entities)
        return outputs, tuple(
            keras.KerasTensor(shape, self.compute_dtype) for _ in range(2)
        )

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_relations": self.num_relations,
            "key_dim": self.key_dim,
            "kernel_initializer": serialize(self.kernel_initializer),
        }

    def _head_size(self):
        return self.num_relations + 4

    def _output_size(self):
        return self.num_heads * self._head_size()
