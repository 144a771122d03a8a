# ruff: noqa: E402 (the switch comes before the import of tf-agents)
"""A world as an environment of tf-agents."""

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
        self._stepped = _stepped(world, batch_size)

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
    """Compiles a step once for all equal worlds and each batch size."""
    advanced = compiled(functools.partial(_advanced, world))

    def stepped(variables, action):
        state = advanced(tf.nest.map_structure(tf.identity, variables), action)
        tf.nest.map_structure(
            lambda variable, value: variable.assign(value), variables, state
        )
        return tf.nest.map_structure(tf.identity, state[1])

    return tf.function(functools.partial(stepped), autograph=False)
