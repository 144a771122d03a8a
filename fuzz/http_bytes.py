"""HTTP by hand, so that it can be wrong."""

import contextlib
import http.client
import json
import select
import socket
import struct
import time

MAX_REPLY = 64 * 2**20


class Connection:
    """A TCP connection on which everything must end within `patience`.

    Args:
        address: `(host, port)`.
        patience: Seconds that the server may take, all replies together.
    """

    def __init__(self, address, patience):
        self._ends = time.monotonic() + patience
        self._socket = socket.create_connection(address, patience)
        self._file = self._socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()
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
        self._file.close()
        self._socket.close()

    def reply(self, method="POST"):
        """`(status, body)`, or `None` where the server has closed.

        Raises:
            TimeoutError: If the server takes too long.
            ValueError: If what comes is not HTTP.
        """
        try:
            while True:
                self._limit()
                line = self._file.readline(2**16)
                if not line:
                    return None
                if not line.startswith(b"HTTP/1."):
                    raise ValueError(f"no HTTP: {line[:80]!r}")
                status = line.split(None, 2)[1]
                headers = http.client.parse_headers(self._file)
                if int(status) >= 200:
                    return int(status), self._body(method, status, headers)
        except ConnectionError:
            return None
        except http.client.HTTPException as error:
            raise ValueError(f"no HTTP: {error!r}") from error

    def _body(self, method, status, headers):
        if method == "HEAD" or status in (b"204", b"304"):
            return b""
        if headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b""
            while size := int(self._line().split(b";")[0], 16):
                body += self._read(size)
                self._line()
            while self._line().strip():
                pass
            return body
        if "Content-Length" in headers:
            return self._read(int(headers["Content-Length"]))
        return self._file.read(MAX_REPLY)

    def _line(self):
        self._limit()
        return self._file.readline(2**16)

    def _read(self, size):
        self._limit()
        content = self._file.read(size)
        if len(content) < size:
            raise ValueError(f"a reply of {len(content)} bytes, not {size}")
        return content

    def _limit(self):
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)


def request(method, url, body=b"", headers=()):
    """The bytes of a well-formed request, but for what is in `url`."""
    lines = [
        f"{method} {url} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
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
