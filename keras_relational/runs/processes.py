"""The processes that train one model together, on one machine or on several.

`keras.distribution.initialize` joins them, and a distribution such as
`keras.distribution.DataParallel` shares each batch among them. Process 0 alone
reads and writes the folder of a run, so the others need no access to it.
"""

import pickle
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

    Every process must call this, and waits until it has the result. An error
    of process 0 is raised in all of them.
    """
    number, count = this_process()
    if count == 1:
        return function()
    answer: tuple[Any, Exception | None] = None, None
    if number == 0:
        try:
            answer = function(), None
        except Exception as error:
            answer = None, error
    content = np.frombuffer(pickle.dumps(answer), "uint8")
    size = int(_from_first(np.array(content.size)))
    content = _from_first(np.resize(content, size))
    # The bytes come from this training's own process 0.
    value, raised = pickle.loads(content.tobytes())  # noqa: S301
    if raised is not None:
        raise raised
    return value


def _from_first(array: np.ndarray) -> np.ndarray:
    """The array of process 0. In every process it has the same shape."""
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.broadcast_one_to_all(array))
