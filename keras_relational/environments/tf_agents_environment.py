# ruff: noqa: E402 (the switch comes before the import of tf-agents)
"""A world as a tf-agents environment."""

from keras_relational.legacy_keras import check_backend
from keras_relational.legacy_keras import use_legacy_keras

use_legacy_keras()

import functools

import numpy as np
import tensorflow as tf
from tf_agents.environments import tf_environment
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from keras_relational.counter_based_random import random_bits
from keras_relational.environments.compilation import compiled
from keras_relational.environments.world import checked_actions


class WorldTFEnvironment(tf_environment.TFEnvironment):
    """Many episodes at a time, as tensors.

    As tf-agents has it, an episode that is over is followed by the first step
    of a new one, on which the action has no effect. A step is LAST with
    discount 0 where the rules end the episode, and with discount 1, so that its
    value is bootstrapped, where it is cut off after `max_episode_steps`.

    Args:
        world: A `boxworld.BoxWorld`, `boxworld.BridgeBoxWorld` or
            `goto_object_maze.GotoObjectMaze`.
        batch_size: Positive integer, number of episodes.
        seed: Non-negative integer that fixes all of them.

    Raises:
        RuntimeError: If Keras runs on another backend than TensorFlow.
        ValueError: From `step`, if the actions are not in the world's. Inside a
            compiled function they are cut to the first or last action.

    Example:

    >>> from keras_relational.environments.boxworld import BridgeBoxWorld
    >>> environment = WorldTFEnvironment(BridgeBoxWorld(), batch_size=3)
    >>> environment.step(tf.zeros(3, tf.int32)).observation.shape
    TensorShape([3, 7, 10, 3])
    """

    def __init__(self, world, batch_size=1, seed=0):
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
        self._stepped = _stepped(world, batch_size)

    def level(self, state=None):
        """The level of each episode, one a row; by default of those now."""
        world_state, _ = self.state if state is None else state
        return tf.identity(world_state["level"])

    def advance(self, state, action):
        """One step of all episodes as a pure function.

        Args:
            state: The state of the world and the time step, as in the
                attribute `state`.
            action: int32 tensor `(batch_size,)`.

        Returns:
            The next state of the world and time step.
        """
        return _advanced(self.world, state, action)

    def _current_time_step(self):
        return tf.nest.map_structure(tf.identity, self.state[1])

    def _reset(self):
        over = tf.fill([self.batch_size], ts.StepType.LAST)
        self.state[1].step_type.assign(over)
        return self._stepped(self.state, tf.zeros([self.batch_size], tf.int32))

    def _step(self, action):
        action = checked_actions(action, (self.batch_size,), self.world.actions)
        return self._stepped(self.state, tf.convert_to_tensor(action))


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
    """One step for all environments of a kind: each size compiles anew."""
    advanced = compiled(functools.partial(_advanced, world))

    def stepped(variables, action):
        state = advanced(tf.nest.map_structure(tf.identity, variables), action)
        tf.nest.map_structure(
            lambda variable, value: variable.assign(value), variables, state
        )
        return tf.nest.map_structure(tf.identity, state[1])

    return tf.function(functools.partial(stepped), autograph=False)
