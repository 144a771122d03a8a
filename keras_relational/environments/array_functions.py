"""NumPy's functions for arrays, Keras' for tensors, under the same names.

The rules of the worlds are written once. Compiled, they work on tensors, many
episodes at a time. To call a compiled function takes a millisecond, which is
long for one step of one episode. The same rules on NumPy's arrays take about a
microsecond an operation.
"""

from typing import Any

import numpy as np
from keras import ops


class _NumPy:
    """Functions of `keras.ops` for NumPy's arrays."""

    concatenate = staticmethod(np.concatenate)
    full_like = staticmethod(np.full_like)
    maximum = staticmethod(np.maximum)
    reshape = staticmethod(np.reshape)
    bitwise_and = staticmethod(np.bitwise_and)
    stack = staticmethod(np.stack)
    sum = staticmethod(np.sum)
    where = staticmethod(np.where)
    zeros_like = staticmethod(np.zeros_like)

    @staticmethod
    def cast(x, dtype):
        return x.astype(dtype, copy=False)

    @staticmethod
    def take(x, indices, axis=None):
        return x.take(indices, axis)

    @staticmethod
    def take_along_axis(x, indices, axis):
        if x.ndim != 2 or axis != 1:
            return np.take_along_axis(x, indices, axis)
        return x[np.arange(len(x))[:, None], indices]


def functions_for(x: Any) -> Any:
    """`keras.ops` for a tensor; for an array the same functions from NumPy.

    Only those that the rules of the worlds use are there.
    """
    return _NumPy if isinstance(x, np.ndarray) else ops
