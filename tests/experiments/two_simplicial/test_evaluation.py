"""Agents beside other players, and the fewest moves that solve a puzzle."""

import keras
import numpy as np
import pytest
from worlds_in_python import moves_to_the_nearest
from worlds_in_python import python_worlds

from experiments.agents import by_level
from experiments.two_simplicial.evaluation import evaluate
from experiments.two_simplicial.shortest import shortest_lengths
from keras_relational.environments import boxworld
from keras_relational.environments import goto_object_maze
from keras_relational.models import boxworld_agent


@pytest.fixture(scope="module")
def world():
    return boxworld.BoxWorld(3, 6, (1, 1), (0, 0), max_episode_steps=60)


@pytest.mark.parametrize(
    "recurrent", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_an_agent_beside_other_players(recurrent, world, tmp_path):
    cell = keras.layers.GRUCell(6) if recurrent else None
    model = boxworld_agent("convolutional", world.image_shape, cell=cell)
    players = ["greedy", "random", "teacher"]
    wider = boxworld.BoxWorld(3, 7, (1, 1), (0, 0), max_episode_steps=60)
    given = {"shortest": True, "players": players}
    with pytest.raises(ValueError, match="shape"):  # Another size of image.
        evaluate(world, model, 30, tmp_path, others={"wider": wider}, **given)
    other = boxworld.BoxWorld(3, 6, (1, 1), (0, 0), max_episode_steps=9)
    metrics = evaluate(
        world, model, 30, tmp_path, others={"shorter": other}, **given
    )
    assert list(metrics) == [*players, "shorter", "shortest_length"]
    assert metrics["shorter"]["greedy"]["length"] <= 9
    teacher = metrics["teacher"]
    # With one box there is one way, so the teacher's moves are the fewest.
    assert teacher["solved"] == 1
    assert teacher["length"] == metrics["shortest_length"]
    assert teacher["types"]["(1, 0, 0)"]["episodes"] == 30
    assert metrics["random"]["length"] > teacher["length"]
    assert list(tmp_path.iterdir()) == []  # This network has no attention.


def test_it_draws_the_attention(tmp_path):
    world = boxworld.BoxWorld(5, 9, (2, 2), (0, 0), max_episode_steps=12)
    model = boxworld_agent("relational", world.image_shape)
    evaluate(world, model, 2, tmp_path, players=["greedy"])
    assert (tmp_path / "tile_attention.png").is_file()


def moves_of_plain_python(puzzle):
    """Of a puzzle with one box: to the key, then to the box."""
    moves, is_over = 0, False
    while not is_over:
        _, is_over = puzzle.step(min(moves_to_the_nearest(puzzle)))
        moves += 1
    return moves


def test_shortest_ways(world):
    puzzles = python_worlds(world, world.reset(np.arange(30)))
    lengths = shortest_lengths(world, range(30))
    assert lengths.tolist() == list(map(moves_of_plain_python, puzzles))
    with pytest.raises(ValueError, match=r"take more than 3 moves"):
        shortest_lengths(world, [0], max_steps=3)


def test_shortest_way_avoids_what_ends_the_episode():
    """A distractor's lock is no way to the gem."""
    world = boxworld.BoxWorld(5, 9, (2, 2), (1, 1))
    lengths = shortest_lengths(world, [0, 1, 2])
    assert (lengths > 4).all()


def test_the_shortest_way_in_a_maze():
    world = goto_object_maze.GotoObjectMaze(4, max_episode_steps=30)
    assert (shortest_lengths(world, range(5)) >= 1).all()


def test_by_level():
    episodes = {
        "levels": np.array([[1, 0, 0], [2, 1, 3], [1, 0, 0]]),
        "solved": np.array([True, False, False]),
        "lengths": np.array([4, 7, 8]),
    }
    assert by_level(episodes) == {
        (1, 0, 0): {"episodes": 2, "solved": 0.5, "length": 6.0},
        (2, 1, 3): {"episodes": 1, "solved": 0.0, "length": 7.0},
    }
