"""A stand-in for TensorFlow Serving, for development.

It speaks the real server's REST and gRPC, so that an export and its clients can
be tried where that server is not at hand. It does not batch requests across
clients, watch for new versions or encrypt: serve users from the real one.
"""

import concurrent.futures
import contextlib
import dataclasses
import http.server
import json
import socket
import sys
import threading
import traceback

import grpc

from keras_relational.serving import rest
from keras_relational.serving.grpc_services import service_handlers
from keras_relational.serving.servable import MAX_REQUEST_BYTES
from keras_relational.serving.servable import Servable

_SECONDS_TO_FINISH = 5


@dataclasses.dataclass(frozen=True)
class Server:
    """Where a running server is.

    Attributes:
        model_name: Name that requests call the model by.
        version: The version served.
        rest_url: Such as `"http://127.0.0.1:8501"`.
        grpc_address: Such as `"127.0.0.1:8500"`.
    """

    model_name: str
    version: int
    rest_url: str
    grpc_address: str


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

    Like the real server it serves the highest version only; any other is not
    found. It runs the export's warm-up requests first, and refuses numbers
    outside an input's type, which the real server may wrap around instead.

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
        ValueError: If there is no version to serve.

    Example:

    ```python
    with serving.serve("relations") as server:
        serving.predict_rest(server.rest_url, {"image": images})
    ```
    """
    servable = Servable(model_dir, model_name)
    with _rest_server(servable, host, rest_port) as rest_port:
        with _grpc_server(servable, host, grpc_port) as grpc_port:
            yield Server(
                model_name,
                servable.version,
                f"http://{host}:{rest_port}",
                f"{host}:{grpc_port}",
            )


@contextlib.contextmanager
def _rest_server(servable, host, port):
    try:
        server = _RestServer((host, port), _RestHandler)
    except OSError as error:
        raise OSError(
            error.errno,
            f"REST cannot listen on {host}:{port}: {error.strerror}",
        ) from error
    server.servable = servable
    thread = threading.Thread(target=server.serve_forever, args=(0.1,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def _grpc_server(servable, host, port):
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(max_workers=8),
        handlers=service_handlers(servable),
        options=[
            ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
            ("grpc.max_send_message_length", -1),
            # Otherwise two servers may share a port unawares.
            ("grpc.so_reuseport", 0),
        ],
    )
    try:
        port = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise OSError(
            f"gRPC cannot listen on {host}:{port}: {error}"
        ) from error
    server.start()
    try:
        yield port
    finally:
        server.stop(_SECONDS_TO_FINISH).wait()


class _RestServer(http.server.ThreadingHTTPServer):
    # Closing waits for the answers under way, but not for idle connections.
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, *args):
        self._connections = set()
        super().__init__(*args)

    def process_request(self, request, client_address):
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        # A client that went away needs no answer, and no report.
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def server_close(self):
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        super().server_close()


class _RestHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30  # Seconds that a connection may be silent.

    def do_GET(self):
        body = self._body()
        if body is None:
            return
        try:
            status, reply = rest.answer(
                self.server.servable, self.command, self.path, body
            )
        except Exception:
            # A fault of this server's own; the next request may be another.
            traceback.print_exc()
            status, reply = 500, {"error": "Internal error, see the log"}
        self._send(status, reply)

    def send_error(self, code, message=None, explain=None):
        """What http.server refuses by itself is refused in JSON too."""
        self._refuse(code, message or http.HTTPStatus(code).phrase)

    def log_message(self, *args):
        """Requests are not logged."""

    def _body(self):
        """The request's body, or `None` where it was refused."""
        if "Transfer-Encoding" in self.headers:
            return self._refuse(411, "Send the body whole, with Content-Length")
        length = self.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdigit()):
            return self._refuse(
                400,
                "Content-Length must be a number of bytes. Received: "
                f"{length!r}",
            )
        if len(length) > 18 or int(length) > MAX_REQUEST_BYTES:
            return self._refuse(
                413,
                f"The body has {length} bytes, and at most {MAX_REQUEST_BYTES} "
                "are taken. Send fewer examples at a time",
            )
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return self._refuse(
                400,
                f"The body ended after {len(body)} bytes; Content-Length "
                f"promised {length}",
            )
        return body

    def _refuse(self, status, explanation):
        """Answers a request whose body stays unread, and closes."""
        self.close_connection = True
        self._send(status, {"error": explanation})
        # Read on for a while: to close now would take the answer away from a
        # client that only looks for one when it has sent everything.
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(_SECONDS_TO_FINISH)
        unread = 4 * MAX_REQUEST_BYTES
        while unread > 0 and (chunk := self.rfile.read1(2**16)):
            unread -= len(chunk)

    def _send(self, status, reply):
        content = json.dumps(reply, indent=2).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
            self.wfile.flush()


# The real server answers every method, if only that it is malformed.
for _method in ("POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
    setattr(_RestHandler, f"do_{_method}", _RestHandler.do_GET)
