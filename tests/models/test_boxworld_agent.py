import keras
import numpy as np
import pytest
from keras import ops

from keras_relational import layers
from keras_relational import models

# Two convolutions, and the embedding of each of their outputs.
CONVOLUTIONS = (2 * 2 * 3 * 12 + 12) + (2 * 2 * 12 * 24 + 24)
# Four dense layers of 256, then logits and value without a bias.
HEAD = (64 * 256 + 256) + 3 * (256 * 256 + 256) + 256 * 4 + 256
NORMALIZATION = 2 * 64


def random_images(batch, shape=(7, 10, 3)):
    rng = np.random.default_rng(0)
    return rng.integers(256, size=(batch, *shape), dtype="uint8")


@pytest.mark.parametrize("iterations", [2, 4])
def test_parameters_of_the_relational_agent(iterations):
    """Only the normalizations grow with the number of iterations."""
    model = models.boxworld_agent("relational", num_iterations=iterations)
    block = 3 * 64 * 64 + 2 * (64 * 64 + 64) + iterations * 2 * NORMALIZATION
    assert model.count_params() == CONVOLUTIONS + 24 * 62 + block + HEAD


@pytest.mark.parametrize("iterations", [2, 4])
def test_parameters_of_the_simplicial_agent(iterations):
    model = models.boxworld_agent("simplicial", num_iterations=iterations)
    block = (
        3 * 64 * 64  # E¹: two heads of 32
        + 4 * 64 * 48  # E²
        + 48**3  # B
        + ((64 + 48) * 64 + 64)
        + (64 * 64 + 64)
        + iterations * (2 * NORMALIZATION + 2 * 48)
    )
    virtual = 2 * 64
    expected = CONVOLUTIONS + 24 * 62 + virtual + block + HEAD
    assert model.count_params() == expected


def test_parameters_of_the_convolutional_agent():
    model = models.boxworld_agent("convolutional")
    dense = (5 * 8 * 24 * 256 + 256) + (256 * 256 + 256)
    assert model.count_params() == CONVOLUTIONS + dense + 256 * 4 + 256


@pytest.mark.parametrize("network", ["relational", "simplicial"])
def test_forty_entities_on_the_board_of_the_paper(network):
    model = models.boxworld_agent(network)
    assert model.get_layer("entities").output.shape == (None, 40, 64)
    entities = keras.Model(model.input, model.get_layer("entities").output)
    positions = ops.convert_to_numpy(entities(random_images(1)))[0, :, -2:]
    np.testing.assert_allclose(positions[0], [-1, -1])  # row, column
    np.testing.assert_allclose(positions[7], [-1, 1])
    np.testing.assert_allclose(positions[-1], [1, 1])


@pytest.mark.parametrize("network", ["relational", "simplicial"])
def test_every_pixel_and_weight_counts(network):
    model = models.boxworld_agent(network)
    images = random_images(4)
    logits, values = model.predict(images, verbose=0)
    assert logits.shape == (4, 4)
    assert values.shape == (4,)
    assert np.ptp(values) > 0
    changed = images.copy()
    changed[:, 0, -1] ^= 255  # the top of the inventory
    again, _ = model.predict(changed, verbose=0)
    assert (np.abs(again - logits).max(axis=1) > 0).all()


def test_smallest_board():
    model = models.boxworld_agent("simplicial", image_shape=(4, 4, 3))
    logits, _ = model.predict(random_images(2, (4, 4, 3)), verbose=0)
    assert np.isfinite(logits).all()


def test_refuses_arguments():
    with pytest.raises(ValueError, match=r"'lstm'.*relational, simplicial"):
        models.boxworld_agent("lstm")
    with pytest.raises(ValueError, match=r"image_shape=\(2, 7, 3\)"):
        models.boxworld_agent(image_shape=(2, 7, 3))
    with pytest.raises(ValueError, match="must be a Keras RNN cell"):
        models.boxworld_agent(cell=keras.layers.Dense(3))


