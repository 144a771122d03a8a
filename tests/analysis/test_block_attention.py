import keras
import numpy as np
import pytest
from keras import ops
from PIL import Image

from keras_relational import analysis
from keras_relational.environments import boxworld
from keras_relational.models import boxworld_agent


@pytest.fixture(scope="module")
def images():
    world = boxworld.BridgeBoxWorld()
    return ops.convert_to_numpy(world.render(world.reset([0, 1, 2])))


@pytest.mark.parametrize("network", ["relational", "simplicial"])
def test_each_row_of_attention_sums_to_one(network, images):
    model = boxworld_agent(network)
    standard, virtual, pairs = analysis.block_attention(model, images)
    assert standard.shape == (3, 2, 2, 40, 40)
    np.testing.assert_allclose(standard.sum(-1), 1, rtol=1e-5)
    if network == "relational":
        assert virtual is None
        assert pairs is None
        return
    assert virtual.shape == (3, 2, 2, 2, 42)
    np.testing.assert_allclose(virtual.sum(-1), 1, rtol=1e-5)
    assert pairs.shape == (3, 2, 1, 40, 2, 2)
    np.testing.assert_allclose(pairs.sum((-1, -2)), 1, rtol=1e-5)


def test_one_head_by_hand(images):
    """softmax(q kᵀ / √d) of the normalized entities, from the weights."""
    model = boxworld_agent("relational", num_iterations=1)
    block = model.get_layer("block")
    entities = model.get_layer("entities")
    part = keras.Model(model.inputs[0], entities.output)
    x = ops.convert_to_numpy(block.input_normalizations[0](part(images)))
    queries = x @ ops.convert_to_numpy(block.query_kernel)
    keys = x @ ops.convert_to_numpy(block.key_kernel)
    logits = queries[..., :32] @ keys[..., :32].swapaxes(1, 2) / 32**0.5
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    found = analysis.block_attention(model, images).standard
    np.testing.assert_allclose(found[:, 0, 0], weights, atol=1e-5)


def test_other_agents_are_refused(images):
    with pytest.raises(ValueError, match="a relational or a simplicial agent"):
        analysis.block_attention(boxworld_agent("convolutional"), images)


@pytest.mark.parametrize(
    ("network", "panels"), [("relational", 5), ("simplicial", 10)]
)
def test_pictures(network, panels, images):
    model = boxworld_agent(network)
    attention = analysis.block_attention(model, images[:1])
    figure = analysis.plot_block_attention(images[0], attention)
    assert len(figure.axes) == panels
    board = figure.axes[0].images[0].get_array()
    np.testing.assert_array_equal(board, images[0])
    # The player, in the corner, is nearest to the first entity.
    heat = figure.axes[2].images[1].get_array()
    np.testing.assert_allclose(
        heat, attention.standard[0, 0, 1, 0].reshape(5, 8)
    )


def test_animation(images, tmp_path):
    model = boxworld_agent("simplicial")
    path = tmp_path / "episode.gif"
    analysis.animate_attention(model, images, path, milliseconds=300)
    with Image.open(path) as gif:
        assert gif.n_frames == 3
        assert gif.info["duration"] == 300
    assert [file.name for file in tmp_path.iterdir()] == ["episode.gif"]
