"""What several layers have in common."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import in_float32
from layers_for_tests import random_array
from layers_for_tests import with_random_weights

from keras_relational import layers
from keras_relational.layers._sublayers import built_normalization


@pytest.mark.parametrize(
    ("cls", "arguments", "shapes"),
    [
        (layers.PrediNet, (2, 4, 4), [(2, 3, 4)]),
        (layers.RelationNetwork, (4, 4), [(2, 3, 4)]),
        (layers.MultiHeadAttentionPooling, (1, 4, 4), [(2, 3, 4)]),
        (layers.SlotPooling, (2, 4), [(2, 8)]),
        (layers.RelationalTransformerBlock, (1, 4, 4), [(2, 3, 4)]),
        (
            layers.SimplicialTransformerBlock,
            (1, 4, 1, 4, 4),
            [(2, 3, 4), (2, 2, 4)],
        ),
    ],
)
def test_a_seeded_initializer_draws_the_same_again(cls, arguments, shapes):
    initializer = keras.initializers.GlorotUniform(seed=-7)
    one, other = (
        cls(*arguments, kernel_initializer=initializer) for _ in range(2)
    )
    one.build(*shapes)
    other.build(*shapes)
    for first, second in zip(one.weights, other.weights, strict=True):
        if first.name != "position_kernel":  # It has another initializer.
            np.testing.assert_array_equal(first, second)


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
    inputs = random_array(2, 5)
    sizes = keras.tree.flatten(cell.state_size)
    states = [np.ones((2, size), "float32") for size in sizes]
    outputs, new = cell(inputs, states)[:2]
    rnn = keras.layers.RNN(cell)
    assert_close(rnn(inputs[:, None], initial_state=states), outputs)
    for one, size in zip(keras.tree.flatten(new), sizes, strict=True):
        assert one.shape == (2, size)


@pytest.mark.parametrize("name", ["scoff", "rims"])
def test_no_two_schemata_or_modules_are_alike(name):
    cell = CELLS[name]()
    cell.build((None, 5))
    for weight in cell.trainable_weights:
        values = array(weight)
        if values.ndim == 3 and weight.name.endswith("kernel"):
            parts = np.moveaxis(values, values.shape.index(3), 0)
            for one, other in itertools.combinations(parts, 2):
                distance = np.abs(one - other).max()
                assert distance > 0.1 * np.abs(values).max(), weight.path


@pytest.mark.parametrize("step_shape", [(5,), (4, 5)])
@pytest.mark.parametrize("name", ["scoff", "scoff, lstm", "rims"])
def test_what_dropout_takes_is_not_seen(name, step_shape):
    cell = with_random_weights(CELLS[name](), (2, *step_shape), scale=0.4)
    inputs = random_array(2, *step_shape)
    states = [random_array(2, n, seed=n) for n in cell.state_size]
    seen, _, read = (
        ops.ones((2, *shape)) for shape in cell.scores_shapes(step_shape)
    )

    def h(**masks):
        keys_and_values, products = (
            cell.keys_and_values(inputs),
            cell.products(),
        )
        new, _ = cell.step(keys_and_values, states, products, **masks)
        return array(new[0])

    whole = h()
    masks = {"dropout_mask": seen, "message_dropout_mask": read}
    assert_close(h(**masks), whole)
    for mask, kernel in (
        ("dropout_mask", cell.value_kernel),
        ("message_dropout_mask", cell.message_value_kernel),
    ):
        dropped = h(**{**masks, mask: 0 * masks[mask]})
        assert np.abs(dropped - whole).max() > 1e-3
        weights = array(kernel)
        kernel.assign(0 * weights)
        assert_close(h(), dropped)
        kernel.assign(weights)


@pytest.mark.parametrize("name", ["scoff", "ntm"])
def test_the_initial_state_is_a_weight(name):
    cell = CELLS[name]()
    with pytest.raises(ValueError, match="no weights yet"):
        cell.get_initial_state(2)
    cell.build((None, 5))
    assert len(cell.get_initial_state(2)) == len(cell.state_size)


@pytest.mark.parametrize(
    ("layer", "cell"),
    [
        (layers.SCOFF(4, 2, 3, num_active=1), CELLS["scoff"]),
        (layers.RIMs(4, 3, 2), CELLS["rims"]),
    ],
)
def test_a_cell_does_what_the_layer_around_it_does(layer, cell):
    cell, inputs = cell(), random_array(2, 6, 5)
    with_random_weights(layer, inputs.shape, scale=0.2)
    rnn = keras.layers.RNN(cell)
    rnn.build(inputs.shape)
    rnn.set_weights(layer.get_weights())
    assert_close(rnn(inputs), layer(inputs))
    # The cell's scores are those of the layer at one step.
    outputs, states, scores = cell(
        inputs[:, 0], cell.get_initial_state(2), return_attention_scores=True
    )
    np.testing.assert_array_equal(outputs, states[0])
    expected = layer(inputs[:, :1], return_attention_scores=True)
    assert_close(outputs, expected[0])
    assert len(scores) == len(expected[1]) == 3
    assert_close(scores, [ops.squeeze(x, 1) for x in expected[1]])


LAYERS_OF_SETS = {
    "CoRelNet": layers.CoRelNet,
    "PrediNet": lambda **options: layers.PrediNet(2, 3, 4, **options),
    "RelationNetwork": lambda **options: layers.RelationNetwork(
        5, 6, **options
    ),
    "MultiHeadAttentionPooling": lambda **options: (
        layers.MultiHeadAttentionPooling(2, 3, 4, **options)
    ),
}
of_sets = pytest.mark.parametrize("name", LAYERS_OF_SETS)
WITH_SCORES = ["CoRelNet", "PrediNet", "MultiHeadAttentionPooling"]
with_scores = pytest.mark.parametrize("name", WITH_SCORES)


@of_sets
def test_an_image_is_a_set_read_row_by_row(name):
    image = random_array(2, 3, 4, 5)
    of_image, of_set = (LAYERS_OF_SETS[name]() for _ in range(2))
    outputs = array(of_image(image))
    of_set.build((2, 12, 5))
    of_set.set_weights(of_image.get_weights())
    entities = image.reshape(2, 12, 5)
    assert_close(of_set(entities), outputs, atol=1e-5)
    symbolic = of_image(keras.Input((3, 4, 5)))
    assert symbolic.shape == (None, *outputs.shape[1:])
    # So is the mask, of either shape.
    mask = np.random.default_rng(1).random((2, 3, 4)) < 0.5
    masked = array(of_image(image, mask=mask))
    flat = of_image(image, mask=mask.reshape(2, 12))
    np.testing.assert_array_equal(masked, flat)
    assert np.abs(masked - outputs).max() > 1e-3
    image[~mask] = np.nan
    np.testing.assert_array_equal(of_image(image, mask=mask), masked)


@of_sets
@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 11), (2,), (2, 3, 4, 5)])
def test_mask_of_another_shape_is_refused(name, shape):
    with pytest.raises(ValueError, match=r"mask.*\(2, 3, 4\).*Received"):
        LAYERS_OF_SETS[name]()(
            random_array(2, 3, 4, 5), mask=np.ones(shape, bool)
        )


@with_scores
def test_scores_of_valid_entities_sum_to_one(name):
    mask = np.array([[True] * 4, [True, False, True, False], [False] * 4])
    _, scores = LAYERS_OF_SETS[name]()(
        random_array(3, 4, 5), mask=mask, return_attention_scores=True
    )
    # PrediNet has one query a head, the others have one an entity.
    expected = mask.any(1, keepdims=True) if name == "PrediNet" else mask
    for score in map(array, keras.tree.flatten(scores)):
        axes = (len(score), *[1] * (score.ndim - 2), 4)
        assert not np.any(score * ~mask.reshape(axes))
        sums = score.sum(-1)
        rows = expected.reshape((3, *[1] * (sums.ndim - 2), -1))
        assert_close(sums, np.broadcast_to(rows, sums.shape))


@with_scores
def test_large_inputs_in_half_precision(name):
    """Pixels up to 255 give logits that overflow in float16."""
    inputs = np.random.default_rng(0).uniform(0, 255, (2, 25, 34))
    layer = LAYERS_OF_SETS[name](dtype="mixed_float16")
    found = layer(inputs.astype("float32"), return_attention_scores=True)
    for tensor in keras.tree.flatten(found):
        assert keras.backend.standardize_dtype(tensor.dtype) == "float16"
        assert np.isfinite(array(tensor)).all()


@pytest.mark.any_backend
def test_half_precision_does_not_round_the_inputs():
    """They are normalized first, so a common offset changes nothing."""
    x = np.random.default_rng(0).integers(0, 9, (2, 5, 8)).astype("float32")
    keras.config.set_dtype_policy("mixed_bfloat16")
    simplicial = layers.SimplicialTransformerBlock(2, 3, 2, 4, 7)
    for call in (
        layers.SlotAttention(3, 8, 8),
        layers.RelationalTransformerBlock(2, 3, 7),
        lambda x: simplicial(x, x[:, :3])[0],
    ):
        near, far = in_float32(call(x)), in_float32(call(1000 + x))
        assert_close(far, near, atol=0.05)


@pytest.mark.any_backend
@pytest.mark.parametrize(
    ("policy", "atol"), [("float32", 1e-6), ("mixed_float16", 1e-3)]
)
def test_a_normalization_inside_a_layer_is_keras_own(policy, atol):
    x, *weights = (random_array(*size) for size in ((2, 3, 8), (8,), (8,)))
    around = keras.layers.Layer(dtype=policy)
    ours = built_normalization(around, (2, 3, 8), "inside", epsilon=0.1)
    keras_own = keras.layers.LayerNormalization(epsilon=0.1, dtype=policy)
    keras_own.build((2, 3, 8))
    for layer in (ours, keras_own):
        layer.set_weights(weights)
    found, expected = ours(x), keras_own(x)
    assert found.dtype == expected.dtype
    assert_close(in_float32(found), in_float32(expected), atol=atol)
    # Files know a layer in a list by its class.
    assert type(ours).__name__ == type(keras_own).__name__


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
    model.fit(random_array(6, 5, 4), np.ones((6, 1)), batch_size=4, verbose=0)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert np.abs(weight.numpy() - old).max() > 0, weight.path
