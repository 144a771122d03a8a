"""Small agents and environments for the tests of reinforcement learning."""

import functools

from keras_relational.agents.actor_learner import ActorLearner
from keras_relational.agents.agent import ImpalaAgent

# isort: split
import keras
import numpy as np
import tensorflow as tf
from keras import ops
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory as trajectories

from keras_relational import layers
from keras_relational import models
from keras_relational.environments import boxworld
from keras_relational.environments import tf_agents_environment


def small_environment(batch_size=4, seed=0, max_episode_steps=10):
    """Episodes are short, so that many of them end."""
    world = boxworld.BoxWorld(
        3, 6, (1, 1), (0, 0), max_episode_steps=max_episode_steps
    )
    return tf_agents_environment.WorldTFEnvironment(world, batch_size, seed)


def small_model(recurrent=False):
    """As `boxworld_agent`, with less in it: it compiles in no time.

    What remembers is a GRU, or `"scoff"`.
    """
    time = (None,) if recurrent else ()
    images = keras.Input((*time, 3, 7, 3), dtype="uint8", name="image")
    x = ops.cast(ops.reshape(images, (-1, 63)), "float32") / 255
    x = keras.layers.Dense(8, activation="tanh")(x)
    inputs, states = images, []
    if recurrent:
        is_first = keras.Input(time, dtype="bool", name="is_first")
        cell = keras.layers.GRUCell(5)
        if recurrent == "scoff":
            cell = layers.SCOFFCell(4, num_object_files=2, num_schemata=3)
        (size,) = keras.tree.flatten(cell.state_size)
        states = [keras.Input((size,), name="state_0")]
        inputs = [images, is_first, *states]
        core = layers.EpisodicRNN(cell)
        x, *states = core(x, is_first, states)
    logits = keras.layers.Dense(4, name="policy")(x)
    value = ops.squeeze(keras.layers.Dense(1)(x), -1)
    return models.declare(
        keras.Model(inputs, (logits, value, *states)),
        {"policy": "logits", "value": "raw"},
        states=[f"state_{i}" for i in range(len(states))],
    )


def small_agent(environment=None, recurrent=False, **arguments):
    environment = environment or small_environment()
    keras.utils.set_random_seed(0)
    return ImpalaAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        small_model(recurrent),
        **arguments,
    )


@functools.cache
def _first_training(recurrent, **arguments):
    environment = small_environment(batch_size=8)
    agent = small_agent(environment, recurrent)
    training = ActorLearner(agent, environment, unroll_length=10, **arguments)
    return training, tf.nest.map_structure(tf.identity, training.state)


def small_training(recurrent=False, **arguments):
    """An `ActorLearner` as it starts. All tests share what is compiled."""
    training, first = _first_training(recurrent, **arguments)
    tf.nest.map_structure(lambda x, v: x.assign(v), training.state, first)
    training.environment_steps.reset()
    training.num_episodes.reset()
    return training


def numbers(nest):
    return [np.array(x) for x in tf.nest.flatten(nest)]


def assert_all_equal(one, other, **tolerances):
    for x, y in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_allclose(x, y, **{"rtol": 0, **tolerances})


def assert_all_moved(before, after):
    for old, new in zip(before, numbers(after), strict=True):
        assert (old != new).any()


def random_trajectory(time=7, batch=3, seed=0):
    """`[T + 1, B, …]`, with ends of both kinds and what follows them."""
    rng = np.random.default_rng(seed)
    shape = (time + 1, batch)
    step_type = np.full(shape, 1, "int32")
    step_type[2, 0] = step_type[4, 1] = ts.StepType.LAST
    step_type[3, 0] = step_type[5, 1] = ts.StepType.FIRST
    next_type = np.concatenate([step_type[1:], step_type[:1] * 0 + 1])
    discount = np.ones(shape, "float32")
    discount[1, 0] = 0  # over; that of column 1 is cut off
    return trajectories.Trajectory(
        step_type=tf.constant(step_type),
        observation=tf.constant(
            rng.integers(256, size=(*shape, 3, 7, 3)), tf.uint8
        ),
        action=tf.constant(rng.integers(4, size=shape), tf.int32),
        policy_info={
            "logits": tf.constant(rng.normal(size=(*shape, 4)), tf.float32)
        },
        next_step_type=tf.constant(next_type),
        reward=tf.constant(rng.normal(size=shape), tf.float32),
        discount=tf.constant(discount),
    )
