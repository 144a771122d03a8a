"""An HTTP server for the REST interface, built on Tornado."""

import asyncio
import concurrent.futures
import contextlib
import http
import json
import socket
import threading
import time
import traceback
from collections.abc import Iterator

from tornado import httpserver
from tornado import httputil
from tornado import iostream

from keras_relational.serving import rest
from keras_relational.serving.errors import BUSY
from keras_relational.serving.metrics import Metrics
from keras_relational.serving.served_model import ServedModel

# A client's deadlines in seconds: to send the head of a request, which also
# limits how long a connection may be idle; to send the body; and to receive the
# answer. SECONDS_TO_FINISH is for answers under way when the server stops.
SECONDS_FOR_HEAD = 5
SECONDS_FOR_BODY = 10
SECONDS_FOR_ANSWER = 30
SECONDS_TO_FINISH = 5

MAX_CONNECTIONS = 256
# Python lists take up to 20 times the memory of their JSON text.
MAX_BODY_BYTES = 16 * 2**20
# All bodies together, also the parts of bodies that have arrived so far.
MAX_HELD_BYTES = 4 * MAX_BODY_BYTES
# A client may look for an answer only after it has sent everything. The server
# therefore reads an oversized body to its end, up to this size.
_MAX_DRAINED_BYTES = 16 * MAX_BODY_BYTES
_MAX_BUFFERED_BYTES = 2**20


@contextlib.contextmanager
def rest_server(
    model: ServedModel, metrics: Metrics, host: str, port: int
) -> Iterator[int]:
    """Answers over HTTP while a `with` block runs, and yields the port.

    Port 0 picks a free one. An `OSError` names a port that is taken.
    """
    try:
        listener = socket.create_server((host, port), backlog=128)
    except OSError as error:
        raise OSError(
            error.errno,
            f"REST cannot listen on {host}:{port}: {error.strerror}",
        ) from error
    listener.setblocking(False)
    with listener, concurrent.futures.ThreadPoolExecutor(8) as workers:
        server = _HttpServer(
            decompress_request=True,
            idle_connection_timeout=SECONDS_FOR_HEAD,
            body_timeout=SECONDS_FOR_BODY,
            max_body_size=_MAX_DRAINED_BYTES,
            answer=lambda *request: _answer(model, metrics, *request),
            workers=workers,
        )
        started = threading.Event()
        thread = threading.Thread(
            target=lambda: asyncio.run(server.run(listener, started))
        )
        thread.start()
        started.wait()
        try:
            yield listener.getsockname()[1]
        finally:
            server.stop_soon()
            thread.join()


def _answer(model, metrics, method, url, body):
    try:
        return rest.answer(model, metrics, method, url, body)
    except Exception:
        # This is the server's own fault. The next request may work.
        traceback.print_exc()
        return 500, *_error("Internal error, see the log")


def _error(explanation):
    content = json.dumps({"error": explanation}).encode()
    return "application/json", content


class _HttpServer(httpserver.HTTPServer):
    """Gives requests to worker threads, so that the event loop never waits."""

    def initialize(self, answer, workers, **kwargs):
        super().initialize(self.start_request, **kwargs)
        self._answer = answer
        self._workers = workers
        self._num_connections = 0
        self._held_bytes = 0
        self._under_way = set()

    async def run(self, listener, started):
        """Serves until `stop_soon` is called."""
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        accepting = asyncio.create_task(self._accept(listener))
        started.set()
        await self._stopped.wait()
        accepting.cancel()
        listener.close()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=SECONDS_TO_FINISH)
        await self.close_all_connections()

    def stop_soon(self):
        self._loop.call_soon_threadsafe(self._stopped.set)

    async def _accept(self, listener):
        while True:
            try:
                connection, address = await self._loop.sock_accept(listener)
            except OSError:
                # No file descriptor is free. Without a pause the next attempt
                # would fail at once.
                await asyncio.sleep(0.1)
                continue
            if self._num_connections >= MAX_CONNECTIONS:
                connection.close()
                continue
            stream = iostream.IOStream(
                connection, max_buffer_size=_MAX_BUFFERED_BYTES
            )
            self._num_connections += 1
            self.handle_stream(stream, address)

    def start_request(self, server_conn, request_conn):
        return _Request(self, request_conn)

    def on_close(self, server_conn):
        self._num_connections -= 1
        super().on_close(server_conn)

    def hold(self, num_bytes):
        """Reserves memory for a part of a body, if there is room."""
        if self._held_bytes + num_bytes > MAX_HELD_BYTES:
            return False
        self._held_bytes += num_bytes
        return True

    def release(self, num_bytes):
        self._held_bytes -= num_bytes

    def answer_soon(self, request):
        task = asyncio.create_task(request.answer(self._answer, self._workers))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)


class _Request(httputil.HTTPMessageDelegate):
    """One HTTP request, from its head to its answer."""

    def __init__(self, server, connection):
        self._server = server
        self._connection = connection
        self._body = bytearray()
        self._refused = False

    def headers_received(self, start_line, headers):
        self._method, self._url = start_line.method, start_line.path
        length = headers.get("Content-Length", "")
        # Tornado itself refuses a length that is not a number, or larger.
        if length.isascii() and length.isdigit() and len(length) < 18:
            if MAX_BODY_BYTES < int(length) <= _MAX_DRAINED_BYTES:
                self._refuse_size()

    def data_received(self, chunk):
        if self._refused:
            return
        if len(self._body) + len(chunk) > MAX_BODY_BYTES:
            self._refuse_size()
        elif self._server.hold(len(chunk)):
            self._body += chunk
        else:
            self._refuse(503, BUSY)

    def finish(self):
        if self._refused:
            self._connection.finish()
        else:
            self._server.answer_soon(self)

    def on_connection_close(self):
        self._release()

    async def answer(self, answer, workers):
        """Answers the complete request, and waits until the answer is sent."""
        loop = asyncio.get_running_loop()
        try:
            reply = await loop.run_in_executor(
                workers, answer, self._method, self._url, self._body
            )
        finally:
            self._release()
        written = self._write(*reply)
        self._connection.set_close_callback(written.cancel)
        self._connection.finish()
        done, _ = await asyncio.wait([written], timeout=SECONDS_FOR_ANSWER)
        if not done:
            self._connection.close()

    def _refuse_size(self):
        self._refuse(
            413,
            "The body is too large. The server accepts at most "
            f"{MAX_BODY_BYTES} bytes. Send fewer examples at a time, or use "
            "gRPC",
        )

    def _refuse(self, status, explanation):
        """Answers at once, and ignores the rest of the body."""
        self._refused = True
        self._release()
        self._write(status, *_error(explanation), {"Connection": "close"})

    def _release(self):
        self._server.release(len(self._body))
        self._body = bytearray()

    def _write(self, status, content_type, content, headers=()):
        reason = http.HTTPStatus(status).phrase
        headers = httputil.HTTPHeaders(
            {
                "Content-Type": content_type,
                "Content-Length": str(len(content)),
                "Date": httputil.format_timestamp(time.time()),
                **dict(headers),
            }
        )
        return self._connection.write_headers(
            httputil.ResponseStartLine("HTTP/1.1", status, reason),
            headers,
            None if self._method == "HEAD" else content,
        )
