"""Keras layers, tasks and models that reason about relations."""

import importlib

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


def __getattr__(name):
    # Serving is the one part that needs TensorFlow: not before it is used.
    if name == "serving":
        return importlib.import_module("keras_relational.serving")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
