"""Errors for requests that the server refuses.

They are errors of `tf.errors`. Their codes are gRPC's, and TensorFlow Serving
returns the same code in the same case.
"""

import grpc
import tensorflow as tf

STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}

# gRPC sends an explanation as a header, and may need three bytes for each byte
# of it. By default a client accepts 8 KiB of headers.
_MAX_EXPLANATION_BYTES = 2000
_MAX_ECHO = 256

BUSY = (
    "The server is at work on other large requests. Try again, or send fewer "
    "examples at a time"
)


def invalid_argument(explanation: str) -> tf.errors.InvalidArgumentError:
    """A `tf.errors.InvalidArgumentError` that is not tied to a graph."""
    return tf.errors.InvalidArgumentError(None, None, explanation)


def not_found(explanation: str) -> tf.errors.NotFoundError:
    """A `tf.errors.NotFoundError` that is not tied to a graph."""
    return tf.errors.NotFoundError(None, None, explanation)


def explanation_of(error: tf.errors.OpError) -> str:
    """The message of an error, without TensorFlow's report on the graph.

    It has at most 2,000 bytes, and an ellipsis if it was longer.
    """
    lines = error.message.split("\n\t [[")[0].splitlines() or [str(error)]
    content = lines[-1].encode("utf-8", "backslashreplace")
    if len(content) <= _MAX_EXPLANATION_BYTES:
        return content.decode()
    return content[:_MAX_EXPLANATION_BYTES].decode("utf-8", "ignore") + "…"


def shortened(text: str) -> str:
    """A text from a request, shortened to 256 characters for an answer."""
    return text if len(text) <= _MAX_ECHO else text[: _MAX_ECHO - 1] + "…"


def quoted(value: object) -> str:
    """`repr(value)`, shortened to 256 characters for an answer."""
    return shortened(repr(value))
