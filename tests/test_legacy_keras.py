"""Keras 2 as `tf.keras`, beside Keras 3, in separate processes."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
# Runs the file alone, because the package imports Keras.
USE = f"""
import runpy
module = runpy.run_path({str(ROOT / "keras_relational/legacy_keras.py")!r})
module["use_legacy_keras"]()
"""


def run(code, *arguments, **variables):
    # `make test` has flags of XLA that JAX does not know.
    environment = {
        name: value
        for name, value in os.environ.items()
        if "KERAS" not in name and name != "XLA_FLAGS"
    }
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_tf_agents_works_beside_keras_3():
    done = run(
        "import keras\n"
        "from keras_relational.environments import tf_agents_environment\n"
        "from tf_agents.networks import network\n"
        "import tensorflow as tf\n"
        "from tensorflow.keras import layers\n"
        "for cls in (keras.Layer, tf.keras.layers.Layer, layers.Layer):\n"
        "    print(cls.__module__.split('.')[0])"
    )
    assert done.stdout.split() == ["keras", "tf_keras", "tf_keras"], done.stderr


def test_too_late():
    done = run("import tensorflow as tf\ntf.keras.layers\n" + USE)
    assert done.returncode
    assert "Set the environment variable TF_USE_LEGACY_KERAS=1" in done.stderr


def test_without_the_extra():
    """An error leaves the process unchanged."""
    done = run(
        "import importlib.util, os, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = (\n"
        "    lambda name: None if name == 'tf_agents' else find(name))\n"
        f"try:{USE.replace(chr(10), chr(10) + '    ')}\n"
        "except ImportError as error:\n"
        "    print(error, os.environ.get('TF_USE_LEGACY_KERAS'))"
    )
    assert "Agents need tf_agents" in done.stdout, done.stderr
    assert "keras_relational[rl]'" in done.stdout
    assert re.search(r"--no-deps tf-agents==[\d.]+ None", done.stdout)


def test_forbidden():
    done = run(USE, TF_USE_LEGACY_KERAS="0")
    assert done.returncode
    assert "Received: TF_USE_LEGACY_KERAS=0" in done.stderr


ON_JAX = """
from keras_relational.agents.agent import ImpalaAgent
from keras_relational import models
from keras_relational.environments import boxworld, tf_agents_environment

world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
model = models.boxworld_agent("convolutional", world.image_shape)
for make in (
    lambda: tf_agents_environment.WorldTFEnvironment(world),
    lambda: ImpalaAgent(None, None, model),
):
    try:
        make()
    except RuntimeError as error:
        print(error)
"""


def test_agents_do_not_train_on_another_backend():
    done = run(ON_JAX, KERAS_BACKEND="jax")
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    for line in lines:
        assert "Keras runs on 'jax' here" in line
        assert "Set the environment variable KERAS_BACKEND=tensorflow" in line


AGENTS = ("two_simplicial impala", "two_simplicial teacher", "scoff maze")
EXPERIMENTS = """
import runpy, sys

directory, *names = sys.argv[1:]
for name in names:
    paper, experiment = name.split()
    sys.argv = ["__main__.py", experiment, "--directory", directory]
    try:
        runpy.run_module(f"experiments.{paper}", run_name="__main__")
    except SystemExit as end:
        print(name, end.code)
"""


@pytest.mark.slow
def test_experiments_with_agents_end_in_a_line_on_another_backend(tmp_path):
    arguments = map(str, (tmp_path / "runs", *AGENTS))
    done = run(EXPERIMENTS, *arguments, KERAS_BACKEND="jax")
    assert done.stdout.splitlines() == [f"{name} 2" for name in AGENTS]
    assert "Traceback" not in done.stderr
    errors = [x for x in done.stderr.splitlines() if ": error: " in x]
    for name, line in zip(AGENTS, errors, strict=True):
        assert f"{name}: error: Agents that train need Keras' Tens" in line
    assert errors[-1] == done.stderr.splitlines()[-1]
    assert not (tmp_path / "runs").exists()
