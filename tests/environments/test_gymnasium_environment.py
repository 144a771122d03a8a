import functools
import os
import subprocess
import sys

import gymnasium
import keras
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from worlds_in_python import PythonBoxWorld

from keras_relational.environments import gymnasium_environment

pytestmark = pytest.mark.any_backend

IDS = ("keras_relational/BoxWorld-v0", "keras_relational/BridgeBoxWorld-v0")
MAZE = "keras_relational/GotoObjectMaze-v0"


MANY = """
import sys
import gymnasium

for module in ("keras_relational", "tensorflow", "keras", "jax"):
    assert module not in sys.modules
{imports}
for name in ("BoxWorld", "BridgeBoxWorld", "GotoObjectMaze"):
    for number in range(7):
        env = gymnasium.make(f"{prefix}keras_relational/{{name}}-v0")
        env.reset(seed=number)
        env.step(number % 4)
        envs = gymnasium.make_vec(
            f"{prefix}keras_relational/{{name}}-v0", num_envs=3
        )
        envs.reset(seed=number)
        envs.step([0, 1, number % 4])
"""


@pytest.mark.parametrize(
    ("imports", "prefix"),
    [("", "keras_relational:"), ("import keras_relational", "")],
)
@pytest.mark.slow
def test_gymnasium_finds_the_worlds(imports, prefix):
    """And many of them are made without a warning, of retracing for one."""
    code = MANY.format(imports=imports, prefix=prefix)
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "retracing" not in done.stderr
    assert "already in registry" not in done.stderr


@pytest.fixture(params=(*IDS, MAZE))
def name(request):
    return request.param


def test_passes_the_check_of_gymnasium(name):
    env = gymnasium.make(name, render_mode="rgb_array")
    check_env(env.unwrapped)


def test_seeds(name):
    env = gymnasium.make(name)
    first, info = env.reset(seed=3)
    assert info["level"].shape == ((1,) if name == MAZE else (3,))
    second, _ = env.reset()
    assert (first != second).any()
    np.testing.assert_array_equal(env.reset(seed=3)[0], first)
    np.testing.assert_array_equal(env.reset()[0], second)
    assert (env.reset(seed=4)[0] != first).any()


def test_render_enlarges_the_image(name):
    env = gymnasium.make(name, render_mode="rgb_array", tile_size=5)
    image, _ = env.reset(seed=0)
    picture = env.render()
    np.testing.assert_array_equal(picture[::5, ::5], image)
    np.testing.assert_array_equal(picture[4::5, 4::5], image)


def scribble(*returned):
    """Writes into all arrays that an environment has returned."""
    for x in keras.tree.flatten(returned):
        if isinstance(x, np.ndarray):
            x[...] = 1


@pytest.mark.parametrize("number", [None, 3])
def test_what_is_returned_belongs_to_the_caller(name, number):
    """Writing into it changes no later step, and no picture."""
    if number is None:
        make = functools.partial(
            gymnasium_environment.WorldEnv,
            name.split("/")[1][:-3],
            render_mode="rgb_array",
            max_episode_steps=5,
        )
    else:
        make = functools.partial(
            gymnasium.make_vec, name, number, max_episode_steps=5
        )
    env, twin = make(), make()
    returned, expected = (x.reset(seed=4) for x in (env, twin))
    for action in np.random.default_rng(0).integers(4, size=12):
        keras.tree.map_structure(
            np.testing.assert_array_equal, returned, expected
        )
        scribble(*returned)
        if number is None:
            np.testing.assert_array_equal(env.render(), twin.render())
            scribble(env.render())
            np.testing.assert_array_equal(env.render(), twin.render())
            if len(returned) == 5 and (returned[2] or returned[3]):
                break
        actions = int(action) if number is None else np.full(number, action)
        returned, expected = env.step(actions), twin.step(actions)
        if number is not None:
            assert (actions == action).all()


def test_vector_environment_plays_as_single_ones_do(name):
    """Until, and through, the end of episodes, with the reset a step later."""
    arguments = {"max_episode_steps": 20}
    envs = gymnasium.make_vec(name, num_envs=3, **arguments)
    images, infos = envs.reset(seed=[5, 6, 7])
    assert images in envs.observation_space
    singles = [
        gymnasium_environment.WorldEnv(name.split("/")[1][:-3], **arguments)
        for _ in range(3)
    ]
    over = [False] * 3
    for i, (env, seed) in enumerate(zip(singles, (5, 6, 7), strict=True)):
        image, info = env.reset(seed=seed)
        np.testing.assert_array_equal(images[i], image)
        np.testing.assert_array_equal(infos["level"][i], info["level"])
    rng = np.random.default_rng(0)
    for time in range(45):
        actions = rng.integers(4, size=3)
        images, rewards, terminated, truncated, _ = envs.step(actions)
        for i, env in enumerate(singles):
            if over[i]:  # The first image of a new episode.
                assert (rewards[i], terminated[i], truncated[i]) == (0, 0, 0)
                if name != MAZE:
                    assert (images[i, 0, 0] == 127).all()
                continue
            if time >= 20:
                continue
            image, *rest, _ = env.step(int(actions[i]))
            np.testing.assert_array_equal(images[i], image)
            assert (rewards[i], terminated[i], truncated[i]) == tuple(rest)
        over = terminated | truncated
    assert rewards.shape == (3,)


