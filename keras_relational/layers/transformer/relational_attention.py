import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._attention import project
from keras_relational.layers._attention import rotated
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
from keras_relational.layers.transformer._heads import examples_first
from keras_relational.layers.transformer._heads import from_heads
from keras_relational.layers.transformer._heads import heads_of
from keras_relational.layers.transformer._heads import pair_mask
from keras_relational.layers.transformer._heads import sum_over_keys
from keras_relational.layers.transformer._heads import to_heads
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class RelationalAttention(EntitiesAndSymbols):
    """Attention that passes on how two entities are related.

    With the entities x and their symbols s, each head h computes

        α_h = softmax(x W_Q,h (x W_K,h)ᵀ / √key_dim)
        r_ij,l = activation(x_i U_Q,l · x_j U_K,l / √relation_dim)
        a_h,i = Σ_j α_h,ij (r_ij W_R,h + s_j W_V,h)
        outputs = concat(a_1, a_2, …) W_O

    α chooses the entities j. The vector r_ij has a number for each relation l,
    and s_j says which entity it is with. The features of entity j are not
    passed on. All relations together have as many features as all heads:
    `relation_dim = num_heads key_dim / num_relations`.

    Reference: [Altabaa and Lafferty, 2024](https://arxiv.org/abs/2405.16727).
    Both divisions follow the authors' program.

    Args:
        num_heads: Positive integer, number of heads.
        key_dim: Positive integer, size of queries, keys and values of a head.
        num_relations: Positive integer that divides `num_heads key_dim`, number
            of relations. By default `num_heads`.
        symmetric: Boolean. If `True`, `U_K` is `U_Q`: j is to i what i is to j.
        activation: Activation of a relation, as of `keras.layers.Dense`.
            `"gelu"` is exact; in the authors' package `dual-attention` it is
            the tanh form, which differs by up to 4.7e-4.
        rotary: Boolean. If `True`, W_Q and W_K are followed by rotary
            positions, and `key_dim` must be even.
        kernel_initializer: Initializer of all kernels.

    Call arguments:
        entities: Float tensor `(batch, n, m)`.
        symbols: Float tensor `(batch, n, s)`, a symbol for each entity. Or
            `(1, n, n, s)`: at `[0, i, j]`, what entity i calls entity j.
        entities_mask: Optional boolean tensor `(batch, n)`. `True` marks a
            valid entity. The others get no attention, and their outputs are
            zero.
        use_causal_mask: Boolean. If `True`, no entity attends to later ones.
        return_attention_scores: Boolean. If `True`, the layer also returns α
            and r.

    Returns:
        Tensor `(batch, n, num_heads * key_dim)` in the compute dtype. With
        `return_attention_scores`, a pair: this tensor, and a pair of α,
        `(batch, num_heads, n, n)`, and r, `(batch, num_relations, n, n)`.

    Raises:
        ValueError: If a size is not a positive integer or does not divide
            another, `activation` is unknown, or the shapes of entities and
            symbols do not fit.

    Example:

    >>> from keras_relational.layers import SymbolicAttention
    >>> entities = keras.Input((10, 64))
    >>> symbols = SymbolicAttention(32)(entities)
    >>> RelationalAttention(4, key_dim=8)(entities, symbols).shape
    (None, 10, 32)
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        num_relations: int | None = None,
        symmetric: bool = False,
        activation: str = "linear",
        rotary: bool = False,
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        if num_relations is None:
            num_relations = num_heads
        check_positive_integers(
            num_heads=num_heads, key_dim=key_dim, num_relations=num_relations
        )
        check_divides(
            "num_relations",
            num_relations,
            "num_heads * key_dim",
            num_heads * key_dim,
        )
        check_rotary(rotary, key_dim)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.num_relations = num_relations
        self.symmetric = symmetric
        self.activation = keras.activations.get(activation)
        self.rotary = rotary
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
            relation_query_kernel=(features, width),
        )
        if not self.symmetric:
            add_weights(
                self,
                self.kernel_initializer,
                relation_key_kernel=(features, width),
            )
        add_weights(
            self,
            self.kernel_initializer,
            relation_kernel=(self.num_relations, width),
            value_kernel=(size, width),
            output_kernel=(width, width),
        )

    def call(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        entities_mask: keras.KerasTensor | None = None,
        use_causal_mask: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        entities, mask = flatten_entities(self, entities, entities_mask)
        attended, *found = self.attend(entities, symbols, mask, use_causal_mask)
        outputs = project(from_heads(attended), self.output_kernel)
        if mask is not None:
            outputs = ops.where(ops.expand_dims(mask, -1), outputs, 0)
        if return_attention_scores:
            return outputs, examples_first(found, self.compute_dtype)
        return outputs

    def compute_output_shape(
        self,
        entities_shape: tuple[int | None, ...],
        symbols_shape: tuple[int | None, ...],
    ) -> tuple[int | None, ...]:
        return (*entities_shape[:2], self.num_heads * self.key_dim)

    def compute_output_spec(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        entities_mask: keras.KerasTensor | None = None,
        use_causal_mask: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        sizes = [(self.num_heads,), (self.num_relations,)]
        scores = sizes if return_attention_scores else None
        return self.specs(entities, symbols, scores)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "num_relations": self.num_relations,
            "symmetric": self.symmetric,
            "activation": keras.activations.serialize(self.activation),
            "rotary": self.rotary,
            "kernel_initializer": serialize(self.kernel_initializer),
        }

    def attend(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        mask: keras.KerasTensor | None,
        causal: bool,
        sensory: tuple = ((), (), ()),
    ) -> tuple[keras.KerasTensor, keras.KerasTensor, keras.KerasTensor]:
        """What heads find, `(heads, batch, n, key_dim)`, α and r, heads first.

        First come the heads of `sensory`: kernels of queries, keys and values.
        """
        check_symbols(self, entities.shape, symbols.shape)
        related = [[self.relation_query_kernel]]
        if not self.symmetric:
            related.append([self.relation_key_kernel])
        queries, keys, values = sensory
        groups = [*queries, self.query_kernel], [*keys, self.key_kernel], values
        queries, keys, values, *related = heads_of(
            entities, self.key_dim, *groups, *related
        )
        if self.rotary:
            queries, keys = rotated(queries), rotated(keys)
        pairs = pair_mask(mask, ops.shape(entities)[1], causal)
        split, kernel = [values.shape[0]], self.value_kernel
        # Before the softmax, or else XLA on a CPU has a slow gradient of it.
        logits = ops.split(scaled_dot_products(queries, keys), split, axis=0)
        first, own = (masked_softmax(x, pairs) for x in logits)
        scores = ops.concatenate([first, own], axis=0)
        relations = self._relations(related)
        if len(symbols.shape) == 3:
            symbols, _ = flatten_entities(self, symbols, mask)
            names = to_heads(project(symbols, kernel), self.key_dim)
            values = ops.concatenate([values, names], axis=0)
            found = ops.matmul(ops.cast(scores, values.dtype), values)
            first, found = ops.split(found, split, axis=0)
        else:
            first = ops.matmul(ops.cast(first, values.dtype), values)
            found = sum_of_symbols(ops.swapaxes(own, 0, 1), symbols, kernel)
            found = ops.swapaxes(found, 0, 1)
        found = found + self._sum_of_relations(own, relations)
        return ops.concatenate([first, found], axis=0), scores, relations

    def _relations(self, heads):
        """r, `(num_relations, batch, n, n)`."""
        if self.num_relations != self.num_heads:
            size = self.num_heads * self.key_dim // self.num_relations
            heads = [to_heads(from_heads(x), size) for x in heads]
        return self.activation(scaled_dot_products(heads[0], heads[-1]))

    def _sum_of_relations(self, scores, relations):
        """`Σ_j α_h,ij r_ij W_R,h`, `(num_heads, batch, n, key_dim)`."""
        kernel = self.relation_kernel
        shape = (self.num_relations, self.num_heads, self.key_dim)
        sums = ops.cast(sum_over_keys(scores, relations), kernel.dtype)
        return ops.einsum("hrbi,rhd->hbid", sums, ops.reshape(kernel, shape))


def check_divides(name, number, what, size):
    if size % number:
        raise ValueError(
            f"`{name}` must divide {what}, which is {size}. Received: "
            f"{name}={number}"
        )


def check_rotary(rotary, key_dim):
    if rotary and key_dim % 2:
        raise ValueError(
            "Rotary positions turn pairs of features, so the size of a head "
            f"must be even. Received: {key_dim}"
        )
