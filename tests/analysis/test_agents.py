"""Episodes of agents, and the attention of their Transformer blocks."""

import keras
import numpy as np
import pytest
from keras import ops
from PIL import Image
from worlds_in_python import PythonBoxWorld

from keras_relational import analysis
from keras_relational import models
from keras_relational.analysis.block_attention import plot_block_attention
from keras_relational.environments import boxworld
from keras_relational.environments import goto_object_maze
from keras_relational.models import boxworld_agent
from keras_relational.random_streams import unseen_world_seeds


@pytest.fixture(scope="module")
def world():
    return boxworld.BoxWorld(3, 6, (1, 1), (0, 0), max_episode_steps=60)


def agent(world, recurrent):
    cell = keras.layers.GRUCell(6) if recurrent else None
    return boxworld_agent("convolutional", world.image_shape, cell=cell)


@pytest.mark.parametrize("recurrent", [False, True])
def test_played_as_the_plain_rules_have_it(world, recurrent):
    """Each recorded episode again, and each played one as it was recorded."""
    model = agent(world, recurrent)
    seeds = [0, 1, 2]
    played = analysis.play(world, seeds, model, greedy=False)
    for row, seed in enumerate(seeds):
        record = analysis.record(world, seed, model, greedy=False)
        plain = PythonBoxWorld(record["images"][0], losing=set())
        over = False
        for step, action in enumerate(record["actions"]):
            assert not over
            reward, over = plain.step(int(action))
            assert reward == record["rewards"][step]
            np.testing.assert_array_equal(
                plain.image(), record["images"][step + 1]
            )
        assert over == record["solved"]
        assert over or len(record["actions"]) == 60
        assert played["lengths"][row] == len(record["actions"])
        assert played["returns"][row] == record["rewards"].sum()
        assert played["solved"][row] == record["solved"]


@pytest.mark.parametrize("recurrent", [False, True])
def test_the_policy_is_found_by_its_role(world, recurrent):
    """In whatever order an agent returns policy and value."""
    model = agent(world, recurrent)
    policy, value, *states = model.outputs
    swapped = keras.Model(model.inputs, [value, policy, *states])
    one, other = (analysis.play(world, range(5), x) for x in (model, swapped))
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])


def test_an_agent_that_remembers_in_half_precision(world):
    keras.config.set_dtype_policy("mixed_bfloat16")
    played = analysis.play(world, range(3), agent(world, True))
    assert (played["lengths"] > 0).all()


def test_what_a_maze_calls_solved():
    """Seen at once, or when all but one step is spent: reward 0.1 and more."""
    world = goto_object_maze.GotoObjectMaze(4, max_episode_steps=30)
    played = analysis.play(world, range(400))
    assert 0.02 < played["solved"].mean() < 0.6
    np.testing.assert_array_equal(played["solved"], played["returns"] > 0)
    solved = played["solved"]
    np.testing.assert_allclose(
        played["returns"][solved],
        1 - 0.9 * played["lengths"][solved] / 30,
        atol=1e-5,
    )
    assert (played["lengths"][~solved] == 30).all()
    assert played["lengths"][solved].max() == 30


def test_greedy_takes_the_likeliest_move(world):
    model = agent(world, recurrent=False)
    record = analysis.record(world, 4, model)
    logits, _ = model.predict(record["images"][:-1], verbose=0)
    np.testing.assert_array_equal(record["actions"], logits.argmax(-1))


def test_records_the_moves_of_a_function(world):
    seen = []

    def move(image):
        seen.append(image)
        return len(seen) % 4

    record = analysis.record(world, 4, move, max_steps=7)
    np.testing.assert_array_equal(record["images"][:-1], seen)
    np.testing.assert_array_equal(record["actions"], [1, 2, 3, 0, 1, 2, 3])


@pytest.mark.slow
def test_a_preset_plays_as_its_card_says():
    """The first hundred puzzles of the thousand on the card."""
    name = "boxworld_3x18_relational"
    card = models.preset_metadata(name)["figures"]["greedy"]
    world = boxworld.BoxWorld(3, 18, (1, 2), (0, 0), max_episode_steps=120)
    seeds = unseen_world_seeds(100)
    played = analysis.play(world, seeds, models.from_preset(name))
    assert played["solved"].mean() >= card["solved"] - 0.02
    assert abs(played["lengths"].mean() - card["length"]) < 2


def test_a_random_player(world):
    """Each move is as likely as any other, in every episode another."""
    played = analysis.play(world, range(500))
    assert 0.3 < played["solved"].mean() < 0.8
    assert (played["lengths"][~played["solved"]] == 60).all()
    assert (played["returns"][played["solved"]] == 11).all()
    assert len(np.unique(played["lengths"])) > 20
    again = analysis.play(world, range(500))
    np.testing.assert_array_equal(played["lengths"], again["lengths"])


def test_frames_are_those_that_the_moves_lead_to():
    """The same as `record`, one seed at a time, but for the last frame."""
    world = boxworld.BoxWorld(5, 9, (2, 2), (0, 0), max_episode_steps=12)
    model = boxworld_agent("convolutional", world.image_shape)
    together = analysis.frames(world, range(3), model, every=3)
    alone = [
        analysis.record(world, seed, model, False)["images"][:-1][::3]
        for seed in range(3)
    ]
    apart = [
        images[number]
        for number in range(4)
        for images in alone
        if number < len(images)
    ]
    np.testing.assert_array_equal(together, apart)


def test_frames_need_positive_numbers(world):
    for wrong in ({"every": 0}, {"max_steps": -1}):
        with pytest.raises(ValueError, match=f"{min(wrong)}.*positive"):
            analysis.frames(world, [0], **wrong)


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
    figure = plot_block_attention(images[0], attention)
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
