import copy

import numpy as np
import pytest
from environment_contract import EnvironmentContract
from environment_contract import arrays
from environment_contract import compiled_step
from environment_contract import first_state
from environment_contract import of_worlds
from keras import ops

from experiments.two_simplicial.curriculum import Curriculum
from keras_relational.environments import boxworld
from keras_relational.environments.compilation import compiled

BOARDS = {
    "boxworld": boxworld.BoxWorld(7, 12, (1, 4), (0, 3)),
    "bridge": boxworld.BridgeBoxWorld(max_episode_steps=40),
}


@pytest.fixture(params=BOARDS.values(), ids=BOARDS)
def world(request):
    return Curriculum(request.param)


class TestContract(EnvironmentContract):
    @pytest.fixture(params=of_worlds(BOARDS, ("boxworld",)))
    def world(self, request):
        return Curriculum(request.param)

    def least_num_boards(self, world):
        return 451  # The first puzzles are small.

    def test_the_greatest_length_is_a_positive_integer_or_none(self, world):
        assert world.max_episode_steps == world.board.max_episode_steps


def with_difficulty(world, difficulty, num_episodes=500):
    """States of new episodes, all of one difficulty."""
    state = first_state(world, num_episodes)
    state["difficulty"] = np.full(num_episodes, difficulty, "float32")
    return arrays(world.next_episode(state))


def test_the_first_puzzles_are_the_smallest(world):
    level = first_state(world, 500)["level"]
    assert set(level[:, 0]) == {1}
    if isinstance(world.board, boxworld.BoxWorld):
        assert set(level[:, 1]) == {0}
    else:  # Bridges are not a matter of size.
        assert set(level[:, 1]) == {0, 1}


def test_puzzles_grow_with_the_difficulty():
    world = Curriculum(BOARDS["boxworld"])
    largest = []
    for difficulty in (0.1, 0.3, 0.6, 0.8):
        level = with_difficulty(world, difficulty)["level"]
        largest.append(tuple(level.max(axis=0)[:2]))
        np.testing.assert_array_equal(level.min(axis=0), [1, 0, 0])
    # ⌈4 d⌉ for the length, and ⌈4 d⌉ − 1 for the branches.
    assert largest == [(1, 0), (2, 1), (3, 2), (4, 3)]


def test_the_puzzles_of_the_last_stage_are_those_of_the_board(world):
    new = with_difficulty(world, 1.0)
    expected = arrays(world.board.new_episode(new["seed"], new["episode"]))
    for name, value in expected.items():
        np.testing.assert_array_equal(new[name], value)


@pytest.mark.slow
def test_difficulty_follows_the_running_share_of_solved_episodes(world):
    """Half of the rows play expert moves, the other half random ones."""
    world = Curriculum(world.board, threshold=0.4, step=0.3, num_episodes=3)
    step = compiled_step(world, or_restart=True)
    expert_moves = compiled(world.expert_moves)
    state = first_state(world)
    over = np.zeros(len(state["steps"]), bool)
    difficulty = np.zeros(len(over), "float32")
    share = np.zeros(len(over), "float32")
    plays_well = np.arange(len(over)) % 2 == 0
    rng = np.random.default_rng(0)
    for _ in range(300):
        right = ops.convert_to_numpy(expert_moves(state))
        actions = rng.integers(4, size=len(over)).astype("int32")
        actions = np.where(plays_well, right.argmax(axis=1), actions)
        state, _, *outputs = step(state, actions.astype("int32"), over)
        state = arrays(state)
        reward, terminated, truncated = map(ops.convert_to_numpy, outputs)
        over = terminated | truncated
        for i in np.flatnonzero(over):
            solved = float(reward[i] >= 10)
            share[i] += (solved - share[i]) / 3
            if share[i] >= 0.4:
                difficulty[i] = min(1, difficulty[i] + 0.3)
                share[i] = 0
        np.testing.assert_allclose(state["difficulty"], difficulty, rtol=1e-6)
        np.testing.assert_allclose(state["share_solved"], share, atol=1e-6)
    assert (difficulty[plays_well] == 1).all()
    assert (difficulty[~plays_well] < 1).any()


def test_equal_curricula_share_compiled_functions(world):
    assert Curriculum(copy.copy(world.board)) == world
    assert Curriculum(world.board, threshold=0.7) != world
