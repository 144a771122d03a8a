"""How an attack is made and judged, over HTTP and over gRPC."""

import dataclasses
import time

import grpc

from fuzz import http_bytes

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


@dataclasses.dataclass(frozen=True)
class HttpAttack:
    """Bytes for the REST port, and what may come back.

    Attributes:
        steps: What to do in turn: bytes are sent, a float is a pause in
            seconds, `"listen"` waits for a reply that may or may not come,
            `"no more"` ends the sending half, `"reset"` and `"close"`
            the connection.
        expect: `"any"` reply, a `"refusal"`, the `"known"` answer, `"known or
            refusal"`, or `"closing"`: a reply that is no fault, or none.
        method: Of the request, which decides whether the reply has a body.
        also: Statuses of 500 and above that are right here.
    """

    steps: tuple
    expect: str = "any"
    method: str = "POST"
    also: tuple = ()

    def run(self, server, known, patience):
        """Attacks.

        Args:
            server: A `servers.Server`.
            known: The `known.Known` of its model.
            patience: Seconds until it counts as hanging.

        Returns:
            `(outcome, problem)`: a word for the tally, and what is wrong or
            `None`.
        """
        try:
            with http_bytes.Connection(server.rest, patience) as connection:
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

    Attributes:
        content: Bytes of the message.
        method: Such as `"/tensorflow.serving.PredictionService/Predict"`.
        expect: `"any"` answer, a `"refusal"`, or an `"empty"` answer: one
            without rows.
        exists: Whether there is such a method.
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
