# ruff: noqa: E402 (the switch comes before the import of tf-agents)
"""BoxWorld and bridge BoxWorld as a tf-agents environment."""

from keras_relational.legacy_keras import use_legacy_keras

use_legacy_keras()

import numpy as np
import tensorflow as tf
from tf_agents.environments import tf_environment
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from keras_relational.environments.boxworld import ACTIONS
from keras_relational.environments.compilation import compiled
from keras_relational.environments.random_bits import random_bits


class BoxWorldTFEnvironment(tf_environment.TFEnvironment):
    """Many episodes at a time, as tensors.

    As tf-agents has it, an episode that is over is followed by the first step
    of a new one, for which the action is ignored. A step is LAST with discount
    0 where the rules end the episode, and with discount 1, so that its value is
    bootstrapped, where it is cut off after `max_episode_steps`.

    Args:
        world: A `boxworld.BoxWorld` or `boxworld.BridgeBoxWorld`.
        batch_size: Positive integer, number of episodes.
        seed: Non-negative integer that fixes all of them.

    Example:

    >>> from keras_relational.environments.boxworld import BridgeBoxWorld
    >>> environment = BoxWorldTFEnvironment(BridgeBoxWorld(), batch_size=3)
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
                (), tf.int32, 0, len(ACTIONS) - 1, "action"
            ),
            batch_size=batch_size,
        )
        seeds = random_bits(np.uint32(seed), np.arange(batch_size))
        state = world.reset(seeds)
        self._state = {k: tf.Variable(v, name=k) for k, v in state.items()}
        self._time_step = tf.nest.map_structure(
            tf.Variable, ts.restart(world.render(state), batch_size)
        )
        self._advance = compiled(self._advanced)

    def puzzle_type(self):
        """That of each of the current episodes, `(batch_size, 3)`."""
        return tf.identity(self._state["puzzle_type"])

    def _current_time_step(self):
        return tf.nest.map_structure(tf.identity, self._time_step)

    @tf.function(autograph=False)
    def _reset(self):
        over = tf.fill([self.batch_size], ts.StepType.LAST)
        return self._assign(over, tf.zeros([self.batch_size], tf.int32))

    @tf.function(autograph=False)
    def _step(self, action):
        return self._assign(self._time_step.step_type, action)

    def _assign(self, step_type, action):
        state = {k: tf.identity(v) for k, v in self._state.items()}
        state, time_step = self._advance(state, step_type, action)
        new = (state, time_step)
        for variable, value in zip(
            tf.nest.flatten((self._state, self._time_step)),
            tf.nest.flatten(new),
            strict=True,
        ):
            variable.assign(value)
        return tf.nest.map_structure(tf.identity, time_step)

    def _advanced(self, state, step_type, action):
        """Pure: the next state and time step."""
        over = tf.equal(step_type, ts.StepType.LAST)
        state, reward, terminated, truncated = self.world.step_or_restart(
            state, action, over
        )
        step_type = tf.where(
            over,
            ts.StepType.FIRST,
            tf.where(terminated | truncated, ts.StepType.LAST, ts.StepType.MID),
        )
        return state, ts.TimeStep(
            step_type=step_type,
            reward=reward,
            discount=tf.where(terminated, 0.0, 1.0),
            observation=self.world.render(state),
        )