CELLS = {
    "gru": lambda: keras.layers.GRUCell(6),
    "lstm": lambda: keras.layers.LSTMCell(5),
    "stacked": lambda: keras.layers.StackedRNNCells(
        [keras.layers.GRUCell(4), keras.layers.LSTMCell(3)]
    ),
    "scoff": lambda: layers.SCOFFCell(4, 2, 3),
}


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.slow
def test_an_agent_that_remembers(cell):
    """Frame by frame as all at once, and afresh where an episode begins."""
    model = models.boxworld_agent(
        "convolutional", (3, 7, 3), cell=CELLS[cell]()
    )
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(2, 5, 3, 7, 3), dtype="uint8")
    is_first = np.zeros((2, 5), bool)
    is_first[0, 3] = True
    states = [
        rng.normal(size=(2, x.shape[-1])).astype("float32")
        for x in model.inputs[2:]
    ]
    logits, values, *last = model.predict(
        [images, is_first, *states], verbose=0
    )
    assert logits.shape == (2, 5, 4)
    assert values.shape == (2, 5)
    now = states
    for t in range(5):
        frame = [images[:, t : t + 1], is_first[:, t : t + 1]]
        one, _, *now = model.predict([*frame, *now], verbose=0)
        np.testing.assert_allclose(one[:, 0], logits[:, t], atol=1e-5)
    for state, expected in zip(now, last, strict=True):
        np.testing.assert_allclose(state, expected, atol=1e-5)
    # What was before the fourth frame matters to the second row alone.
    other = [state + 1 for state in states]
    changed, *_ = model.predict([images, is_first, *other], verbose=0)
    np.testing.assert_array_equal(changed[0, 3:], logits[0, 3:])
    assert (changed[0, :3] != logits[0, :3]).any()
    assert (changed[1, 3:] != logits[1, 3:]).any()


def test_object_files_of_an_agent_are_exchangeable():
    """What it does depends on what they know, not on where they lie."""
    cell = layers.SCOFFCell(4, 2, 3)
    agent = models.boxworld_agent("convolutional", cell=cell)
    files = np.random.default_rng(0).normal(size=(1, 2, 4)).astype("float32")
    outputs = [
        agent([random_images(1)[:, None], np.zeros((1, 1), bool), x])
        for x in (files.reshape(1, -1), files[:, ::-1].reshape(1, -1))
    ]
    for one, other in zip(*(x[:2] for x in outputs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    others = agent(
        [random_images(1)[:, None], np.ones((1, 1), bool), files.reshape(1, -1)]
    )
    assert np.abs(ops.convert_to_numpy(others[0] - outputs[0][0])).max() > 1e-3


def test_the_relational_agent_around_its_block():
    """Two convolutions and coordinates before; a maximum and a head after."""
    model = models.boxworld_agent("relational")
    images = random_images(2)
    names = ("entities", "block")
    part = keras.Model(
        model.input, [model.get_layer(name).output for name in names]
    )
    entities, after = (ops.convert_to_numpy(x) for x in part(images))

    def weights(name):
        return [ops.convert_to_numpy(x) for x in model.get_layer(name).weights]

    x = images / 255
    for name in ("convolution_12", "convolution_24"):
        kernel, bias = weights(name)
        rows, columns = x.shape[1] - 1, x.shape[2] - 1
        windows = [
            x[:, i : i + rows, j : j + columns] for i in (0, 1) for j in (0, 1)
        ]
        kernel = kernel.reshape(-1, kernel.shape[-1])
        x = np.maximum(np.concatenate(windows, axis=-1) @ kernel + bias, 0)
    (embedding,) = weights("embedding")
    x = (x @ embedding).reshape(2, 40, 62)
    np.testing.assert_allclose(entities[..., :-2], x, atol=1e-5)

    x = after.max(axis=1)
    for number in range(4):
        kernel, bias = weights(f"hidden_{number}")
        x = np.maximum(x @ kernel + bias, 0)
    logits, values = (ops.convert_to_numpy(x) for x in model(images))
    np.testing.assert_allclose(logits, x @ weights("policy")[0], atol=1e-4)
    np.testing.assert_allclose(
        values, (x @ weights("value_column")[0])[:, 0], atol=1e-4
    )
