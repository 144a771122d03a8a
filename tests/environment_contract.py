"""Tests that every world must pass, on TensorFlow and on JAX.

The test file of a world subclasses `EnvironmentContract` and defines a fixture
`world`. Tests of the world's own rules stand in that file.
"""

import copy
import functools

import numpy as np
import pytest
from keras import ops

from keras_relational.environments import boxworld
from keras_relational.environments.compilation import compiled

# The arrays of every state, and their dtypes.
ARRAYS = {
    "steps": "int32",
    "level": "int32",
    "seed": "uint32",
    "episode": "int32",
}
BOXWORLDS = {
    "bridge": boxworld.BridgeBoxWorld(),
    "boxworld": boxworld.BoxWorld(),
    "branches": boxworld.BoxWorld(
        7, 12, (1, 3), (0, 3), distractor_length=(1, 2)
    ),
    "smallest": boxworld.BoxWorld(3, 6, (1, 1), (0, 0)),
}
# One size for all compiled functions, since each size is compiled anew.
BATCH = 32


@functools.cache
def compiled_reset(world):
    return compiled(world.reset)


@functools.cache
def compiled_step(world, or_restart=False):
    """The next state, its image, the reward, and the two kinds of end.

    With `or_restart`, an episode that is over is followed by a new one.
    """
    move = world.step_or_restart if or_restart else world.step

    def step(*arguments):
        state, *rest = move(*arguments)
        return state, world.render(state), *rest

    return compiled(step)


def arrays(state):
    return {name: ops.convert_to_numpy(value) for name, value in state.items()}


def first_state(world, batch=BATCH):
    return arrays(world.reset(np.arange(batch)))


