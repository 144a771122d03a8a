import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import project
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
from keras_relational.layers.transformer._heads import block_diagonal
from keras_relational.layers.transformer._heads import examples_first
from keras_relational.layers.transformer._heads import from_heads
from keras_relational.layers.transformer.relational_attention import (
    RelationalAttention,
)
from keras_relational.layers.transformer.relational_attention import (
    check_divides,
)
from keras_relational.layers.transformer.relational_attention import (
    check_rotary,
)
from keras_relational.validation import check_dropout
from keras_relational.validation import check_positive_integers


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
        check_divides(
            "num_heads + num_relational_heads", heads, "entities' m", features
        )
        self.key_dim = features // heads
        check_rotary(self.rotary, self.key_dim)
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
        entities, mask = flatten_entities(self, entities, entities_mask)
        relational = self.relational_attention
        attended, scores, relations = relational.attend(
            entities,
            symbols,
            mask,
            use_causal_mask,
            ([self.query_kernel], [self.key_kernel], [self.value_kernel]),
        )
        kernel = block_diagonal(self.output_kernel, relational.output_kernel)
        outputs = project(from_heads(attended), kernel)
        if mask is not None:
            outputs = ops.where(ops.expand_dims(mask, -1), outputs, 0)
        if return_attention_scores:
            found = *ops.split(scores, [self.num_heads], axis=0), relations
            return outputs, examples_first(found, self.compute_dtype)
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
            "kernel_initializer": serialize(self.kernel_initializer),
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
            check_divides(
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
            "kernel_initializer": serialize(self.kernel_initializer),
        }

    def _check_context(self, context):
        if (context is None) == bool(self.num_cross_heads):
            given = "no context" if context is None else "a context"
            raise ValueError(
                f"{self.name} attends to a context if it has num_cross_heads. "
                f"Received: {given}, and num_cross_heads="
                f"{self.num_cross_heads}"
            )
