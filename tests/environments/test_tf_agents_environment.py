import functools

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from keras_relational.environments import boxworld
from keras_relational.environments import goto_object_maze
from keras_relational.environments.compilation import compiled
from keras_relational.environments.tf_agents_environment import (
    GymnasiumPyEnvironment,
)
from keras_relational.environments.tf_agents_environment import (
    WorldTFEnvironment,
)

# isort: split
from tf_agents.environments import py_environment
from tf_agents.environments import utils
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts


class AsPyEnvironment(py_environment.PyEnvironment):
    """tf-agents validates its Python environments alone."""

    def __init__(self, environment):
        super().__init__(handle_auto_reset=False)
        self.environment = environment

    batched = True

    @property
    def batch_size(self):
        return self.environment.batch_size

    def observation_spec(self):
        return tensor_spec.to_array_spec(self.environment.observation_spec())

    def action_spec(self):
        return tensor_spec.to_array_spec(self.environment.action_spec())

    def _reset(self):
        return tf.nest.map_structure(np.array, self.environment.reset())

    def _step(self, action):
        time_step = self.environment.step(tf.constant(action))
        return tf.nest.map_structure(np.array, time_step)


def small_environment(batch_size=4, seed=0, steps=15):
    world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0), max_episode_steps=steps)
    return WorldTFEnvironment(world, batch_size, seed)


@pytest.mark.slow
def test_passes_the_validation_of_tf_agents():
    for environment in (
        small_environment(),
        WorldTFEnvironment(
            boxworld.BridgeBoxWorld(max_episode_steps=10), batch_size=2
        ),
        WorldTFEnvironment(
            goto_object_maze.GotoObjectMaze(max_episode_steps=10), batch_size=2
        ),
    ):
        utils.validate_py_environment(AsPyEnvironment(environment), episodes=9)


def test_follows_the_rules():
    """Step by step as the world does, with a reset after each end."""
    environment = small_environment(batch_size=32, steps=30)
    world = environment.world
    step, restart = compiled(world.step), compiled(world.restart)
    time_step = environment.reset()
    images = time_step.observation.numpy().reshape(32, -1)
    assert len(np.unique(images, axis=0)) > 15
    state = {k: v.numpy() for k, v in environment.state[0].items()}
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(65):
        over = time_step.is_last().numpy()
        actions = rng.integers(4, size=32).astype("int32")
        moved, reward, terminated, truncated = step(state, actions)
        state = restart(moved, over)
        time_step = environment.step(actions)
        np.testing.assert_array_equal(
            time_step.observation, world.render(state)
        )
        np.testing.assert_array_equal(
            time_step.reward, np.where(over, 0, reward)
        )
        terminated, truncated = terminated.numpy(), truncated.numpy()
        np.testing.assert_array_equal(
            time_step.step_type,
            np.where(over, 0, np.where(terminated | truncated, 2, 1)),
        )
        np.testing.assert_array_equal(
            time_step.discount, np.where(terminated & ~over, 0, 1)
        )
        seen |= set(np.ravel(time_step.step_type))
        seen |= {("won", bool(x)) for x in terminated & ~over}
        seen |= {("cut off", bool(x)) for x in truncated & ~over}
    assert seen >= {0, 1, 2, ("won", True), ("cut off", True)}


def test_current_time_step_and_seeds():
    one, same, other = (small_environment(seed=seed) for seed in (1, 1, 2))
    first = one.current_time_step()
    assert (first.step_type.numpy() == ts.StepType.FIRST).all()
    np.testing.assert_array_equal(
        first.observation, same.current_time_step().observation
    )
    different = other.current_time_step().observation.numpy()
    assert (first.observation.numpy() != different).any()
    after = one.step(tf.fill([4], 2))
    np.testing.assert_array_equal(
        one.current_time_step().observation, after.observation
    )
    # Both share a compiled step, and neither the other's state.
    np.testing.assert_array_equal(
        first.observation, same.current_time_step().observation
    )
    np.testing.assert_array_equal(
        after.observation, same.step(tf.fill([4], 2)).observation
    )
    assert one.level().shape == (4, 3)
    # A reset begins a new episode everywhere.
    again = one.reset()
    assert (again.step_type.numpy() == ts.StepType.FIRST).all()
    assert (again.observation.numpy() != first.observation.numpy()).any()


class Counting(gymnasium.Env):
    """Shows a number of the episode and the step. Action 7 ends it."""

    observation_space = gymnasium.spaces.Box(0, 1_000, (2,), np.int32)
    action_space = gymnasium.spaces.Discrete(3, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = np.array([self.np_random.integers(1_000), 0], "int32")
        return self.seen.copy(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.seen[1] += 1
        return self.seen.copy(), 10.0 * action, action == 7, False, {}


def counting(num_envs=2, seed=0, **arguments):
    """Episodes are cut off after three steps."""
    make = functools.partial(gymnasium.wrappers.TimeLimit, max_episode_steps=3)
    envs = [lambda: make(Counting())] * num_envs
    return gymnasium.vector.SyncVectorEnv(envs, **arguments)


def test_gymnasium_passes_the_validation_of_tf_agents():
    environment = GymnasiumPyEnvironment(counting())
    utils.validate_py_environment(environment, episodes=9)


def test_gymnasium_ends_episodes_as_tf_agents_does():
    """One episode ends by its rules, the other is cut off."""
    environment = GymnasiumPyEnvironment(counting(), seed=3)
    steps = [environment.reset()]
    for actions in ([5, 6], [7, 6], [7, 6], [6, 7], [5, 6]):
        steps.append(environment.step(np.array(actions)))
    types, rewards, discounts, observations = (
        np.array(x) for x in zip(*steps, strict=True)
    )
    assert types.tolist() == [[0, 0], [1, 1], [2, 1], [0, 2], [1, 0], [1, 1]]
    assert rewards[1:].tolist() == [
        [50, 60],
        [70, 60],
        [0, 60],
        [60, 0],
        [50, 60],
    ]
    assert discounts.tolist() == [[1, 1], [1, 1], [0, 1], *[[1, 1]] * 3]
    assert observations[..., 1].T.tolist() == [
        [0, 1, 2, 0, 1, 2],
        [0, 1, 2, 3, 0, 1],
    ]
    again, other = (
        GymnasiumPyEnvironment(counting(), seed=x).reset() for x in (3, 4)
    )
    np.testing.assert_array_equal(again.observation, steps[0].observation)
    assert (other.observation != again.observation).any()
    environment.close()


def test_gymnasium_environments_that_do_not_fit():
    same = gymnasium.vector.AutoresetMode.SAME_STEP
    with pytest.raises(ValueError, match="NEXT_STEP, Gymnasium's default"):
        GymnasiumPyEnvironment(counting(autoreset_mode=same))
    for name, space in (("observation", "Box"), ("action", "Discrete")):
        envs = counting()
        pair = gymnasium.spaces.MultiDiscrete([2, 2])
        setattr(envs, f"single_{name}_space", pair)
        with pytest.raises(ValueError, match=f"{name} space must be a {space}"):
            GymnasiumPyEnvironment(envs)
