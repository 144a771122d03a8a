import keras
import numpy as np
import pytest
from boxworld_in_python import PythonBoxWorld
from keras import ops

from keras_relational import analysis
from keras_relational.environments import boxworld
from keras_relational.environments import goto_object_maze
from keras_relational.models import boxworld_agent


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
    lengths = analysis.shortest_lengths(world, range(5))
    assert (lengths >= 1).all()


def test_greedy_takes_the_likeliest_move(world):
    model = agent(world, recurrent=False)
    record = analysis.record(world, 4, model)
    logits, _ = model.predict(record["images"][:-1], verbose=0)
    np.testing.assert_array_equal(record["actions"], logits.argmax(-1))


def test_a_random_player(world):
    """Each move is as likely as any other, in every episode another."""
    played = analysis.play(world, range(500))
    assert 0.3 < played["solved"].mean() < 0.8
    assert (played["lengths"][~played["solved"]] == 60).all()
    assert (played["returns"][played["solved"]] == 11).all()
    assert len(np.unique(played["lengths"])) > 20
    again = analysis.play(world, range(500))
    np.testing.assert_array_equal(played["lengths"], again["lengths"])


def shortest_by_hand(image):
    """One loose key, one box: from the player to the one, then to the other."""
    plain = PythonBoxWorld(image, losing=set())
    (key,) = [cell for cell in plain.tiles if plain.is_loose_key(cell)]
    (lock,) = [cell for cell in plain.tiles if plain.is_lock(cell)]

    def distance(start, end):
        reached, steps = {start}, 0
        while end not in reached:
            steps += 1
            reached |= {
                (row + down, column + right)
                for row, column in reached
                for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0))
                if 0 <= row + down < plain.rows
                and 0 <= column + right < plain.columns
                and (
                    (row + down, column + right) not in plain.tiles
                    or (row + down, column + right) == end
                )
            }
        return steps

    first = distance(plain.player, key)
    del plain.tiles[key]
    return first + distance(key, lock)


def test_shortest_ways(world):
    lengths = analysis.shortest_lengths(world, range(30))
    images = ops.convert_to_numpy(world.render(world.reset(np.arange(30))))
    assert lengths.tolist() == [shortest_by_hand(image) for image in images]
    with pytest.raises(ValueError, match=r"take more than 3 moves"):
        analysis.shortest_lengths(world, [0], max_steps=3)


def test_shortest_way_avoids_what_ends_the_episode():
    """A distractor's lock is no way to the gem."""
    world = boxworld.BoxWorld(5, 9, (2, 2), (1, 1))
    lengths = analysis.shortest_lengths(world, [0, 1, 2])
    assert (lengths > 4).all()


def test_by_level():
    episodes = {
        "levels": np.array([[1, 0, 0], [2, 1, 3], [1, 0, 0]]),
        "solved": np.array([True, False, False]),
        "lengths": np.array([4, 7, 8]),
    }
    assert analysis.by_level(episodes) == {
        (1, 0, 0): {"episodes": 2, "solved": 0.5, "length": 6.0},
        (2, 1, 3): {"episodes": 1, "solved": 0.0, "length": 7.0},
    }
