"""How an attack is made and judged, over HTTP and over gRPC.

Requests over HTTP are written by hand, so that they can be wrong.
"""

import contextlib
import dataclasses
import http.client
import io
import json
import select
import socket
import struct
import sys
import time

import grpc

# An answer that repeats what was sent may not grow with it.
MAX_ERROR_BYTES = 16 * 2**10
_SECONDS_TO_LISTEN = 0.3

_REFUSALS = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)


class _Replies(io.BufferedReader):
    """What a server sends; `HTTPResponse` would close it after each reply."""

    def close(self):
        pass


class Connection:
    """A TCP connection on which all must end within `patience` seconds."""

    def __init__(self, address, patience):
        self._ends = time.monotonic() + patience
        self._socket = socket.create_connection(address, patience)
        self._replies = _Replies(socket.SocketIO(self._socket, "r"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, content):
        """Sends; a server that has refused already may have gone."""
        self._limit()
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(content)

    def listen(self, seconds):
        """Waits for the beginning of a reply, but not for long."""
        select.select([self._socket], [], [], seconds)

    def no_more(self):
        """Tells the server that nothing follows."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def reset(self):
        """Ends the connection in the way of a process that was killed."""
        linger = struct.pack("ii", 1, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._socket.close()

    def makefile(self, mode):
        """As a socket's, for `HTTPResponse`."""
        return self._replies

    def reply(self, method="POST"):
        """`(status, body)`, or `None` where the server has closed.

        A `ValueError` says that what comes is not HTTP.
        """
        try:
            self._limit()
            response = http.client.HTTPResponse(self, method=method)
            response.begin()
            self._limit()
            return response.status, response.read()
        except ConnectionError:
            return None
        except http.client.HTTPException as error:
            raise ValueError(f"no HTTP: {error!r}") from error

    def _limit(self):
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)


def request(method, url, body):
    """The bytes of a well-formed request, but for what is in `url`."""
    lines = [
        f"{method} {url} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "replace") + body


def predict_url(target):
    return f"/v1/models/{target.name}:predict"


def predict_body(target, **changed):
    """JSON of the known request, with some inputs replaced."""
    inputs = {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in {**target.inputs, **changed}.items()
    }
    return json.dumps({"inputs": inputs}).encode()


def known_request(target):
    """The bytes of the request whose answer is known."""
    return request("POST", predict_url(target), predict_body(target))


def classes_of(module, prefix):
    """The classes of attacks of a module: its public functions, by name."""
    return {
        f"{prefix}.{name}": function
        for name, function in vars(sys.modules[module]).items()
        if getattr(function, "__module__", None) == module
        and not name.startswith("_")
    }


@dataclasses.dataclass(frozen=True)
class HttpAttack:
    """Bytes for the REST port, and what may come back.

    Of the `steps` bytes are sent, a float is a pause in seconds, `"listen"`
    waits for a reply that may or may not come, `"no more"` ends the sending
    half, `"reset"` and `"close"` the connection. Expected is `"any"` reply, a
    `"refusal"`, the `"known"` answer, `"known or refusal"`, or `"closing"`: a
    reply that is no fault, or none. Statuses in `also` are right here.
    """

    steps: tuple
    expect: str = "any"
    method: str = "POST"
    also: tuple = ()

    def run(self, server, known, patience):
        """Attacks; returns a word for the tally, and the fault or `None`."""
        try:
            with Connection(server.rest, patience) as connection:
                return self._talk(connection, known)
        except TimeoutError:
            return "hang", f"no answer within {patience} s"
        except ConnectionRefusedError:
            return "refused connection", "nobody listens"
        except ConnectionError:
            # Without an answer, while sending.
            return self._judge([], known)
        except ValueError as error:
            # As to HTTP/0.9, which has no head.
            may = self.expect == "closing"
            return "no HTTP", None if may else str(error)

    def _talk(self, connection, known):
        for step in self.steps:
            if isinstance(step, bytes):
                connection.send(step)
            elif isinstance(step, float):
                time.sleep(step)
            elif step == "listen":
                connection.listen(_SECONDS_TO_LISTEN)
            elif step == "no more":
                connection.no_more()
            elif step == "reset":
                connection.reset()
                return "reset", None
            else:
                return "closed", None
        replies = []
        while reply := connection.reply(self.method):
            replies.append(reply)
            if self.method == "HEAD":
                break
            # Only now: some servers take it for the end of the connection.
            connection.no_more()
        return self._judge(replies, known)

    def _judge(self, replies, known):
        if not replies:
            wrong = self.expect in ("any", "known")
            problem = "closed without an answer" if wrong else None
            return "closed", problem
        problem = None
        for status, body in replies:
            problem = problem or self._problem(status, body, known)
        return f"HTTP {replies[0][0]}", problem

    def _problem(self, status, body, known):
        if status >= 500 and status not in self.also:
            return f"HTTP {status}: {body[:200]!r}"
        if status >= 400 and len(body) > MAX_ERROR_BYTES:
            return f"an error of {len(body):,} bytes, HTTP {status}"
        if status < 400 and self.expect == "refusal":
            return f"HTTP {status}, not refused: {body[:200]!r}"
        if self.expect.startswith("known"):
            if status == 200 and not known.is_rest_answer(body):
                return f"another answer: {body[:200]!r}"
            if status >= 400 and self.expect == "known":
                return f"HTTP {status} to a good request: {body[:200]!r}"
        return None


@dataclasses.dataclass(frozen=True)
class GrpcAttack:
    """A message for a method of gRPC, and what may come back.

    Expected is `"any"` answer, a `"refusal"`, or an `"empty"` answer: one
    without rows.
    """

    content: bytes
    method: str = "/tensorflow.serving.PredictionService/Predict"
    expect: str = "any"
    exists: bool = True

    def run(self, server, known, patience):
        """Attacks; as `HttpAttack.run`."""
        try:
            answer = known.call(self.method, self.content, patience)
        except grpc.RpcError as error:
            return error.code().name, self._problem(error)
        if self.expect == "refusal":
            return "OK", "not refused: OK"
        if self.expect == "empty" and (fault := known.not_empty(answer)):
            return "OK", fault
        return "OK", None

    def _problem(self, error):
        code, details = error.code(), error.details() or ""
        expected = _REFUSALS if self.exists else ()
        if code == grpc.StatusCode.UNIMPLEMENTED and not self.exists:
            expected = (code,)
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return "no answer in time"
        if code not in expected:
            return f"{code.name}: {details[:200]!r}"
        if len(details) > MAX_ERROR_BYTES:
            return f"an error of {len(details):,} characters, {code.name}"
        if self.expect == "empty":
            return f"an empty batch is refused: {details[:200]!r}"
        return None
