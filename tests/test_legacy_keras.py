"""Keras 2 under `tf.keras`, beside Keras 3, in processes of their own."""

import os
import subprocess
import sys

import pytest

USE = "from keras_relational.legacy_keras import use_legacy_keras as use\n"


def run(code, **variables):
    environment = {k: v for k, v in os.environ.items() if "KERAS" not in k}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    "before", ["", "import keras\n"], ids=["before TensorFlow", "after it"]
)
def test_tf_agents_works_beside_keras_3(before):
    done = run(
        before + USE + "use()\n"
        "from keras_relational.environments import tf_agents_environment\n"
        "from tf_agents.networks import network\n"
        "import keras\n"
        "import tensorflow as tf\n"
        "from tensorflow.keras import layers\n"
        "for cls in (keras.Layer, tf.keras.layers.Layer, layers.Layer):\n"
        "    print(cls.__module__.split('.')[0])"
    )
    assert done.stdout.split() == ["keras", "tf_keras", "tf_keras"], done.stderr


def test_too_late():
    done = run("import tensorflow as tf\ntf.keras.layers\n" + USE + "use()")
    assert done.returncode
    assert "Set the environment variable TF_USE_LEGACY_KERAS=1" in done.stderr


def test_forbidden():
    done = run(USE + "use()", TF_USE_LEGACY_KERAS="0")
    assert done.returncode
    assert "Received: TF_USE_LEGACY_KERAS=0" in done.stderr
