"""Arrays in JSON, for a page and back."""

import base64
import binascii
from typing import Any

import numpy as np

# The types that a page's arrays have, as JavaScript's typed arrays.
DTYPES = ("float32", "int32", "uint8")


def as_json(values: np.ndarray) -> dict[str, Any]:
    """An array as a dictionary for JSON, with its bytes in base64.

    Args:
        values: Array of one of `DTYPES`.

    Returns:
        Dictionary of `dtype`, `shape` and `bytes`.

    Example:

    >>> as_json(np.array([[0, 255]], "uint8"))
    {'dtype': 'uint8', 'shape': [1, 2], 'bytes': 'AP8='}
    """
    values = np.ascontiguousarray(values)
    return {
        "dtype": values.dtype.name,
        "shape": list(values.shape),
        "bytes": base64.b64encode(values.tobytes()).decode(),
    }


def from_json(sent: Any) -> np.ndarray:
    """The inverse of `as_json`.

    Raises:
        ValueError: If the value has another form.

    Example:

    >>> from_json({"dtype": "uint8", "shape": [1, 2], "bytes": "AP8="})
    array([[  0, 255]], dtype=uint8)
    """
    try:
        if sent["dtype"] not in DTYPES:
            raise ValueError(f"`dtype` must be one of {', '.join(DTYPES)}")
        data = base64.b64decode(sent["bytes"], validate=True)
        return np.frombuffer(data, sent["dtype"]).reshape(sent["shape"])
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise ValueError(
            "An array must be an object of `dtype`, `shape` and `bytes` in "
            f"base64 ({error}). Received: {sent!r:.100}"
        ) from error
