"""Layers, tasks and trained reasoners for Keras models that reason."""

from keras_relational import datasets
from keras_relational import layers
from keras_relational import models
from keras_relational.version import __version__

__all__ = ["__version__", "datasets", "layers", "models"]
