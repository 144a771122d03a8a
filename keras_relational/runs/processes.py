"""The processes that train one model together, on one machine or on several.

`keras.distribution.initialize` joins them, and a distribution such as
`keras.distribution.DataParallel` shares each batch among them. Process 0 alone
reads and writes the folder of a run, so the others need no access to it.
"""

import json
from collections.abc import Callable
from typing import Any
from typing import TypeVar

import keras
import numpy as np

T = TypeVar("T")


def this_process() -> tuple[int, int]:
    """The number of this process, and how many train the model together."""
    is_distributed = keras.distribution.distribution() is not None
    if keras.backend.backend() != "jax" or not is_distributed:
        return 0, 1
    import jax

    return jax.process_index(), jax.process_count()


def is_first() -> bool:
    """Tells whether this is the process that writes: process 0."""
    return this_process()[0] == 0


def from_first(function: Callable[[], T]) -> T:
    """Calls a function in process 0, and gives its result to all processes.

    Every process must call this, and waits until it has the result, which JSON
    must be able to hold. If process 0 raises a `ValueError`, the others raise
    one with the same text. If it raises another error, theirs is a
    `RuntimeError`.
    """
    number, count = this_process()
    if count == 1:
        return function()
    answer: dict[str, Any] = {}
    error = None
    if number == 0:
        try:
            answer["result"] = function()
        except Exception as raised:
            error = raised
            kind = "ValueError" if isinstance(raised, ValueError) else "error"
            answer[kind] = str(raised) or repr(raised)
    content = np.frombuffer(json.dumps(answer).encode(), "uint8")
    size = int(array_from_first(np.array([content.size]))[0])
    content = array_from_first(np.resize(content, size))
    if error is not None:
        raise error
    answer = json.loads(content.tobytes())
    if "ValueError" in answer:
        raise ValueError(answer["ValueError"])
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["result"]


def array_from_first(array: np.ndarray) -> np.ndarray:
    """The array of process 0, in all processes.

    In each process it has the same shape and dtype.
    """
    if this_process()[1] == 1:
        return array
    from jax.experimental import multihost_utils

    # As bytes: JAX would round float64.
    content = np.frombuffer(array.tobytes(), "uint8")
    content = np.asarray(multihost_utils.broadcast_one_to_all(content))
    return np.frombuffer(content.tobytes(), array.dtype).reshape(array.shape)
