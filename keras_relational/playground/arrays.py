"""Arrays in JSON, for a page to draw."""

import base64
from typing import Any

import numpy as np


def as_pixels(images: np.ndarray) -> dict[str, Any]:
    """Pixels as text: bytes in base64, and their shape.

    Args:
        images: uint8 array of pixels.

    Returns:
        Dictionary of `shape` and `bytes`.

    Example:

    >>> as_pixels(np.array([[0, 255]], "uint8"))
    {'shape': [1, 2], 'bytes': 'AP8='}
    """
    text = base64.b64encode(images.tobytes()).decode()
    return {"shape": list(images.shape), "bytes": text}


def from_pixels(sent: dict[str, Any]) -> np.ndarray:
    """The inverse of `as_pixels`.

    Example:

    >>> from_pixels({"shape": [1, 2], "bytes": "AP8="})
    array([[  0, 255]], dtype=uint8)
    """
    data = np.frombuffer(base64.b64decode(sent["bytes"]), "uint8")
    return data.reshape(sent["shape"])


def as_numbers(values: Any) -> list:
    """An array of floats as nested lists, with four digits after the point."""
    return np.round(np.asarray(values, "float64"), 4).tolist()


def integer(request: dict[str, Any], name: str, low: int, high: int) -> int:
    """Takes an integer out of a request.

    Args:
        request: Dictionary.
        name: Key of the integer.
        low: The smallest integer that is allowed.
        high: The largest one.

    Raises:
        ValueError: If the value is missing, no integer, or out of its range.
    """
    value = request.get(name)
    if type(value) is not int or not low <= value <= high:
        raise ValueError(
            f"`{name}` must be an integer from {low} to {high}. Received: "
            f"{value!r:.50}"
        )
    return value


def integers(
    request: dict[str, Any], name: str, length: int, high: int
) -> list[int]:
    """Takes a list of integers from 0 on out of a request.

    Args:
        request: Dictionary.
        name: Key of the list.
        length: The largest number of integers.
        high: The largest integer that is allowed.

    Raises:
        ValueError: If the value is missing, or no such list.
    """
    values = request.get(name)
    if (
        not isinstance(values, list)
        or len(values) > length
        or any(type(x) is not int or not 0 <= x <= high for x in values)
    ):
        raise ValueError(
            f"`{name}` must be a list of at most {length} integers from 0 to "
            f"{high}. Received: {values!r:.50}"
        )
    return values


def answer_as_text(answer: str, probability: float, right: str) -> str:
    """A model's answer beside the right one."""
    return (
        f"Its answer: {answer} (probability {probability:.3f}). Right: {right}."
    )
