"""What several layers have in common.

A seeded initializer draws different values for each weight of a layer. All RNN
cells can be called without an RNN. Layers that read an image as a set take a
mask of either shape. XLA compiles layers where batch and time are not fixed.
"""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_relational import layers

SIZE = 4
# All sizes are equal, so that as many weights as possible have one shape.
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


CELLS = {
    "scoff": lambda: layers.SCOFFCell(4, 2, 3, num_active=1),
    "scoff, lstm": lambda: layers.SCOFFCell(4, 2, 3, dynamics="lstm"),
    "rims": lambda: layers.RIMsCell(4, 3, 2),
    "relational memory": lambda: layers.RelationalMemoryCell(4, 3, 2),
    "ntm": lambda: layers.NTMCell(4, 3, 2),
    "lstm": lambda: layers.LayerNormLSTMCell(4),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_built_when_it_is_called(name):
    cell = CELLS[name]()
    inputs = np.random.default_rng(0).normal(size=(2, 5)).astype("float32")
    sizes = keras.tree.flatten(cell.state_size)
    states = [np.ones((2, size), "float32") for size in sizes]
    outputs, new = cell(inputs, states)[:2]
    rnn = keras.layers.RNN(cell)
    np.testing.assert_allclose(
        rnn(inputs[:, None], initial_state=states), outputs, atol=1e-6
    )
    for one, size in zip(keras.tree.flatten(new), sizes, strict=True):
        assert one.shape == (2, size)


@pytest.mark.parametrize("name", ["scoff", "ntm"])
def test_the_initial_state_is_a_weight(name):
    cell = CELLS[name]()
    with pytest.raises(ValueError, match="no weights yet"):
        cell.get_initial_state(2)
    cell.build((None, 5))
    assert len(cell.get_initial_state(2)) == len(cell.state_size)


@pytest.mark.parametrize("name", ["scoff", "rims"])
def test_what_a_cell_attends_to(name):
    """The cell's scores are those of the layer around it, at one step."""
    cell = CELLS[name]()
    layer = {
        "scoff": lambda: layers.SCOFF(4, 2, 3, num_active=1),
        "rims": lambda: layers.RIMs(4, 3, 2),
    }[name]()
    inputs = np.random.default_rng(0).normal(size=(2, 5)).astype("float32")
    cell.build(inputs.shape)
    layer.build((2, 1, 5))
    layer.set_weights(cell.get_weights())
    outputs, states, scores = cell(
        inputs, cell.get_initial_state(2), return_attention_scores=True
    )
    np.testing.assert_array_equal(outputs, states[0])
    expected = layer(inputs[:, None], return_attention_scores=True)
    np.testing.assert_allclose(outputs, expected[0], atol=1e-6)
    assert len(scores) == len(expected[1]) == 3
    for one, other in zip(scores, expected[1], strict=True):
        np.testing.assert_allclose(one, ops.squeeze(other, 1), atol=1e-6)


LAYERS_OF_SETS = {
    "CoRelNet": layers.CoRelNet,
    "PrediNet": lambda: layers.PrediNet(2, 3, 4),
    "RelationNetwork": lambda: layers.RelationNetwork(5, 6),
    "MultiHeadAttentionPooling": lambda: layers.MultiHeadAttentionPooling(
        2, 3, 4
    ),
}


@pytest.fixture(params=LAYERS_OF_SETS.values(), ids=LAYERS_OF_SETS)
def layer(request):
    return request.param()


@pytest.fixture
def image():
    return np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype("float32")


def test_mask_of_an_image_is_read_row_by_row(layer, image):
    mask = np.random.default_rng(1).random((2, 3, 4)) < 0.5
    outputs = ops.convert_to_numpy(layer(image, mask=mask))
    flat = ops.convert_to_numpy(layer(image, mask=mask.reshape(2, 12)))
    np.testing.assert_array_equal(outputs, flat)
    assert np.abs(outputs - ops.convert_to_numpy(layer(image))).max() > 1e-3
    image[~mask] = np.nan
    np.testing.assert_array_equal(
        ops.convert_to_numpy(layer(image, mask=mask)), outputs
    )


@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 11), (2,), (2, 3, 4, 5)])
def test_mask_of_another_shape_is_refused(layer, image, shape):
    with pytest.raises(ValueError, match=r"mask.*\(2, 3, 4\).*Received"):
        layer(image, mask=np.ones(shape, bool))


CORES = {
    "scoff": lambda: layers.SCOFF(6, 3, 2, dynamics="lstm", dropout=0.1),
    "rims": lambda: layers.RIMs(6, 3, 2, dropout=0.1),
    "relational_memory": lambda: keras.layers.RNN(
        layers.RelationalMemoryCell(6, 3, num_heads=2)
    ),
    "esbn": lambda: layers.ESBN(6, 4, confidence=True),
}


@pytest.mark.parametrize("core", CORES)
def test_trained_with_xla_where_batch_and_time_are_not_fixed(core):
    """XLA must know all shapes in the gradient of a loop.

    On torch the same is tested without a compiler.
    """
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((None, 4)), CORES[core](), keras.layers.Dense(1)]
    )
    xla = keras.backend.backend() != "torch"
    model.compile("sgd", "mse", jit_compile=xla)
    before = [weight.numpy() for weight in model.trainable_weights]
    x = np.random.default_rng(0).normal(size=(6, 5, 4)).astype("float32")
    model.fit(x, np.ones((6, 1)), batch_size=4, verbose=0)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert np.abs(weight.numpy() - old).max() > 0, weight.path
