import importlib


def serving_api(name):
    """A module of `tensorflow_serving.apis`, the extra `serving`.

    Args:
        name: Name of the module, such as `"predict_pb2"`.

    Raises:
        ImportError: If `tensorflow-serving-api` is not installed.
    """
    try:
        return importlib.import_module(f"tensorflow_serving.apis.{name}")
    except ImportError as error:
        raise ImportError(
            "Exporting, serving and gRPC need the messages of TensorFlow "
            "Serving: pip install 'keras_relational[serving]', or "
            f"tensorflow-serving-api on its own. Reason: {error}"
        ) from error
