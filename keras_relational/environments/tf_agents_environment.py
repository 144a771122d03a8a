# ruff: noqa: E402 (the switch comes before the import of tf-agents)
"""A world, or anybody's Gymnasium environments, as one of tf-agents."""

from keras_relational.legacy_keras import check_backend
from keras_relational.legacy_keras import use_legacy_keras

use_legacy_keras()

import functools

import gymnasium
import numpy as np
import tensorflow as tf
from tf_agents.environments import py_environment
from tf_agents.environments import tf_environment
from tf_agents.specs import array_spec
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from keras_relational.counter_based_random import random_bits
from keras_relational.environments.batched_world import World
from keras_relational.environments.batched_world import checked_actions
from keras_relational.environments.compilation import compiled


class WorldTFEnvironment(tf_environment.TFEnvironment):
    """A batch of episodes as a `TFEnvironment`.

    As tf-agents requires, the step after the end of an episode is the first
    step of a new one, and the action for this step has no effect. The discount
    of the last step is 0 if the rules end the episode. If the episode is cut
    off after `max_episode_steps`, the discount is 1, and learners bootstrap
    from the value of the last frame.

    Args:
        world: A `World`, such as `boxworld.BoxWorld` or
            `goto_object_maze.GotoObjectMaze`.
        batch_size: Positive integer, the number of episodes.
        seed: Non-negative integer that fixes all episodes.

    Raises:
        RuntimeError: If Keras runs on another backend than TensorFlow.
        ValueError: From `step`, if the actions are not actions of the world. A
            compiled function cannot check values. There an index below the
            range becomes the first action, and an index above it the last.

    Example:

    >>> from keras_relational.environments.boxworld import BridgeBoxWorld
    >>> environment = WorldTFEnvironment(BridgeBoxWorld(), batch_size=3)
    >>> environment.step(tf.zeros(3, tf.int32)).observation.shape
    TensorShape([3, 7, 10, 3])
    """

    def __init__(self, world: World, batch_size: int = 1, seed: int = 0):
        check_backend("Environments of tf-agents")
        self.world = world
        super().__init__(
            time_step_spec=ts.time_step_spec(
                tensor_spec.BoundedTensorSpec(
                    world.image_shape, tf.uint8, 0, 255, "image"
                )
            ),
            action_spec=tensor_spec.BoundedTensorSpec(
                (), tf.int32, 0, len(world.actions) - 1, "action"
            ),
            batch_size=batch_size,
        )
        seeds = random_bits(np.uint32(seed), np.arange(batch_size))
        state = world.reset(seeds)
        time_step = ts.restart(world.render(state), batch_size)
        self.state = tf.nest.map_structure(tf.Variable, (state, time_step))

    def level(
        self, state: tuple[dict[str, tf.Tensor], ts.TimeStep] | None = None
    ) -> tf.Tensor:
        """The level of each episode, integers `(batch_size, n)`.

        `state` is like the attribute `state`, which is the default.
        """
        world_state, _ = self.state if state is None else state
        return tf.identity(world_state["level"])

    def advance(
        self, state: tuple[dict[str, tf.Tensor], ts.TimeStep], action: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], ts.TimeStep]:
        """Takes one step in all episodes, as a pure function.

        `state` is like the attribute `state`, and `action` int32
        `(batch_size,)`. Returns the next state.
        """
        return _advanced(self.world, state, action)

    @functools.cached_property
    def _stepped(self):
        # To find the trace anew takes as long as a step.
        return _stepped(self.world, self.batch_size).get_concrete_function(
            self.state, tf.TensorSpec((self.batch_size,), tf.int32)
        )

    def _current_time_step(self):
        return tf.nest.map_structure(tf.identity, self.state[1])

    def _reset(self):
        over = tf.fill([self.batch_size], ts.StepType.LAST)
        self.state[1].step_type.assign(over)
        return self._stepped(self.state, tf.zeros([self.batch_size], tf.int32))

    def _step(self, action):
        checked_actions(action, (self.batch_size,), self.world.actions)
        return self._stepped(self.state, tf.cast(action, tf.int32))


def _advanced(world, state, action):
    world_state, time_step = state
    over = time_step.is_last()
    world_state, reward, terminated, truncated = world.step_or_restart(
        world_state, action, over
    )
    ends = tf.where(terminated | truncated, ts.StepType.LAST, ts.StepType.MID)
    return world_state, ts.TimeStep(
        step_type=tf.where(over, ts.StepType.FIRST, ends),
        reward=reward,
        discount=tf.where(terminated, 0.0, 1.0),
        observation=world.render(world_state),
    )


