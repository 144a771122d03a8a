"""The GRUs or LSTMs that update slots, with the equations of Keras' own.

A cell has several of them: the schemata of SCOFF, or the modules of RIMs. Their
weights are stacked along one axis of a kernel.
"""

from collections.abc import Callable
from collections.abc import Sequence

import keras
from keras import ops

from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers.slots._initializers import forget_gate_at_one
from keras_relational.layers.slots._initializers import stacked

NUM_GATES = {"gru": 3, "lstm": 4}


def add_dynamics(cell: keras.layers.Layer, number: int, axis: int) -> None:
    """Adds `kernel`, `recurrent_kernel` and `bias` of several GRUs or LSTMs.

    Their kernels are stacked along `axis`: 0 for `(number, m, gates)`, 1 for
    `(m, number, gates)`.
    """
    gates = NUM_GATES[cell.dynamics] * cell.units

    def shape(rows):
        return (number, rows, gates) if axis == 0 else (rows, number, gates)

    add_weights(
        cell,
        cell._kernel_initializer,
        stacked(axis),
        kernel=shape(cell.num_heads * cell.value_dim),
    )
    add_weights(
        cell,
        cell._recurrent_initializer,
        stacked(axis),
        recurrent_kernel=shape(cell.units),
    )
    is_gru = cell.dynamics == "gru"
    cell.bias = cell.add_weight(
        # As in Keras, a GRU has two biases: one for inputs, one for the state.
        (2 if is_gru else 1, number, gates),
        "zeros" if is_gru else forget_gate_at_one(cell.units),
        name="bias",
    )


def update(
    cell: keras.layers.Layer,
    from_inputs: keras.KerasTensor,
    from_state: keras.KerasTensor,
    h: keras.KerasTensor,
    c: Sequence[keras.KerasTensor],
) -> list[keras.KerasTensor]:
    """The new h and, for LSTMs, the new c, of all GRUs or LSTMs of a cell.

    `from_inputs` and `from_state` are `(..., number, gates)`: the inputs times
    `kernel`, and h times `recurrent_kernel`.
    """
    from_inputs = from_inputs + cell.bias[0]
    if cell.dynamics == "gru":
        return gru(from_inputs, from_state + cell.bias[1], h)
    return lstm(from_inputs + from_state, c[0])


def gru(
    from_inputs: keras.KerasTensor,
    from_state: keras.KerasTensor,
    h: keras.KerasTensor,
) -> list[keras.KerasTensor]:
    """`h ← z h + (1 − z) tanh(W x + r (U h))`, gates in the order z, r, new."""
    x_z, x_r, x_new = ops.split(from_inputs, 3, axis=-1)
    h_z, h_r, h_new = ops.split(from_state, 3, axis=-1)
    z = keras.activations.sigmoid(x_z + h_z)
    r = keras.activations.sigmoid(x_r + h_r)
    return [z * h + (1 - z) * ops.tanh(x_new + r * h_new)]


def joined_gru(
    cell: keras.layers.GRUCell, value_kernel: keras.KerasTensor
) -> Callable:
    """A function `(x, h) → h` of a GRU, with one product for x and h.

    The inputs of the GRU are `x value_kernel`. The kernels are joined here, so
    once for all steps. The product has z, r, and for the new state the part
    from x and that from h, which r multiplies: there the other kernel is zero.
    """
    kernel = ops.matmul(value_kernel, cell.kernel)
    ends = [2 * cell.units]
    w, w_new = ops.split(kernel, ends, axis=1)
    u, u_new = ops.split(cell.recurrent_kernel, ends, axis=1)
    b, b_new = ops.split(cell.bias, ends, axis=1)
    from_x = ops.concatenate([w, w_new, ops.zeros_like(w_new)], axis=1)
    from_h = ops.concatenate([u, ops.zeros_like(u_new), u_new], axis=1)
    joined = ops.concatenate([from_x, from_h], axis=0)
    biases = ops.concatenate([b[0] + b[1], b_new[0], b_new[1]], axis=0)

    def step(x, h):
        product = ops.matmul(ops.concatenate([x, h], axis=-1), joined) + biases
        z, r, x_new, h_new = ops.split(product, 4, axis=-1)
        z, r = keras.activations.sigmoid(z), keras.activations.sigmoid(r)
        return z * h + (1 - z) * ops.tanh(x_new + r * h_new)

    return step


def lstm(
    gates: keras.KerasTensor, c: keras.KerasTensor
) -> list[keras.KerasTensor]:
    """`c ← σ(f) c + σ(i) tanh(new)`, `h = σ(o) tanh(c)`; gates i, f, new, o."""
    i, f, new, o = ops.split(gates, 4, axis=-1)
    sigmoid = keras.activations.sigmoid
    c = sigmoid(f) * c + sigmoid(i) * ops.tanh(new)
    return [sigmoid(o) * ops.tanh(c), c]
