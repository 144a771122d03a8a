"""The messages of TensorFlow Serving, which an extra installs."""

import importlib
import types


def serving_api(name: str) -> types.ModuleType:
    """A module of `tensorflow_serving.apis`, such as `"predict_pb2"`."""
    try:
        return importlib.import_module(f"tensorflow_serving.apis.{name}")
    except ImportError as error:
        raise ImportError(
            "Exporting, serving and gRPC need the messages of TensorFlow "
            "Serving: pip install 'keras_relational[serving]', or "
            f"tensorflow-serving-api on its own. Reason: {error}"
        ) from error
