"""A stand-in for TensorFlow Serving, for development.

It speaks the real server's REST and gRPC, so that an export and its clients can
be tried where that server is not at hand. It does not batch requests across
clients or encrypt: serve users from the real one.
"""

import contextlib

from keras_relational.serving.grpc_services import grpc_server
from keras_relational.serving.served_model import ServedModel


class Server:
    """Where a running server is, and what it serves.

    Attributes:
        model_name: Name that requests call the model by.
        rest_url: Such as `"http://127.0.0.1:8501"`.
        grpc_address: Such as `"127.0.0.1:8500"`.
    """

    def __init__(self, model, rest_url, grpc_address):
        self._model = model
        self.model_name = model.name
        self.rest_url = rest_url
        self.grpc_address = grpc_address

    @property
    def version(self):
        """The version served now."""
        return self._model.version


@contextlib.contextmanager
def serve(
    model_dir,
    model_name="relations",
    rest_port=0,
    grpc_port=0,
    host="127.0.0.1",
):
    """Serves an exported model while a `with` block runs; for development.

    A stand-in for TensorFlow Serving, with its URLs, messages and status codes:

    - REST: `GET /v1/models/NAME[/versions/V]`, the same with `/metadata`, and
      `POST /v1/models/NAME[/versions/V]:predict` by row (`"instances"`) and by
      column (`"inputs"`).
    - gRPC: `PredictionService.Predict`, `PredictionService.GetModelMetadata`
      and `ModelService.GetModelStatus`.
    - Metrics for Prometheus: `GET /monitoring/prometheus/metrics`.

    Like the real server it serves the highest version only, after the warm-up
    requests of the export; any other is not found. It looks for versions every
    second: a new one takes over when it is loaded, and where the folder of the
    one served is gone, the highest of the others does. A version that does not
    load is named on stderr, once, and the next lower one is served.

    It refuses numbers outside an input's type, which the real server may wrap
    around, and tensors that declare more values than they hold, which the real
    server fills up with the last one.

    Args:
        model_dir: Folder with a folder for each version, as `export_model`
            writes it.
        model_name: Name that requests call the model by.
        rest_port: Port for REST; 0 picks a free one.
        grpc_port: Port for gRPC; 0 picks a free one.
        host: IPv4 address or name to listen on. The default is reached from
            this machine alone; there is no password on any other.

    Yields:
        `Server`, with `rest_url` and `grpc_address`.

    Raises:
        ImportError: If the extra `serving` is not installed.
        OSError: If a port is taken.
        ValueError: If there is no version to serve, or none that loads.

    Example:

    ```python
    with serving.serve("relations") as server:
        serving.predict_rest(server.rest_url, {"image": images})
    ```
    """
    try:
        # Clients and `export_model` do without what these import.
        from keras_relational.serving.http_server import rest_server
        from keras_relational.serving.metrics import Metrics
    except ImportError as error:
        raise ImportError(
            "Serving needs Tornado and Prometheus' client: pip install "
            f"'keras_relational[serving]'. Reason: {error}"
        ) from error
    model, metrics = ServedModel(model_dir, model_name), Metrics(model_name)
    with (
        rest_server(model, metrics, host, rest_port) as rest_port,
        grpc_server(model, metrics, host, grpc_port) as grpc_port,
        model.watched(),
    ):
        yield Server(model, f"http://{host}:{rest_port}", f"{host}:{grpc_port}")