def test_vector_environment_goes_through_the_episodes_of_each_seed():
    """More of them than are made in advance, and each at its own time."""
    envs = gymnasium.make_vec(
        IDS[0],
        num_envs=5,
        max_episode_steps=40,
        **{"rows": 3, "columns": 6},
        **{"solution_length": (1, 1), "num_distractors": (0, 0)},
    )
    envs.reset(seed=[3, 4, 5, 6, 7])
    seeds = [np.random.default_rng(s).integers(2**32) for s in range(3, 8)]
    seeds = np.array(seeds, "uint32")
    rng = np.random.default_rng(0)
    numbers, over = np.zeros(5, "int32"), np.zeros(5, bool)
    together = []
    for _ in range(900):
        images, _, terminated, truncated, _ = envs.step(rng.integers(4, size=5))
        numbers += over
        if over.any():
            new = envs.world.render(envs.world.new_episode(seeds, numbers))
            expected = keras.ops.convert_to_numpy(new)
            np.testing.assert_array_equal(images[over], expected[over])
            together.append(over.all())
        over = terminated | truncated
    assert numbers.min() > 2 * gymnasium_environment.NUM_AHEAD
    assert not all(together)


def test_seeds_of_a_vector_environment_fix_all_episodes(name):
    """One seed for all, or one for each."""
    envs = gymnasium.make_vec(name, num_envs=2)
    for seed in (3, [3, 4]):
        first, second = envs.reset(seed=seed)[0], envs.reset()[0]
        assert (first != second).any()
        assert (first[0] != first[1]).any()
        np.testing.assert_array_equal(envs.reset(seed=seed)[0], first)
        np.testing.assert_array_equal(envs.reset()[0], second)


def test_a_seed_may_be_left_to_chance(name):
    envs = gymnasium.make_vec(name, num_envs=2)
    (_, one), (_, other) = (envs.reset(seed=[None, 4])[0] for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_arguments_are_those_of_the_world():
    lengths = {"solution_length": (1, 1), "num_distractors": (1, 1)}
    env = gymnasium.make(IDS[0], rows=5, columns=6, **lengths)
    assert env.observation_space.shape == (5, 7, 3)
    assert env.reset(seed=0)[1]["level"].tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match="room for 8"):
        gymnasium.make(IDS[1], solution_length=(1, 9))
    env = gymnasium.make(MAZE, room_size=10, num_objects=5)
    assert env.unwrapped.world.room_size == 10
    assert env.action_space.n == 4
    with pytest.raises(ValueError, match="room_size=2"):
        gymnasium.make(MAZE, room_size=2)


def test_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match=r"'Sokoban'.*BoxWorld, Bridge.*Maze"):
        gymnasium_environment.WorldEnv("Sokoban")
    with pytest.raises(ValueError, match="render_mode 'human'"):
        gymnasium_environment.WorldEnv("BoxWorld", render_mode="human")
    envs = gymnasium_environment.WorldVectorEnv(2, "BoxWorld")
    with pytest.raises(ValueError, match=r"each of the 2 .*: 3 seeds"):
        envs.reset(seed=[1, 2, 3])
    for env in (envs, gymnasium_environment.WorldEnv("BoxWorld")):
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(0)
    env = gymnasium_environment.WorldEnv("BoxWorld", render_mode="rgb_array")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.render()
    with pytest.raises(ValueError, match="render_mode='rgb_array'"):
        gymnasium.make_vec(IDS[0], num_envs=2, render_mode="rgb_array")


def test_played_as_the_plain_rules_have_it():
    size = {"rows": 3, "columns": 6}
    lengths = {"solution_length": (1, 1), "num_distractors": (0, 0)}
    env = gymnasium_environment.WorldEnv("BoxWorld", **size, **lengths)
    rng = np.random.default_rng(0)
    for seed in range(5):
        image, _ = env.reset(seed=seed)
        plain, over = PythonBoxWorld(image, set()), False
        while not over:
            action = rng.integers(4)
            expected = plain.step(action)
            image, reward, over, truncated, _ = env.step(action)
            np.testing.assert_array_equal(image, plain.image())
            assert (reward, over, truncated) == (*expected, False)


@pytest.mark.parametrize("action", [7, -1, 1.0, [1], np.nan, None, "left"])
def test_refuses_what_is_no_action(action):
    env = gymnasium.make(IDS[0]).unwrapped
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"[Aa]ction.*Received"):
        env.step(action)


@pytest.mark.parametrize("actions", [[0, 1, 2, 4], [0, 1, 2], 3, np.zeros(4)])
def test_refuses_what_are_no_actions(actions):
    envs = gymnasium.make_vec(IDS[0], num_envs=4)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"[Aa]ction.*Received"):
        envs.step(actions)


def test_environments_of_one_kind_share_what_is_compiled():
    first, second = (gymnasium.make(IDS[0]).unwrapped for _ in range(2))
    other = gymnasium.make(IDS[0], rows=10).unwrapped
    assert first._new_episodes is second._new_episodes
    assert first._new_episodes is not other._new_episodes
