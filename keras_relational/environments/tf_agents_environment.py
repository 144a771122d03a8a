# ruff: noqa: E402 (the switch comes before the import of tf-agents)
"""A world as a tf-agents environment."""

from keras_relational.legacy_keras import use_legacy_keras

use_legacy_keras()

import numpy as np
import tensorflow as tf
from tf_agents.environments import tf_environment
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from keras_relational.environments.compilation import compiled
from keras_relational.random_bits import random_bits


class WorldTFEnvironment(tf_environment.TFEnvironment):
    """Many episodes at a time, as tensors.

    As tf-agents has it, an episode that is over is followed by the first step
    of a new one, for which the action is ignored. A step is LAST with discount
    0 where the rules end the episode, and with discount 1, so that its value is
    bootstrapped, where it is cut off after `max_episode_steps`.

    Args:
        world: A `boxworld.BoxWorld`, `boxworld.BridgeBoxWorld` or
            `goto_object_maze.GotoObjectMaze`.
        batch_size: Positive integer, number of episodes.
        seed: Non-negative integer that fixes all of them.

    Example:

    >>> from keras_relational.environments.boxworld import BridgeBoxWorld
    >>> environment = WorldTFEnvironment(BridgeBoxWorld(), batch_size=3)
    >>> environment.step(tf.zeros(3, tf.int32)).observation.shape
    TensorShape([3, 7, 10, 3])
    """

    def __init__(self, world, batch_size=1, seed=0):
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
        self._advance = compiled(self.advance)

    def puzzle_type(self, state=None):
        """That of each episode, one a row; by default of those now."""
        world_state, _ = self.state if state is None else state
        return tf.identity(world_state["puzzle_type"])

    def advance(self, state, action):
        """One step of all episodes as a pure function.

        Args:
            state: The state of the world and the time step, as in the
                attribute `state`.
            action: int32 tensor `(batch_size,)`.

        Returns:
            The next state of the world and time step.
        """
        world_state, time_step = state
        over = time_step.is_last()
        world_state, reward, terminated, truncated = self.world.step_or_restart(
            world_state, action, over
        )
        ends = tf.where(
            terminated | truncated, ts.StepType.LAST, ts.StepType.MID
        )
        return world_state, ts.TimeStep(
            step_type=tf.where(over, ts.StepType.FIRST, ends),
            reward=reward,
            discount=tf.where(terminated, 0.0, 1.0),
            observation=self.world.render(world_state),
        )

    def _current_time_step(self):
        return tf.nest.map_structure(tf.identity, self.state[1])

    @tf.function(autograph=False)
    def _reset(self):
        world_state, time_step = tf.nest.map_structure(tf.identity, self.state)
        over = tf.fill([self.batch_size], ts.StepType.LAST)
        return self._assign(
            (world_state, time_step._replace(step_type=over)),
            tf.zeros([self.batch_size], tf.int32),
        )

    @tf.function(autograph=False)
    def _step(self, action):
        return self._assign(
            tf.nest.map_structure(tf.identity, self.state), action
        )

    def _assign(self, state, action):
        state = self._advance(state, action)
        tf.nest.map_structure(
            lambda variable, value: variable.assign(value), self.state, state
        )
        return tf.nest.map_structure(tf.identity, state[1])