def random_actions(world, size, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(len(world.actions), size=size).astype("int32")


def cut_off_after(world, max_episode_steps):
    """The same world, with episodes of another greatest length."""
    world = copy.copy(world)
    world.max_episode_steps = max_episode_steps
    return world


def random_steps(world, num_steps):
    """Yields, step by step, all that random actions lead to.

    That is the state, its image, the reward, and both kinds of end. An episode
    that is over is followed by a new one.
    """
    step = compiled_step(world, or_restart=True)
    state, over = first_state(world), np.zeros(BATCH, bool)
    for time in range(num_steps):
        actions = random_actions(world, BATCH, time)
        state, *outputs = step(state, actions, over)
        state = arrays(state)
        outputs = list(map(ops.convert_to_numpy, outputs))
        yield state, *outputs
        over = outputs[-2] | outputs[-1]


def assert_states_equal(state, expected):
    state, expected = arrays(state), arrays(expected)
    assert set(state) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(state[name], value, name)
        assert state[name].dtype == value.dtype, name


class EnvironmentContract:
    """The tests. A subclass says how many of 500 boards must differ."""

    def least_num_boards(self, world):
        """The least number of different boards in 500 episodes."""
        return 500

    # What a state and an image are.

    def test_states(self, world):
        state = first_state(world)
        for name, dtype in ARRAYS.items():
            assert state[name].dtype == dtype
        assert state["level"].ndim == 2
        assert all(len(value) == BATCH for value in state.values())
        np.testing.assert_array_equal(state["steps"], 0)
        np.testing.assert_array_equal(state["episode"], 0)
        np.testing.assert_array_equal(state["seed"], np.arange(BATCH))
        moved, *_ = compiled_step(world)(state, random_actions(world, BATCH))
        for name, value in arrays(moved).items():
            assert (value.dtype, value.shape) == (
                state[name].dtype,
                state[name].shape,
            )
        np.testing.assert_array_equal(moved["steps"], 1)
        for name in ("level", "seed", "episode"):
            np.testing.assert_array_equal(moved[name], state[name])

    def test_images(self, world):
        images = ops.convert_to_numpy(world.render(first_state(world)))
        assert images.dtype == "uint8"
        assert images.shape == (BATCH, *world.image_shape)
        assert images.any()

    def test_attributes(self, world):
        assert len(set(world.actions)) == len(world.actions) > 1
        assert all(isinstance(name, str) for name in world.actions)
        assert world.success_reward > 0

    # Seeds.

    def test_seeds_fix_episodes_and_differ(self, world):
        first, again = (arrays(world.reset(x)) for x in ([0, 1, 2], [2, 1, 0]))
        for name in first:
            np.testing.assert_array_equal(first[name], again[name][::-1])
        boards = first_state(world, 500)["board"]
        assert len(np.unique(boards, axis=0)) >= self.least_num_boards(world)

    def test_seeds_may_be_lists_and_go_to_32_bits(self, world):
        seeds = [3, 2**32 - 1]
        state = world.reset(seeds)
        assert_states_equal(state, world.reset(np.array(seeds, "uint32")))
        np.testing.assert_array_equal(state["seed"], np.array(seeds, "uint32"))

    # Steps.

    def test_steps_are_pure_and_alike_compiled_eager_and_in_numpy(self, world):
        state = first_state(world)
        compiled_state = compiled_reset(world)(np.arange(BATCH, dtype="uint32"))
        assert_states_equal(compiled_state, state)
        over = np.zeros(BATCH, bool)
        for time in range(40):
            before = copy.deepcopy(state)
            actions = random_actions(world, BATCH, time)
            moved, images, *rest = compiled_step(world)(state, actions)
            others = [world.step(state, actions)]
            assert isinstance(others[0][0]["board"], np.ndarray)
            if time == 0:
                tensors = {
                    name: ops.convert_to_tensor(x) for name, x in state.items()
                }
                others.append(world.step(tensors, actions))
            assert_states_equal(state, before)
            for other, *other_rest in others:
                assert_states_equal(other, moved)
                np.testing.assert_array_equal(world.render(other), images)
                reward, *ends = zip(rest, other_rest, strict=True)
                np.testing.assert_allclose(*reward, rtol=1e-6)
                for one, two in ends:
                    np.testing.assert_array_equal(one, two)
            state = arrays(world.restart(moved, over))
            over = ops.convert_to_numpy(rest[1] | rest[2])

    def test_rewards_and_ends(self, world):
        for _, _, reward, terminated, truncated in random_steps(world, 50):
            assert (reward.dtype, reward.shape) == ("float32", (BATCH,))
            assert np.isfinite(reward).all()
            for end in (terminated, truncated):
                assert (end.dtype, end.shape) == (bool, (BATCH,))
            # A success ends the episode.
            assert terminated[reward >= world.success_reward].all()
            assert not (terminated & truncated).any()

    # Actions.

    def test_other_actions_are_refused(self, world):
        state = first_state(world, 2)
        for actions in (
            [0, len(world.actions)],
            [-1, 0],
            [0.0, 1.0],
            [0],
            [0, 1, 0],
            [[0, 1]],
            [[0], [0, 1]],
            1,
            None,
            ["left", "right"],
        ):
            with pytest.raises(ValueError, match=r"[Aa]ction.*Received"):
                world.step(state, actions)

    def test_compiled_functions_clip_actions(self, world):
        last = len(world.actions) - 1
        state = first_state(world)
        step = compiled_step(world)
        for given, clipped in ((-7, 0), (last + 7, last)):
            ours, theirs = (
                step(state, np.full(BATCH, action, "int32"))
                for action in (given, clipped)
            )
            assert_states_equal(ours[0], theirs[0])
            for one, other in zip(ours[1:], theirs[1:], strict=True):
                np.testing.assert_array_equal(one, other)

    # Ends of episodes.

    def test_restart_makes_the_next_episode_where_asked(self, world):
        state, *_ = world.step(first_state(world, 4), [0, 1, 2, 3])
        nowhere = arrays(world.restart(state, np.zeros(4, bool)))
        where = np.array([True, False, True, False])
        new, old = arrays(world.restart(state, where)), arrays(state)
        for name, value in new.items():
            np.testing.assert_array_equal(nowhere[name], old[name])
            np.testing.assert_array_equal(value[~where], old[name][~where])
        np.testing.assert_array_equal(new["steps"], [0, 1, 0, 1])
        np.testing.assert_array_equal(new["episode"], [1, 0, 1, 0])
        if self.least_num_boards(world) > 1:
            changed = (new["board"] != old["board"]).any(axis=1)
            assert changed[where].all()
        expected = arrays(world.new_episode(old["seed"], old["episode"] + 1))
        for name, value in new.items():
            np.testing.assert_array_equal(value[where], expected[name][where])

    def test_the_next_episode_begins_after_the_last_image(self, world):
        """The last step of an episode shows the episode that ends."""
        world = cut_off_after(world, 3)
        step = compiled_step(world, or_restart=True)
        state, over = first_state(world), np.zeros(BATCH, bool)
        actions = random_actions(world, BATCH)
        for _ in range(3):
            before = state
            state, images, *_ = step(before, actions, over)
            state = arrays(state)
        expected, *_, truncated = world.step(before, actions)
        np.testing.assert_array_equal(state["episode"], 0)
        np.testing.assert_array_equal(images, world.render(expected))
        over = np.arange(BATCH) % 2 == 0
        assert ops.convert_to_numpy(truncated)[over].any()
        last = state
        state, images, reward, terminated, truncated = step(last, actions, over)
        new, moved = world.restart(last, over), world.step(last, actions)[0]
        for name, value in arrays(state).items():
            np.testing.assert_array_equal(value[over], arrays(new)[name][over])
            np.testing.assert_array_equal(
                value[~over], arrays(moved)[name][~over]
            )
        np.testing.assert_array_equal(images, world.render(state))
        for output in (reward, terminated, truncated):
            assert not ops.convert_to_numpy(output)[over].any()

    def test_episodes_are_cut_off_after_the_greatest_length(self, world):
        world, over = cut_off_after(world, 3), np.zeros(BATCH, bool)
        for state, _, _, terminated, truncated in random_steps(world, 12):
            np.testing.assert_array_equal(state["steps"][over], 0)
            assert state["steps"].max() <= 3
            is_last = state["steps"] == 3
            np.testing.assert_array_equal(truncated, is_last & ~terminated)
            over = terminated | truncated

    def test_the_greatest_length_is_a_positive_integer_or_none(self, world):
        for number in (0, -1, 1.5, True, "3"):
            with pytest.raises(ValueError, match=f"max_episode_steps={number}"):
                type(world)(max_episode_steps=number)
        assert type(world)(max_episode_steps=np.int64(3)) == type(world)(
            max_episode_steps=3
        )

    # Equality.

    def test_worlds_of_equal_attributes_are_equal(self, world):
        same, other = copy.copy(world), cut_off_after(world, 12_345)
        assert same == world
        assert hash(same) == hash(world)
        assert other != world
        assert world != world.actions
        assert compiled_step(same) is compiled_step(world)
        assert compiled_step(other) is not compiled_step(world)


def agree_on_random_moves(world, state, episodes, num_moves, shares=None):
    """Rewards, ends, images and states are those of episodes in plain Python.

    Args:
        world: A world of four actions.
        state: State of the episodes.
        episodes: List of their twins in `worlds_in_python`.
        num_moves: Number of moves.
        shares: How often each action is taken, by default all equally often.

    Returns:
        Boolean array, `True` where the episode is over.
    """
    step = compiled_step(world)
    rng = np.random.default_rng(0)
    over = np.zeros(len(episodes), bool)
    for _ in range(num_moves):
        actions = rng.choice(4, len(episodes), p=shares).astype("int32")
        state, *outputs = step(state, actions)
        now = arrays(state)
        images, rewards, terminated, truncated = map(
            ops.convert_to_numpy, outputs
        )
        for i in np.flatnonzero(~over):
            episode = episodes[i]
            reward, *ends = episode.step(int(actions[i]))
            assert rewards[i] == pytest.approx(reward)
            assert [terminated[i], truncated[i]][: len(ends)] == ends
            np.testing.assert_array_equal(images[i], episode.image())
            for name, value in episode.arrays().items():
                np.testing.assert_array_equal(now[name][i], value, name)
        over |= terminated | truncated
    return over


def of_worlds(worlds, unmarked):
    """Parameters of a fixture: those that are not named are slow."""
    return [
        pytest.param(
            world, id=name, marks=[] if name in unmarked else pytest.mark.slow
        )
        for name, world in worlds.items()
    ]


def assert_frequencies(values, expected):
    """Each value occurs as often as expected, within five standard deviations.

    Args:
        values: Array of random values.
        expected: Dictionary from each value to its probability.
    """
    assert set(np.unique(values)) == set(expected)
    for value, probability in expected.items():
        error = abs(np.mean(values == value) - probability)
        deviation = np.sqrt(probability * (1 - probability) / len(values))
        assert error < 5 * deviation, value
