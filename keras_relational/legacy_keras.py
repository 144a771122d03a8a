"""Sets up Keras 2 as `tf.keras`, as tf-agents needs it, beside Keras 3."""

import importlib.util
import os
import sys


def check_backend(what: str) -> None:
    """Raises a `RuntimeError` unless Keras runs on TensorFlow.

    `what` needs tf-agents, and so TensorFlow: a plural noun for the error.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            f"{what} need Keras' TensorFlow backend, but Keras runs on "
            f"{keras.backend.backend()!r} here. Set the environment variable "
            "KERAS_BACKEND=tensorflow, or unset it, before you start Python. "
            "A trained agent, saved by model.save('model.keras'), can be "
            "loaded and played on JAX too."
        )


def use_legacy_keras() -> None:
    """Makes `tf.keras` Keras 2 in this process, before tf-agents is imported.

    TensorFlow reads the environment variable TF_USE_LEGACY_KERAS when
    `tf.keras` is first used, after `import keras`. The whole process is
    affected, so only modules that need tf-agents call this function.
    """
    for name in ("tf_keras", "tf_agents"):
        if importlib.util.find_spec(name) is None:
            raise ImportError(
                f"Agents need {name}, which is not installed. Run these two "
                "commands:\n"
                "  pip install 'keras_relational[rl]'\n"
                "  pip install --no-deps tf-agents==0.19.0"
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

    used = "tensorflow.keras" in sys.modules
    for module in (tf, tf.compat.v1, tf.compat.v2):
        loader = module.__dict__.get("keras")
        used |= getattr(loader, "_tfll_initialized", True)
    if used:
        raise ImportError(
            "tf-agents needs Keras 2 under `tf.keras`, but this process has "
            "used it as Keras 3 already. Set the environment variable "
            "TF_USE_LEGACY_KERAS=1 before TensorFlow is imported."
        )
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tf_keras.api._v2.keras as legacy

    # `from tensorflow.keras import …` searches this path. It does not read the
    # environment variable.
    folder = os.path.dirname(os.path.dirname(legacy.__file__))
    tf.__path__.insert(0, folder)
