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


def test_forbidden():
    done = run(USE, TF_USE_LEGACY_KERAS="0")
    assert done.returncode
    assert "Received: TF_USE_LEGACY_KERAS=0" in done.stderr
