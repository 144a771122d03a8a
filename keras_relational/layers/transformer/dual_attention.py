import keras
from keras import ops

from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._attention import project_heads
from keras_relational.layers._attention import project_to_heads
from keras_relational.layers._attention import rotated
from keras_relational.layers._attention import scaled_dot_products
from keras_relational.layers._entities import check_entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers._initial_weights import clone_initializer
from keras_relational.layers._initial_weights import draw_apart
from keras_relational.layers._initial_weights import next_initializer
from keras_relational.layers._sublayers import built_dense
from keras_relational.layers._sublayers import built_normalization
from keras_relational.layers.transformer._entities_and_symbols import (
    EntitiesAndSymbols,
)
from keras_relational.layers.transformer._entities_and_symbols import (
    check_symbols,
)
from keras_relational.layers.transformer._entities_and_symbols import (
    sum_of_symbols,
)
from keras_relational.validation import check_dropout
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
        _check_divides(
            "num_relations",
            num_relations,
            "num_heads * key_dim",
            num_heads * key_dim,
        )
        _check_rotary(rotary, key_dim)
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
        check_symbols(self, entities.shape, symbols.shape)
        entities, mask = flatten_entities(self, entities, entities_mask)
        if len(symbols.shape) == 3:
            symbols, _ = flatten_entities(self, symbols, mask)
        n = ops.shape(entities)[1]
        scores = masked_softmax(
            scaled_dot_products(
                *_queries_and_keys(self, entities, self.rotary)
            ),
            pair_mask(mask, n, use_causal_mask),
        )
        relations = self._relations(entities)
        attended = sum_of_symbols(scores, symbols, self.value_kernel)
        attended = attended + self._sum_of_relations(scores, relations)
        outputs = project_heads(attended, self.output_kernel)
        if mask is not None:
            outputs = ops.where(ops.expand_dims(mask, -1), outputs, 0)
        if return_attention_scores:
            found = scores, relations
            return outputs, tuple(
                ops.cast(x, self.compute_dtype) for x in found
            )
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
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }

    def _relations(self, entities):
        """r, `(batch, num_relations, n, n)`."""
        kernels = [self.relation_query_kernel] * 2
        if not self.symmetric:
            kernels[1] = self.relation_key_kernel
        queries, keys = (
            project_to_heads(entities, kernel, self.num_relations)
            for kernel in kernels
        )
        return self.activation(scaled_dot_products(queries, keys))

    def _sum_of_relations(self, scores, relations):
        """`Σ_j α_h,ij r_ij W_R,h`, `(batch, num_heads, n, key_dim)`."""
        kernel = self.relation_kernel
        scores, relations = (
            ops.cast(x, kernel.dtype) for x in (scores, relations)
        )
        shape = (self.num_relations, self.num_heads, self.key_dim)
        sums = ops.einsum("bhij,brij->bihr", scores, relations)
        return ops.einsum("bihr,rhd->bhid", sums, ops.reshape(kernel, shape))


