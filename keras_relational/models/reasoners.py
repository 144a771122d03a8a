"""The same small model around each mechanism: a classifier, and a sorter."""

from collections.abc import Callable

import keras
import numpy as np

from keras_relational import layers
from keras_relational.layers._max_pooling import EntityMaxPooling
from keras_relational.models.declared_roles import declare
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

UNITS = 64


def _abstractor(x, key_dim, activation):
    symbols = layers.PositionalSymbols(x.shape[1], name="symbols")(x)
    abstractor = layers.Abstractor(
        *(4, key_dim, UNITS),
        activation=activation,
        dropout=0.1,
        name="reasoner",
    )
    return abstractor(x, symbols)


def _with_places(x, name="order"):
    """Adds a learned vector for each place: attention sees no order."""
    return x + layers.PositionalSymbols(x.shape[1], name=name)(x)


def _transformer(x):
    sizes = 4, UNITS // 4, UNITS
    block = layers.RelationalTransformerBlock(*sizes, name="reasoner")
    return block(_with_places(x))


def _simplicial_transformer(x):
    x = _with_places(x)
    virtual = layers.VirtualEntities(4, name="virtual_entities")(x)
    sizes = 4, UNITS // 4, 1, UNITS // 4, UNITS
    block = layers.SimplicialTransformerBlock(*sizes, name="reasoner")
    return block(x, virtual)[0]


def _dual_attention(x):
    symbols = layers.PositionalSymbols(x.shape[1], name="symbols")(x)
    block = layers.DualAttentionBlock(2, 2, UNITS, name="reasoner")
    return block(_with_places(x), symbols)


def _slot_attention(x):
    x = _with_places(x)
    x = layers.SlotAttention(4, UNITS, UNITS, name="reasoner")(x)
    # Slots have no order: in training a slot takes now this, now that.
    return EntityMaxPooling(name="slots_as_one")(x)


def _shared_workspace(x):
    x = _with_places(x)
    memory = layers.VirtualEntities(4, name="memory")(x)
    return layers.SharedWorkspace(4, name="reasoner")(x, memory)[0]


def _relational_convolution(x):
    relations = layers.InnerProductRelations(
        16, 16, symmetric=True, name="relations"
    )
    convolution = layers.RelationalConvolution(
        16, min(3, x.shape[1]), pooling="max", name="reasoner"
    )
    return convolution(relations(x))


def _mlp(x):
    x = keras.layers.Flatten("channels_last", name="entities_as_one")(x)
    return keras.layers.Dense(UNITS, "relu", name="reasoner")(x)


def _esbn(x):
    # The form of the second paper. The first one cannot compare two things.
    x = layers.TemporalContextNormalization(name="normalization")(x)
    return layers.ESBN(UNITS, UNITS, confidence=True, name="reasoner")(x)


def _tcn(x):
    x = layers.TemporalContextNormalization(name="normalization")(x)
    return keras.layers.LSTM(UNITS, name="reasoner")(x)


