"""Keras layers, tasks and models that reason about relations."""

import importlib
import types

from keras_relational import quiet_tensorflow

try:
    with quiet_tensorflow.without_log_in_commands():
        import keras  # noqa: F401
except ModuleNotFoundError as error:
    if error.name not in ("tensorflow", "jax", "torch"):
        raise
    raise ModuleNotFoundError(
        f"Keras is set to run on {error.name}, which is not installed. Install "
        f"it with `pip install 'keras_relational[{error.name}]'`, or set the "
        "environment variable KERAS_BACKEND to the backend that you have: "
        "tensorflow (the default), jax or torch.",
        name=error.name,
    ) from error

from keras_relational import analysis
from keras_relational import datasets
from keras_relational import environments
from keras_relational import layers
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.version import __version__

__all__ = [
    "__version__",
    "analysis",
    "datasets",
    "environments",
    "layers",
    "models",
    "runs",
    "serving",
    "training",
]


def __getattr__(name: str) -> types.ModuleType:
    # Only serving needs TensorFlow, so it is imported when it is first used.
    if name == "serving":
        return importlib.import_module("keras_relational.serving")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
