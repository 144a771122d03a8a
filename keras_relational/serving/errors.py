"""The errors that requests are refused with, those of `tf.errors`.

Their codes are those of gRPC: what TensorFlow Serving returns in the same case.
"""

import tensorflow as tf

# gRPC sends an explanation as a header, in up to three bytes for each of these;
# a client that is left as it is takes 8 KiB of headers.
_MAX_EXPLANATION_BYTES = 2000
_MAX_ECHO = 256


def invalid_argument(explanation):
    """A `tf.errors.InvalidArgumentError`, which needs no node of a graph."""
    return tf.errors.InvalidArgumentError(None, None, explanation)


def not_found(explanation):
    """A `tf.errors.NotFoundError`, which needs no node of a graph."""
    return tf.errors.NotFoundError(None, None, explanation)


def explanation_of(error):
    """What an error of a graph says, without the report around it."""
    lines = error.message.split("\n\t [[")[0].splitlines() or [str(error)]
    content = lines[-1].encode("utf-8", "backslashreplace")
    if len(content) <= _MAX_EXPLANATION_BYTES:
        return content.decode()
    return content[:_MAX_EXPLANATION_BYTES].decode("utf-8", "ignore") + "…"


def shortened(text):
    """A text as it is echoed to whoever sent it: 256 characters at most."""
    return text if len(text) <= _MAX_ECHO else text[: _MAX_ECHO - 1] + "…"


def quoted(value):
    """`repr(value)` as it is echoed: 256 characters at most."""
    return shortened(repr(value))