_FOR_CLASSES: dict[str, Callable] = {
    "abstractor": lambda x: _abstractor(x, UNITS // 4, "sigmoid"),
    "dual_attention": _dual_attention,
    "relational_convolution": _relational_convolution,
    "corelnet": lambda x: layers.CoRelNet(False, name="reasoner")(x),
    "predinet": lambda x: layers.PrediNet(4, 16, 16, name="reasoner")(
        _with_places(x)
    ),
    "relation_network": lambda x: layers.RelationNetwork(
        UNITS, UNITS, name="reasoner"
    )(_with_places(x)),
    "transformer": _transformer,
    "simplicial_transformer": _simplicial_transformer,
    "slot_attention": _slot_attention,
    "shared_workspace": _shared_workspace,
    "esbn": _esbn,
    "tcn": _tcn,
    "scoff": lambda x: layers.SCOFF(16, 4, 2, name="reasoner")(x),
    "rims": lambda x: layers.RIMs(16, 4, 2, name="reasoner")(x),
    "lstm": lambda x: keras.layers.LSTM(UNITS, name="reasoner")(x),
    "mlp": _mlp,
}
_FOR_SORTING: dict[str, Callable] = {
    "abstractor": lambda x: _abstractor(x, UNITS, "softmax"),
    "dual_attention": _dual_attention,
    "transformer": _transformer,
    "simplicial_transformer": _simplicial_transformer,
}

SET_REASONERS = tuple(_FOR_CLASSES)
SORTERS = tuple(_FOR_SORTING)


def set_classifier(
    reasoner: str, num_entities: int, num_features: int, num_classes: int = 2
) -> keras.Model:
    """Builds a small classifier of sets of entities around a mechanism.

    A dense layer of 64 embeds each entity. Then come the mechanism, a hidden
    layer of 32 and the logits, as in the pairwise order of [Altabaa et al.,
    2024](https://arxiv.org/abs/2304.00195). Mechanisms that see no order get
    learned places, and so does PrediNet, as its positions. Slots of slot
    attention have no order, so each feature's largest value among them goes
    on. The ESBN has a confidence, and normalized inputs. The Abstractor has the
    authors' sizes, and relational convolutions those of their authors for SET.
    The sizes of the others are not tuned.

    The model declares the parts `"embedding"`, `"reasoner"`, `"hidden"` and
    `"logits"`.

    Args:
        reasoner: One of `SET_REASONERS`.
        num_entities: Positive integer, n.
        num_features: Positive integer, size of an entity.
        num_classes: Positive integer, number of labels.

    Returns:
        `keras.Model` from float entities `(batch, num_entities, num_features)`
        to logits `(batch, num_classes)`.

    Raises:
        ValueError: If `reasoner` is unknown, or a number is not a positive
            integer.

    Example:

    >>> set_classifier("abstractor", 2, 32).output_shape
    (None, 2)
    """
    check_choice("reasoner", reasoner, SET_REASONERS)
    check_positive_integers(
        num_entities=num_entities,
        num_features=num_features,
        num_classes=num_classes,
    )
    entities = keras.Input((num_entities, num_features), name="entities")
    x = keras.layers.Dense(UNITS, name="embedding")(entities)
    x = _FOR_CLASSES[reasoner](x)
    x = keras.layers.Flatten("channels_last")(x)
    x = keras.layers.Dense(32, "relu", name="hidden")(x)
    x = keras.layers.Dense(num_classes, name="logits")(x)
    model = keras.Model(entities, x, name=f"{reasoner}_set_classifier")
    parts = ("embedding", "reasoner", "hidden", "logits")
    return declare(
        model, {"logits": "logits"}, parts={name: name for name in parts}
    )


def sorter(reasoner: str, num_entities: int, num_features: int) -> keras.Model:
    """Builds a model that puts entities in order, one place after the other.

    A dense layer of 64 embeds each entity, and a mechanism relates them. A
    Transformer's decoder attends to the result. It is given the places that
    are known so far, and puts out the logits of the next, as in the sorting of
    random objects of [Altabaa et al., 2024](https://arxiv.org/abs/2304.00195),
    whose simple Abstractor has the same sizes. `greedy_decode` lets it sort.

    Args:
        reasoner: One of `SORTERS`.
        num_entities: Positive integer, n.
        num_features: Positive integer, size of an entity.

    Returns:
        `keras.Model` from a pair of float entities `(batch, n, num_features)`
        and integer places `(batch, n)` to logits `(batch, n, n)`. In training
        the places are those of `reasoners.shift_right`: they begin with `n`,
        for nothing yet, and go on with the place put out before.

    Raises:
        ValueError: If `reasoner` is unknown, or a number is not a positive
            integer.

    Example:

    >>> sorter("abstractor", 10, 12).output_shape
    (None, 10, 10)
    """
    check_choice("reasoner", reasoner, SORTERS)
    check_positive_integers(
        num_entities=num_entities, num_features=num_features
    )
    entities = keras.Input((num_entities, num_features), name="entities")
    places = keras.Input((num_entities,), dtype="int32", name="places")
    x = keras.layers.Dense(UNITS, name="embedding")(entities)
    context = _FOR_SORTING[reasoner](x)
    codes = keras.layers.Embedding(
        num_entities + 1,
        UNITS,
        keras.initializers.RandomNormal(stddev=1.0),
        name="codes",
    )
    y = _with_places(codes(places), "steps")
    y = keras.layers.Dropout(0.1)(y)
    y = _decoder(y, context)
    y = keras.layers.Dense(num_entities, name="logits")(y)
    model = keras.Model((entities, places), y, name=f"{reasoner}_sorter")
    parts = ("embedding", "reasoner", "logits")
    return declare(
        model, {"logits": "logits"}, parts={name: name for name in parts}
    )


def shift_right(places: np.ndarray) -> np.ndarray:
    """The decoder inputs of a `sorter`: its targets, one step late.

    They begin with n, for nothing so far.

    Example:

    >>> shift_right(np.array([[2, 0, 1]]))
    array([[3, 2, 0]], dtype=int32)
    """
    n = places.shape[1]
    shifted = np.full(places.shape, n, "int32")
    shifted[:, 1:] = places[:, :-1]
    return shifted


def greedy_decode(
    model: keras.Model, entities: np.ndarray, batch_size: int = 1_000
) -> np.ndarray:
    """Lets a `sorter` put out one place after the other, from its own places.

    Args:
        model: A `keras.Model` as `sorter` builds.
        entities: Float array `(batch, n, m)`.
        batch_size: Positive integer, number of sequences computed at once.

    Returns:
        Int32 array `(batch, n)`. It may name a place twice.

    Raises:
        ValueError: If `batch_size` is not a positive integer.
    """
    check_positive_integers(batch_size=batch_size)
    number, n = entities.shape[:2]
    places = np.zeros((number, n), "int32")
    for step in range(n):
        inputs = shift_right(places)
        for first in range(0, number, batch_size):
            rows = slice(first, first + batch_size)
            logits = model.predict_on_batch((entities[rows], inputs[rows]))
            places[rows, step] = logits[:, step].argmax(-1)
    return places


def _decoder(x, context):
    """A layer of a Transformer's decoder, which normalizes after each part."""

    def attention():
        return keras.layers.MultiHeadAttention(4, UNITS, dropout=0.1)

    def added(x, change):
        return keras.layers.LayerNormalization()(x + change)

    x = added(x, attention()(x, x, use_causal_mask=True))
    x = added(x, attention()(x, context))
    change = keras.layers.Dense(UNITS, "relu")(x)
    change = keras.layers.Dense(UNITS)(change)
    return added(x, keras.layers.Dropout(0.1)(change))
