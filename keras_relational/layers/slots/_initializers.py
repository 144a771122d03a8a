"""Initial values of the kernels of slots.

`stacked` and `scaled` return a function that `add_weights` takes as `clone`.
The function takes an initializer and the number of a weight, and returns the
initializer of that weight.
"""

from collections.abc import Callable

import numpy as np
from keras import ops

from keras_relational.layers._initial_weights import clone_initializer

# Initial scale of the kernel that adds messages to a slot's state. Messages are
# not bounded. With a kernel of full size the h of a GRU would grow with every
# step.
MESSAGE_SCALE = 0.01


def stacked(axis: int) -> Callable:
    """Draws the matrices of a kernel one by one and stacks them along an axis.

    Each matrix is drawn as a separate kernel, and all differ, even if the
    initializer has a seed. They are drawn in float32, because the orthogonal
    initializer needs it.
    """

    def draws(initializer, weight_number):
        def initial_values(shape, dtype):
            own_shape = (*shape[:axis], *shape[axis + 1 :])
            parts = [
                clone_initializer(initializer, weight_number, number)(
                    own_shape, "float32"
                )
                for number in range(shape[axis])
            ]
            return ops.cast(ops.stack(parts, axis), dtype)

        return initial_values

    return draws


def scaled(factor: float, draws: Callable = clone_initializer) -> Callable:
    """Multiplies the initial values that `draws` gives by a factor."""

    def scaled_draws(initializer, weight_number):
        own = draws(initializer, weight_number)

        def initial_values(shape, dtype):
            return ops.cast(factor * own(shape, "float32"), dtype)

        return initial_values

    return scaled_draws


def forget_gate_at_one(units: int) -> Callable:
    """Initializer of an LSTM's bias `(..., 4 * units)`: forget gate at 1."""

    def initial_values(shape, dtype=None):
        bias = np.zeros(shape, "float32")
        bias[..., units : 2 * units] = 1
        return ops.cast(bias, dtype)

    return initial_values
