"""The messages of TensorFlow Serving, which an extra installs."""

import importlib
import types

from keras_relational.validation import needs_extra


def serving_api(name: str) -> types.ModuleType:
    """A module of `tensorflow_serving.apis`, such as `"predict_pb2"`."""
    with needs_extra("serving", "Exports, servers and gRPC"):
        return importlib.import_module(f"tensorflow_serving.apis.{name}")
