"""A stand-in for TensorFlow Serving, for development.

It has TensorFlow Serving's REST and gRPC interfaces, so that an export and its
clients can be tried without that server. It does not combine the requests of
several clients into batches, and it does not encrypt. For users, run TensorFlow
Serving.
"""

import contextlib
import os
from collections.abc import Iterator

from keras_relational.serving.grpc_services import grpc_server
from keras_relational.serving.served_model import ServedModel
from keras_relational.validation import needs_extra


class Server:
    """Addresses of a running server, and the model that it serves.

    Attributes:
        model_name: Name of the model in requests.
        rest_url: URL for REST, such as `"http://127.0.0.1:8501"`.
        grpc_address: Address for gRPC, such as `"127.0.0.1:8500"`.
    """

    def __init__(
        self, model: ServedModel, rest_url: str, grpc_address: str
    ) -> None:
        self._model = model
        self.model_name = model.name
        self.rest_url = rest_url
        self.grpc_address = grpc_address

    @property
    def version(self) -> int:
        """The version that is served now."""
        return self._model.version


@contextlib.contextmanager
def serve(
    model_dir: str | os.PathLike,
    model_name: str = "relations",
    rest_port: int = 0,
    grpc_port: int = 0,
    host: str = "127.0.0.1",
) -> Iterator[Server]:
    """Serves an exported model while a `with` block runs, for development.

    The server has TensorFlow Serving's URLs, messages and status codes:

    - REST: `GET /v1/models/NAME[/versions/V]`, the same with `/metadata`, and
      `POST /v1/models/NAME[/versions/V]:predict` by row (`"instances"`) and by
      column (`"inputs"`).
    - gRPC: `PredictionService.Predict`, `PredictionService.GetModelMetadata`
      and `ModelService.GetModelStatus`.
    - Metrics for Prometheus: `GET /monitoring/prometheus/metrics`.

    Like TensorFlow Serving, it serves only the highest version, after the
    warm-up requests of the export. A request for another version is answered
    with "not found". The server looks for versions every second. A new version
    takes over when it is loaded. If the folder of the served version is
    removed, the highest of the remaining versions takes over. If a version does
    not load, the server says so on stderr, once, and serves the next lower one.

    It refuses two things that TensorFlow Serving accepts: numbers outside the
    range of an input's type, which TensorFlow Serving may wrap around; and
    tensors that declare more values than they contain, which TensorFlow Serving
    completes with the last value.

    Args:
        model_dir: Folder that `export_model` wrote, with a folder for each
            version.
        model_name: Name of the model in requests.
        rest_port: Port for REST. 0 picks a free port.
        grpc_port: Port for gRPC. 0 picks a free port.
        host: IPv4 address or name to listen on. Only this machine can reach the
            default. Any other address opens the server, which has no password,
            to other machines.

    Yields:
        `Server`, with `rest_url` and `grpc_address`.

    Raises:
        ImportError: If the extra `serving` is not installed.
        OSError: If a port is taken.
        ValueError: If the folder has no version, or no version that loads.

    Example:

    ```python
    with serving.serve("relations") as server:
        serving.predict_rest(server.rest_url, {"image": images})
    ```
    """
    # These files import packages that clients and exports do not need.
    with needs_extra("serving", "Servers"):
        from keras_relational.serving.http_server import rest_server
        from keras_relational.serving.metrics import Metrics
    model, metrics = ServedModel(model_dir, model_name), Metrics(model_name)
    with (
        rest_server(model, metrics, host, rest_port) as rest_port,
        grpc_server(model, metrics, host, grpc_port) as grpc_port,
        model.watched(),
    ):
        yield Server(model, f"http://{host}:{rest_port}", f"{host}:{grpc_port}")
