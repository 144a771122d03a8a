import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._attention import project_heads
from keras_relational.layers._attention import project_to_heads
from keras_relational.layers._attention import scaled_dot_products
from keras_relational.layers._entities import check_entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers.transformer._entities_and_symbols import (
    EntitiesAndSymbols,
)
from keras_relational.layers.transformer._entities_and_symbols import (
    check_symbols,
)
from keras_relational.layers.transformer._entities_and_symbols import (
    sum_of_symbols,
)
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class RelationalCrossAttention(EntitiesAndSymbols):
    """Attention between entities, which passes on symbols in their place.

    With the entities x and their symbols s, each head h computes

        R_h = activation(x W_Q,h (x W_K,h)ᵀ / √key_dim)
        a_h = R_h s W_V,h
        outputs = concat(a_1, a_2, …) W_O

    R says how entities are related, s W_V says which entity it is. So the
    outputs hold relations and no features. `PositionalSymbols` or
    `SymbolicAttention` give the symbols. Those of `PositionRelativeSymbols`
    depend on the distance of two entities as well: then row i of a_h is
    `Σ_j R_h[i, j] s[i, j] W_V,h`.

    Reference: [Altabaa et al., 2024](https://arxiv.org/abs/2304.00195). The
    division by √key_dim follows one of the authors' two programs.

    Args:
        num_heads: Positive integer, number of heads: of relations.
        key_dim: Positive integer, size of queries, keys and values of a head.
        activation: `"softmax"` over the entities, or an activation of Keras
            for each relation alone, such as `"sigmoid"` or `"linear"`.
        kernel_initializer: Initializer of all kernels.

    Call arguments:
        entities: Float tensor `(batch, n, m)`.
        symbols: Float tensor `(batch, n, s)`, a symbol for each entity. Or
            `(1, n, n, s)`: at `[0, i, j]`, what entity i calls entity j.
        entities_mask: Optional boolean tensor `(batch, n)`. `True` marks a
            valid entity. No relation to the others counts, and their outputs
            are zero.
        return_attention_scores: Boolean. If `True`, the layer also returns R.

    Returns:
        Tensor `(batch, n, s)` in the compute dtype. With
        `return_attention_scores`, a pair: this tensor, and the relations
        `(batch, num_heads, n, n)`.

    Raises:
        ValueError: If a size is not a positive integer, `activation` is
            unknown, or the shapes of entities and symbols do not fit.

    Example:

    >>> from keras_relational.layers import PositionalSymbols
    >>> entities = keras.Input((10, 64))
    >>> symbols = PositionalSymbols(10)(entities)
    >>> RelationalCrossAttention(4, key_dim=16)(entities, symbols).shape
    (None, 10, 64)
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        activation: str = "softmax",
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(num_heads=num_heads, key_dim=key_dim)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.activation = keras.activations.get(activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(
        self,
        entities_shape: tuple[int | None, ...],
        symbols_shape: tuple[int | None, ...],
    ) -> None:
        features = check_entities_shape(self, entities_shape, "entities")
        size = check_symbols(self, entities_shape, symbols_shape)
        width = self.num_heads * self.key_dim
        add_weights(
            self,
            self.kernel_initializer,
            query_kernel=(features, width),
            key_kernel=(features, width),
            value_kernel=(size, width),
            output_kernel=(width, size),
        )

    def call(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        entities_mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        check_symbols(self, entities.shape, symbols.shape)
        entities, mask = flatten_entities(self, entities, entities_mask)
        queries, keys = (
            project_to_heads(entities, kernel, self.num_heads)
            for kernel in (self.query_kernel, self.key_kernel)
        )
        relations = self._activate(scaled_dot_products(queries, keys), mask)
        if len(symbols.shape) == 3:
            symbols, _ = flatten_entities(self, symbols, mask)
        attended = sum_of_symbols(relations, symbols, self.value_kernel)
        outputs = project_heads(attended, self.output_kernel)
        if mask is not None:
            outputs = ops.where(ops.expand_dims(mask, -1), outputs, 0)
        if return_attention_scores:
            return outputs, ops.cast(relations, self.compute_dtype)
        return outputs

    def compute_output_shape(
        self,
        entities_shape: tuple[int | None, ...],
        symbols_shape: tuple[int | None, ...],
    ) -> tuple[int | None, ...]:
        return (*entities_shape[:2], symbols_shape[-1])

    def compute_output_spec(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        entities_mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        scores = (self.num_heads,) if return_attention_scores else None
        return self.specs(entities, symbols, scores)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "activation": keras.activations.serialize(self.activation),
            "kernel_initializer": serialize(self.kernel_initializer),
        }

    def _activate(self, logits, mask):
        keys = None if mask is None else mask[:, None, None]
        if self.activation is keras.activations.softmax:
            return masked_softmax(logits, keys)
        relations = self.activation(logits)
        if keys is None:
            return relations
        return ops.where(keys, relations, 0)
