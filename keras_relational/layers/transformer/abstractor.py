import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._entities import check_entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import next_initializer
from keras_relational.layers._sublayers import built_dense
from keras_relational.layers._sublayers import built_normalization
from keras_relational.layers.transformer._entities_and_symbols import (
    EntitiesAndSymbols,
)
from keras_relational.layers.transformer._entities_and_symbols import (
    check_symbols,
)
from keras_relational.layers.transformer.relational_cross_attention import (
    RelationalCrossAttention,
)
from keras_relational.validation import check_dropout
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class Abstractor(EntitiesAndSymbols):
    """Layers of relational cross-attention, from entities to abstract states.

    With the entities x, and their symbols as the first states A, each layer
    computes

        A = LayerNorm(A + Dropout(RelationalCrossAttention(x, A)))
        A = LayerNorm(A + Dropout(W₂ relu(W₁ A + b₁) + b₂))

    So the states know entities by their relations and symbols alone. Symbols
    of pairs, as `PositionRelativeSymbols` gives them, are no states: the first
    layer has nothing to add, and is `A = LayerNorm(Dropout(…(x, symbols)))`.

    Reference: [Altabaa et al., 2024](https://arxiv.org/abs/2304.00195). In the
    authors' program residual sums and layer normalizations can be left out.

    Args:
        num_heads: Positive integer, number of heads: of relations.
        key_dim: Positive integer, size of queries, keys and values of a head.
        hidden_units: Positive integer, size of the hidden layer.
        num_layers: Positive integer, number of layers.
        activation: Activation of relations, as in `RelationalCrossAttention`.
        dropout: Float from 0 up to 1, share of numbers dropped in training.
        kernel_initializer: Initializer of all kernels.

    Call arguments:
        entities: Float tensor `(batch, n, m)`.
        symbols: Float tensor `(batch, n, s)`, or `(1, n, n, s)` for pairs.
        entities_mask: Optional boolean tensor `(batch, n)`. `True` marks a
            valid entity. No relation to the others counts, and their outputs
            are zero.
        training: Boolean. If `True`, dropout is on.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            relations.

    Returns:
        Tensor `(batch, n, s)` in the compute dtype, the last states. With
        `return_attention_scores`, a pair: this tensor, and the relations
        `(batch, num_layers, num_heads, n, n)`.

    Raises:
        ValueError: If a size is not a positive integer, `activation` is
            unknown, `dropout` is no such share, or the shapes of entities
            and symbols do not fit.

    Example:

    >>> from keras_relational.layers import PositionalSymbols
    >>> entities = keras.Input((10, 64))
    >>> symbols = PositionalSymbols(10)(entities)
    >>> abstractor = Abstractor(4, key_dim=16, hidden_units=64, num_layers=2)
    >>> abstractor(entities, symbols).shape
    (None, 10, 64)
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        hidden_units: int,
        num_layers: int = 1,
        activation: str = "softmax",
        dropout: float = 0.0,
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(
            num_heads=num_heads,
            key_dim=key_dim,
            hidden_units=hidden_units,
            num_layers=num_layers,
        )
        check_dropout(dropout)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.hidden_units = hidden_units
        self.num_layers = num_layers
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(
        self,
        entities_shape: tuple[int | None, ...],
        symbols_shape: tuple[int | None, ...],
    ) -> None:
        check_entities_shape(self, entities_shape, "entities")
        size = check_symbols(self, entities_shape, symbols_shape)
        states_shape = (*entities_shape[:2], size)
        self.attentions, self.hidden, self.update = [], [], []
        self.normalizations, self.dropouts = [], []
        for i in range(self.num_layers):
            attention = RelationalCrossAttention(
                self.num_heads,
                self.key_dim,
                self.activation,
                next_initializer(self, self.kernel_initializer),
                dtype=self.dtype_policy,
                name=f"attention_{i}",
            )
            attention.build(entities_shape, states_shape)
            self.attentions.append(attention)
            hidden = built_dense(
                self,
                states_shape,
                self.hidden_units,
                f"hidden_{i}",
                "relu",
            )
            self.hidden.append(hidden)
            hidden_shape = (*states_shape[:2], self.hidden_units)
            update = built_dense(self, hidden_shape, size, f"update_{i}")
            self.update.append(update)
            for name in ("attention", "update"):
                normalization = built_normalization(
                    self, states_shape, f"{name}_normalization_{i}"
                )
                self.normalizations.append(normalization)
                self.dropouts.append(
                    keras.layers.Dropout(
                        self.dropout,
                        dtype=self.dtype_policy,
                        name=f"{name}_dropout_{i}",
                    )
                )

    def call(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        entities_mask: keras.KerasTensor | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        check_symbols(self, entities.shape, symbols.shape)
        entities, mask = flatten_entities(self, entities, entities_mask)
        of_pairs = len(symbols.shape) == 4
        states, scores = symbols, []
        if not of_pairs:
            states, _ = flatten_entities(self, symbols, mask)
        for i in range(self.num_layers):
            change, relations = self.attentions[i](
                entities,
                states,
                entities_mask=mask,
                return_attention_scores=True,
            )
            change = self.dropouts[2 * i](change, training=training)
            is_first_of_pairs = of_pairs and i == 0
            states = change if is_first_of_pairs else states + change
            states = self.normalizations[2 * i](states)
            change = self.update[i](self.hidden[i](states))
            change = self.dropouts[2 * i + 1](change, training=training)
            states = self.normalizations[2 * i + 1](states + change)
            scores.append(relations)
        if mask is not None:
            states = ops.where(ops.expand_dims(mask, -1), states, 0)
        if return_attention_scores:
            return states, ops.stack(scores, axis=1)
        return states

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
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        sizes = (self.num_layers, self.num_heads)
        scores = sizes if return_attention_scores else None
        return self.specs(entities, symbols, scores)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "hidden_units": self.hidden_units,
            "num_layers": self.num_layers,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "kernel_initializer": serialize(self.kernel_initializer),
        }
