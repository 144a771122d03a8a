"""Checkpoints of both kinds of training, and SavedModels.

A server reads a SavedModel when it starts.
"""

import contextlib
import functools
import io
import os
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf

from fuzz import servers
from fuzz.targets import saved_answers
from fuzz.targets import targets
from keras_relational import runs
from keras_relational import serving
from keras_relational import training


def supervised(folder):
    """Trains for an epoch, or reads that the model was trained so far."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    x = np.random.default_rng(0).standard_normal((20, 3)).astype("float32")
    with runs.Run(folder, "fuzz", {}) as run, _quiet():
        curves = training.train_classifier(
            model,
            x,
            (x[:, 0] > 0).astype("int64"),
            num_batches=2,
            batches_per_epoch=2,
            steps_per_execution=1,
            batch_size=5,
            run=run,
            verbose=0,
        )
    return curves, [np.array(x) for x in model.weights]


def agent(folder):
    """Trains for one update, or reads that the agent was trained so far."""
    from keras_relational.agents.training import train_agent

    actor_learner = _actor_learner()
    with runs.Run(folder, "fuzz", {}) as run, _quiet():
        curves = train_agent(
            actor_learner,
            num_steps=1,
            success_reward=10.0,
            run=run,
            updates_per_epoch=1,
            verbose=False,
        )
    return curves, [x.numpy() for x in tf.nest.flatten(actor_learner.state)]


def _quiet():
    """A run says that it has been trained already."""
    return contextlib.redirect_stdout(io.StringIO())


@functools.cache
def _actor_learner():
    """One for all files: its state after a read is what was read."""
    from keras_relational.agents.actor_learner import ActorLearner
    from keras_relational.agents.agent import ImpalaAgent
    from keras_relational.environments import boxworld
    from keras_relational.environments import tf_agents_environment

    keras.utils.set_random_seed(0)
    world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0), max_episode_steps=10)
    environment = tf_agents_environment.WorldTFEnvironment(world, 2, 0)
    image = keras.Input((3, 7, 3), dtype="uint8", name="image")
    x = keras.ops.cast(keras.ops.reshape(image, (-1, 63)), "float32")
    logits = keras.layers.Dense(4, name="policy")(x)
    value = keras.ops.squeeze(keras.layers.Dense(1)(x), -1)
    agent = ImpalaAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        keras.Model(image, (logits, value)),
    )
    return ActorLearner(agent, environment, unroll_length=2)


def checkpoint(path):
    """The path of a checkpoint, without the endings of its files."""
    return str(path).split(".index")[0].split(".data-")[0]


def make_saved_models(folder):
    for version in (1, 2):
        servers.export(targets()[0], folder, version, seed=version)


def read_saved_models(folder):
    """The answers of version 2, where the server serves it.

    A `ValueError` has what the server says if it serves version 1 instead, as
    it should where 2 is damaged.
    """
    inputs = targets()[0].inputs
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        try:
            with (
                _stderr_in(file),
                serving.serve(folder, "relations") as server,
            ):
                version = server.version
                answers = serving.predict_grpc(
                    server.grpc_address, inputs, "relations", timeout=60
                )
        except Exception as error:
            raise RuntimeError(
                f"The server does not start, or answer: {error!r}"
            ) from error
        file.seek(0)
        said = file.read()
    if version == 2:
        return answers
    right = saved_answers(os.path.join(folder, "1"), targets()[0])
    if not all(np.allclose(answers[x], right[x], atol=1e-5) for x in right):
        raise RuntimeError("Version 1 is served with other answers")
    raise ValueError(f"Version {version} is served, and it says: {said}")


@contextlib.contextmanager
def _stderr_in(file):
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def version(path):
    """What the server calls the version of a file; only 2 is damaged."""
    return "Version 2 "
