"""Keras 2 under `tf.keras`, which tf-agents needs, beside Keras 3."""

import importlib.util
import os
import sys


def check_backend(what):
    """Refuses what is made of tf-agents where Keras runs on something else.

    Args:
        what: What is refused, for the error.

    Raises:
        RuntimeError: If Keras runs on another backend than TensorFlow.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            f"{what} need Keras' TensorFlow backend, and Keras runs on "
            f"{keras.backend.backend()!r} here. Set the environment variable "
            "KERAS_BACKEND=tensorflow, or unset it, before Python is started. "
            "A trained agent, saved by model.save('model.keras'), can be "
            "loaded and played on either."
        )


def use_legacy_keras():
    """Makes `tf.keras` Keras 2 in this process; call before tf-agents' import.

    TensorFlow decides once, when `tf.keras` is first touched, and goes by the
    environment variable TF_USE_LEGACY_KERAS. `import keras` imports TensorFlow
    but does not touch `tf.keras`, so there mostly is time. The whole process is
    affected, hence only what needs tf-agents calls this.

    Raises:
        ImportError: If it is too late, the variable forbids it, or what the
            extra `rl` brings is not installed.
    """
    for name in ("tf_keras", "tf_agents"):
        if importlib.util.find_spec(name) is None:
            raise ImportError(
                f"Agents need {name}, which is not installed. Run: "
                "pip install 'keras_relational[rl]'"
            )
    chosen = os.environ.get("TF_USE_LEGACY_KERAS")
    if chosen in ("1", "True", "true"):
        return
    if chosen is not None:
        raise ImportError(
            "tf-agents needs Keras 2 under `tf.keras`. Set "
            "TF_USE_LEGACY_KERAS=1, or leave it unset. Received: "
            f"TF_USE_LEGACY_KERAS={chosen}"
        )
    if "tensorflow" not in sys.modules:
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        return
    import tensorflow as tf

    touched = "tensorflow.keras" in sys.modules
    for module in (tf, tf.compat.v1, tf.compat.v2):
        loader = module.__dict__.get("keras")
        touched |= getattr(loader, "_tfll_initialized", True)
    if touched:
        raise ImportError(
            "tf-agents needs Keras 2 under `tf.keras`, which this process has "
            "used as Keras 3 already. Set the environment variable "
            "TF_USE_LEGACY_KERAS=1 before TensorFlow is imported."
        )
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tf_keras.api._v2.keras as legacy

    # `from tensorflow.keras import …` looks here, and not at the variable.
    folder = os.path.dirname(os.path.dirname(legacy.__file__))
    tf.__path__.insert(0, folder)
