"""A seeded initializer draws different values for each weight of a layer."""

import itertools

import keras
import numpy as np
import pytest

from keras_relational import layers

SIZE = 4
# All sizes are equal, so that as many weights as possible have one shape.
SLOTS = {
    "num_heads": 1,
    "key_dim": SIZE,
    "value_dim": SIZE,
    "num_message_heads": 1,
    "message_key_dim": SIZE,
    "message_value_dim": SIZE,
}
TRANSFORMER = {"num_heads": 1, "key_dim": SIZE, "hidden_units": SIZE}
LAYERS = {
    "predinet": (layers.PrediNet, (2, SIZE, SIZE), {}, [(None, 3, SIZE)]),
    "relation_network": (
        *(layers.RelationNetwork, (SIZE, SIZE), {}),
        [(None, 3, SIZE)],
    ),
    "attention_pooling": (
        *(layers.MultiHeadAttentionPooling, (1, SIZE, SIZE), {}),
        [(None, 3, SIZE)],
    ),
    "relational_transformer": (
        *(layers.RelationalTransformerBlock, (), TRANSFORMER),
        [(None, 3, SIZE)],
    ),
    "simplicial_transformer": (
        *(layers.SimplicialTransformerBlock, ()),
        {
            **TRANSFORMER,
            "num_simplicial_heads": 1,
            "simplicial_key_dim": SIZE,
        },
        [(None, 3, SIZE), (None, 2, SIZE)],
    ),
    "scoff": (layers.SCOFFCell, (SIZE, 2, 3), SLOTS, [(None, SIZE)]),
    "rims": (layers.RIMsCell, (SIZE, 3, 2), SLOTS, [(None, SIZE)]),
    "slot_pooling": (layers.SlotPooling, (2, SIZE), {}, [(None, 2 * SIZE)]),
}


def matrices(weight):
    """The matrices of a weight: one, or one for each module or schema."""
    values = keras.ops.convert_to_numpy(weight)
    if values.ndim != 3:
        return [values]
    axis = values.shape.index(3)
    return list(np.moveaxis(values, axis, 0))


@pytest.mark.parametrize("name", LAYERS)
def test_no_two_weights_are_alike(name):
    make, arguments, options, shapes = LAYERS[name]
    initializer = keras.initializers.GlorotUniform(seed=-7)
    built = []
    for _ in range(2):
        layer = make(*arguments, **options, kernel_initializer=initializer)
        layer.build(*shapes)
        # They have other initializers.
        other = ("recurrent_kernel", "position_kernel", "bias")
        weights = [w for w in layer.weights if w.name not in other]
        built.append([w for w in weights if len(w.shape) > 1])
    for first, second in zip(*built, strict=True):
        np.testing.assert_array_equal(first, second)
    drawn = [
        (weight.path, matrix)
        for weight in built[0]
        for matrix in matrices(weight)
    ]
    assert len(drawn) > 1
    for (path, one), (other_path, other) in itertools.combinations(drawn, 2):
        # With equal seeds, Glorot's values of other sizes would be multiples.
        size = min(one.size, other.size)
        one, other = one.ravel()[:size], other.ravel()[:size]
        ratio = one / other
        assert np.ptp(ratio) > 1e-3, f"{path} and {other_path}"