@functools.lru_cache(maxsize=32)
def _stepped(world, batch_size):
    """Compiles a step once for all equal worlds and each batch size."""

    def stepped(variables, action):
        state = tf.nest.map_structure(tf.identity, variables)
        state = _advanced(world, state, action)
        tf.nest.map_structure(
            lambda variable, value: variable.assign(value), variables, state
        )
        return state[1]

    return compiled(stepped)


class GymnasiumPyEnvironment(py_environment.PyEnvironment):
    """Anybody's Gymnasium environments as one batched `PyEnvironment`.

    tf-agents' own `GymWrapper` is for `gym`, the library before Gymnasium.

    The step after the end of an episode is the first step of a new one, and the
    action for this step has no effect: tf-agents and Gymnasium's
    `AutoresetMode.NEXT_STEP` agree in this. The discount of the last step is 0
    where the environment says `terminated`. Where it says `truncated`, the
    discount is 1, and learners bootstrap from the value of the last
    observation.

    Args:
        envs: `gymnasium.vector.VectorEnv`, as `gymnasium.make_vec` or
            `gymnasium.vector.SyncVectorEnv` makes it, with observations of a
            `Box` and actions of a `Discrete` space.
        seed: Non-negative integer that fixes the episodes. By default they
            differ from run to run.

    Raises:
        RuntimeError: If Keras runs on another backend than TensorFlow.
        ValueError: If a space is of another kind, or the environments begin new
            episodes in another way.

    Example:

    >>> envs = gymnasium.make_vec("CartPole-v1", num_envs=3)
    >>> environment = GymnasiumPyEnvironment(envs, seed=0)
    >>> environment.reset().observation.shape
    (3, 4)
    """

    def __init__(
        self, envs: gymnasium.vector.VectorEnv, seed: int | None = None
    ):
        check_backend("Environments of tf-agents")
        mode = envs.metadata.get("autoreset_mode")
        if mode != gymnasium.vector.AutoresetMode.NEXT_STEP:
            raise ValueError(
                "The environments must begin a new episode at the step after "
                "the end of one: make them with autoreset_mode="
                "gymnasium.vector.AutoresetMode.NEXT_STEP, Gymnasium's "
                f"default. Received: autoreset_mode={mode}"
            )
        super().__init__(handle_auto_reset=False)
        self.envs = envs
        self._observation_spec = _spec(
            envs.single_observation_space, gymnasium.spaces.Box, "observation"
        )
        self._action_spec = _spec(
            envs.single_action_space, gymnasium.spaces.Discrete, "action"
        )
        self._seed = seed

    @property
    def batched(self) -> bool:
        """Whether there are several episodes: always."""
        return True

    @property
    def batch_size(self) -> int:
        """Number of episodes."""
        return self.envs.num_envs

    def observation_spec(self) -> array_spec.BoundedArraySpec:
        """What an observation of one episode looks like."""
        return self._observation_spec

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """What an action in one episode looks like."""
        return self._action_spec

    def close(self) -> None:
        """Closes the Gymnasium environments."""
        self.envs.close()

    def _reset(self):
        # The seed fixes all later episodes, too.
        observation, _ = self.envs.reset(seed=self._seed)
        self._seed = None
        return ts.restart(observation, self.batch_size)

    def _step(self, action):
        over = self._current_time_step.is_last()
        observation, reward, terminated, truncated, _ = self.envs.step(action)
        ends = np.where(
            terminated | truncated, ts.StepType.LAST, ts.StepType.MID
        )
        return ts.TimeStep(
            step_type=np.where(over, ts.StepType.FIRST, ends).astype("int32"),
            reward=np.where(over, 0, reward).astype("float32"),
            discount=np.where(terminated & ~over, 0, 1).astype("float32"),
            observation=observation,
        )


def _spec(space, kind, name):
    if not isinstance(space, kind):
        raise ValueError(
            f"The {name} space must be a {kind.__name__}. A wrapper can make "
            "one, such as gymnasium.wrappers.FlattenObservation. Received: "
            f"{space}"
        )
    if isinstance(space, gymnasium.spaces.Box):
        low, high = space.low, space.high
    else:
        low, high = space.start, space.start + space.n - 1
    return array_spec.BoundedArraySpec(
        space.shape, space.dtype, low, high, name
    )
