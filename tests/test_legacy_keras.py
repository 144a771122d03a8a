"""Keras 2 under `tf.keras`, beside Keras 3, in processes of their own."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
# Without the package around it, which imports Keras.
USE = f"""
import runpy
module = runpy.run_path({str(ROOT / "keras_relational/legacy_keras.py")!r})
module["use_legacy_keras"]()
"""


def run(code, **variables):
    environment = {k: v for k, v in os.environ.items() if "KERAS" not in k}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
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
    """Nor is the process another then."""
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
    assert "keras_relational[rl]' None" in done.stdout


def test_forbidden():
    done = run(USE, TF_USE_LEGACY_KERAS="0")
    assert done.returncode
    assert "Received: TF_USE_LEGACY_KERAS=0" in done.stderr