@keras.saving.register_keras_serializable(package="keras_relational")
class DualAttention(EntitiesAndSymbols):
    """Heads of self-attention and of relational attention, side by side.

        outputs = concat(MultiHeadAttention(x) W_O, RelationalAttention(x, s))

    The first heads pass on the features of other entities, the second ones how
    two entities are related. With m features and so many heads in all, the
    queries, keys and values of a head have the size m / (num_heads +
    num_relational_heads), so the outputs have the size of the entities.

    Reference: [Altabaa and Lafferty, 2024](https://arxiv.org/abs/2405.16727).
    As in the authors' program, W_O mixes the heads of one kind.

    Args:
        num_heads: Positive integer, number of heads of self-attention.
        num_relational_heads: Positive integer, number of relational heads.
        num_relations: Positive integer, as in `RelationalAttention`. By default
            `num_relational_heads`.
        symmetric: Boolean, as in `RelationalAttention`.
        activation: Activation of a relation, as in `RelationalAttention`.
        rotary: Boolean. If `True`, all queries and keys of attention are
            followed by rotary positions.
        kernel_initializer: Initializer of all kernels.

    Call arguments:
        entities: Float tensor `(batch, n, m)`.
        symbols: Float tensor `(batch, n, s)` or `(1, n, n, s)`, as for
            `RelationalAttention`.
        entities_mask: Optional boolean tensor `(batch, n)`. `True` marks a
            valid entity. The others get no attention, and their outputs are
            zero.
        use_causal_mask: Boolean. If `True`, no entity attends to later ones.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            attention scores.

    Returns:
        Tensor `(batch, n, m)` in the compute dtype. With
        `return_attention_scores`, a pair: this tensor, and three tensors:

        - self-attention `(batch, num_heads, n, n)`,
        - relational attention `(batch, num_relational_heads, n, n)`,
        - relations `(batch, num_relations, n, n)`.

    Raises:
        ValueError: If a size is not a positive integer, the number of heads
            does not divide m, or the shapes of entities and symbols do not
            fit.

    Example:

    >>> from keras_relational.layers import SymbolicAttention
    >>> entities = keras.Input((10, 64))
    >>> symbols = SymbolicAttention(32)(entities)
    >>> DualAttention(2, num_relational_heads=2)(entities, symbols).shape
    (None, 10, 64)
    """

    def __init__(
        self,
        num_heads: int,
        num_relational_heads: int,
        num_relations: int | None = None,
        symmetric: bool = False,
        activation: str = "linear",
        rotary: bool = False,
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        if num_relations is None:
            num_relations = num_relational_heads
        check_positive_integers(
            num_heads=num_heads,
            num_relational_heads=num_relational_heads,
            num_relations=num_relations,
        )
        self.num_heads = num_heads
        self.num_relational_heads = num_relational_heads
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
        heads = self.num_heads + self.num_relational_heads
        _check_divides(
            "num_heads + num_relational_heads", heads, "entities' m", features
        )
        self.key_dim = features // heads
        _check_rotary(self.rotary, self.key_dim)
        width = self.num_heads * self.key_dim
        add_weights(
            self,
            self.kernel_initializer,
            query_kernel=(features, width),
            key_kernel=(features, width),
            value_kernel=(features, width),
            output_kernel=(width, width),
        )
        self.relational_attention = RelationalAttention(
            self.num_relational_heads,
            self.key_dim,
            self.num_relations,
            self.symmetric,
            self.activation,
            self.rotary,
            next_initializer(self, self.kernel_initializer),
            dtype=self.dtype_policy,
            name="relational_attention",
        )
        self.relational_attention.build(entities_shape, symbols_shape)

    def call(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        entities_mask: keras.KerasTensor | None = None,
        use_causal_mask: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        relational, found = self.relational_attention(
            entities,
            symbols,
            entities_mask=entities_mask,
            use_causal_mask=use_causal_mask,
            return_attention_scores=True,
        )
        entities, mask = flatten_entities(self, entities, entities_mask)
        pairs = pair_mask(mask, ops.shape(entities)[1], use_causal_mask)
        queries, keys = _queries_and_keys(self, entities, self.rotary)
        scores = masked_softmax(scaled_dot_products(queries, keys), pairs)
        values = project_to_heads(entities, self.value_kernel, self.num_heads)
        sensory = ops.matmul(ops.cast(scores, values.dtype), values)
        sensory = project_heads(sensory, self.output_kernel)
        if mask is not None:
            sensory = ops.where(ops.expand_dims(mask, -1), sensory, 0)
        outputs = ops.concatenate([sensory, relational], axis=-1)
        if return_attention_scores:
            return outputs, (ops.cast(scores, self.compute_dtype), *found)
        return outputs

    def compute_output_shape(
        self,
        entities_shape: tuple[int | None, ...],
        symbols_shape: tuple[int | None, ...],
    ) -> tuple[int | None, ...]:
        return tuple(entities_shape)

    def compute_output_spec(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        entities_mask: keras.KerasTensor | None = None,
        use_causal_mask: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        sizes = [
            (self.num_heads,),
            (self.num_relational_heads,),
            (self.num_relations,),
        ]
        scores = sizes if return_attention_scores else None
        return self.specs(entities, symbols, scores)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_relational_heads": self.num_relational_heads,
            "num_relations": self.num_relations,
            "symmetric": self.symmetric,
            "activation": keras.activations.serialize(self.activation),
            "rotary": self.rotary,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }


@keras.saving.register_keras_serializable(package="keras_relational")
class DualAttentionBlock(EntitiesAndSymbols):
    """A Transformer's encoder or decoder layer, with dual attention.

    With the entities x and their symbols s, it computes

        x = x + DualAttention(LayerNorm(x), s)
        x = x + MultiHeadAttention(LayerNorm(x), context)    with a context
        outputs = x + W₂ activation(W₁ LayerNorm(x) + b₁) + b₂

    or without `normalize_first` each line as `LayerNorm(x + …(x))`. For the
    decoder of a Transformer give `num_cross_heads`, and call the layer with a
    context and `use_causal_mask`.

    Reference: [Altabaa and Lafferty, 2024](https://arxiv.org/abs/2405.16727).
    With their weights it computes what the blocks of the authors' package
    `dual-attention` compute. Layer normalizations have ε = 1e-5, as theirs.

    Args:
        num_heads: Positive integer, number of heads of self-attention.
        num_relational_heads: Positive integer, number of relational heads.
        hidden_units: Positive integer, size of the hidden layer.
        num_cross_heads: Non-negative integer, number of heads of attention to
            the context. 0 for an encoder.
        num_relations: Positive integer, as in `RelationalAttention`. By default
            `num_relational_heads`.
        symmetric: Boolean, as in `RelationalAttention`.
        rotary: Boolean, as in `DualAttention`.
        activation: Activation of the hidden layer. `"gelu"` is exact, and that
            of `dual-attention` the tanh form, as in `RelationalAttention`.
        dropout: Float from 0 up to 1, share of numbers of each change of x that
            are dropped in training.
        normalize_first: Boolean. If `True`, x is normalized before each change,
            or else after it.
        kernel_initializer: Initializer of all kernels.

    Call arguments:
        entities: Float tensor `(batch, n, m)`.
        symbols: Float tensor `(batch, n, s)` or `(1, n, n, s)`, as for
            `RelationalAttention`.
        context: Float tensor `(batch, k, c)`, what a decoder attends to.
        entities_mask: Optional boolean tensor `(batch, n)`. `True` marks a
            valid entity. The others get no attention, and their outputs are
            zero.
        context_mask: Optional boolean tensor `(batch, k)`. `True` marks a valid
            entry of the context.
        use_causal_mask: Boolean. If `True`, no entity attends to later ones.
        training: Boolean. If `True`, dropout is on.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            scores of its `DualAttention`.

    Returns:
        Tensor `(batch, n, m)` in the compute dtype. With
        `return_attention_scores`, a pair: this tensor, and the three tensors
        that `DualAttention` returns.

    Raises:
        ValueError: If a size is not a positive integer, a number of heads does
            not divide m, there is a context without `num_cross_heads` or the
            other way round, or the shapes of entities and symbols do not fit.

    Example:

    >>> from keras_relational.layers import SymbolicAttention
    >>> entities = keras.Input((10, 64))
    >>> symbols = SymbolicAttention(32)(entities)
    >>> block = DualAttentionBlock(2, 2, hidden_units=128, rotary=True)
    >>> block(entities, symbols).shape
    (None, 10, 64)
    """

    def __init__(
        self,
        num_heads: int,
        num_relational_heads: int,
        hidden_units: int,
        num_cross_heads: int = 0,
        num_relations: int | None = None,
        symmetric: bool = False,
        rotary: bool = False,
        activation: str = "relu",
        dropout: float = 0.0,
        normalize_first: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(hidden_units=hidden_units)
        if num_cross_heads:
            check_positive_integers(num_cross_heads=num_cross_heads)
        check_dropout(dropout)
        self.num_heads = num_heads
        self.num_relational_heads = num_relational_heads
        self.hidden_units = hidden_units
        self.num_cross_heads = num_cross_heads
        self.num_relations = num_relations
        self.symmetric = symmetric
        self.rotary = rotary
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.normalize_first = normalize_first
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        # Created here rather than in `build`, so that its arguments are checked
        # at once.
        self.dual_attention = DualAttention(
            num_heads,
            num_relational_heads,
            num_relations,
            symmetric,
            rotary=rotary,
            kernel_initializer=clone_initializer(self.kernel_initializer, 0),
            dtype=self.dtype_policy,
            name="dual_attention",
        )

    def build(
        self,
        entities_shape: tuple[int | None, ...],
        symbols_shape: tuple[int | None, ...],
        context_shape: tuple[int | None, ...] | None = None,
    ) -> None:
        features = check_entities_shape(self, entities_shape, "entities")
        self._check_context(context_shape)
        self.dual_attention.build(entities_shape, symbols_shape)
        names = ["attention", "update"]
        self.cross_attention = None
        if context_shape is not None:
            _check_divides(
                "num_cross_heads", self.num_cross_heads, "entities' m", features
            )
            names.insert(1, "cross_attention")
            self.cross_attention = keras.layers.MultiHeadAttention(
                self.num_cross_heads,
                features // self.num_cross_heads,
                use_bias=False,
                kernel_initializer=next_initializer(
                    self, self.kernel_initializer
                ),
                dtype=self.dtype_policy,
                name="cross_attention",
            )
            number = len(self.weights)
            self.cross_attention.build(entities_shape, context_shape)
            draw_apart(self.cross_attention, self.kernel_initializer, number)
        self.hidden = built_dense(
            self,
            entities_shape,
            self.hidden_units,
            "hidden",
            self.activation,
        )
        hidden_shape = (*entities_shape[:2], self.hidden_units)
        self.update = built_dense(self, hidden_shape, features, "update")
        self.normalizations, self.dropouts = {}, {}
        for name in names:
            self.normalizations[name] = built_normalization(
                self, entities_shape, f"{name}_normalization", epsilon=1e-5
            )
            self.dropouts[name] = keras.layers.Dropout(
                self.dropout, dtype=self.dtype_policy, name=f"{name}_dropout"
            )

    def call(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        context: keras.KerasTensor | None = None,
        entities_mask: keras.KerasTensor | None = None,
        context_mask: keras.KerasTensor | None = None,
        use_causal_mask: bool = False,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        self._check_context(context)
        entities, mask = flatten_entities(self, entities, entities_mask)
        found = []

        def attention(x):
            outputs, scores = self.dual_attention(
                x,
                symbols,
                entities_mask=mask,
                use_causal_mask=use_causal_mask,
                return_attention_scores=True,
            )
            found.append(scores)
            return outputs

        def cross_attention(x):
            keys, valid = flatten_entities(self, context, context_mask)
            if valid is not None:
                valid = valid[:, None]
            return self.cross_attention(x, keys, attention_mask=valid)

        def change(x, function, name):
            normalize = self.normalizations[name]
            new = function(normalize(x) if self.normalize_first else x)
            x = x + self.dropouts[name](new, training=training)
            return x if self.normalize_first else normalize(x)

        x = change(entities, attention, "attention")
        if context is not None:
            x = change(x, cross_attention, "cross_attention")
        x = change(x, lambda x: self.update(self.hidden(x)), "update")
        if mask is not None:
            x = ops.where(ops.expand_dims(mask, -1), x, 0)
        if return_attention_scores:
            return x, found[0]
        return x

    def compute_output_shape(
        self,
        entities_shape: tuple[int | None, ...],
        symbols_shape: tuple[int | None, ...],
        context_shape: tuple[int | None, ...] | None = None,
    ) -> tuple[int | None, ...]:
        return tuple(entities_shape)

    def compute_output_spec(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        context: keras.KerasTensor | None = None,
        entities_mask: keras.KerasTensor | None = None,
        context_mask: keras.KerasTensor | None = None,
        use_causal_mask: bool = False,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        self._check_context(context)
        return self.dual_attention.compute_output_spec(
            entities, symbols, return_attention_scores=return_attention_scores
        )

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_relational_heads": self.num_relational_heads,
            "hidden_units": self.hidden_units,
            "num_cross_heads": self.num_cross_heads,
            "num_relations": self.num_relations,
            "symmetric": self.symmetric,
            "rotary": self.rotary,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "normalize_first": self.normalize_first,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }

    def _check_context(self, context):
        if (context is None) == bool(self.num_cross_heads):
            given = "no context" if context is None else "a context"
            raise ValueError(
                f"{self.name} attends to a context if it has num_cross_heads. "
                f"Received: {given}, and num_cross_heads="
                f"{self.num_cross_heads}"
            )


def pair_mask(
    mask: keras.KerasTensor | None, n: int, causal: bool
) -> keras.KerasTensor | None:
    """Which entity may attend to which.

    Args:
        mask: Optional boolean tensor `(batch, n)`, `True` for a valid entity.
        n: Number of entities.
        causal: If `True`, no entity may attend to later ones.

    Returns:
        Boolean tensor that broadcasts to `(batch, num_heads, n, n)`, or `None`
        if all may attend to all.
    """
    pairs = None if mask is None else mask[:, None, None]
    if not causal:
        return pairs
    places = ops.arange(n)
    earlier = (places[None] <= places[:, None])[None, None]
    return earlier if pairs is None else pairs & earlier


def _queries_and_keys(layer, entities, rotary):
    """Both `(batch, num_heads, n, key_dim)`."""
    for kernel in (layer.query_kernel, layer.key_kernel):
        heads = project_to_heads(entities, kernel, layer.num_heads)
        yield rotated(heads) if rotary else heads


def _check_divides(name, number, what, size):
    if size % number:
        raise ValueError(
            f"`{name}` must divide {what}, which is {size}. Received: "
            f"{name}={number}"
        )


def _check_rotary(rotary, key_dim):
    if rotary and key_dim % 2:
        raise ValueError(
            "Rotary positions turn pairs of features, so the size of a head "
            f"must be even. Received: {key_dim}"
        )
