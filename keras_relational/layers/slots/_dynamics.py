"""The GRUs or LSTMs that update slots. They compute what Keras' own compute.

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

    Args:
        cell: A `SlotCell`.
        number: Number of GRUs or LSTMs.
        axis: Axis along which their kernels are stacked: 0 for `(number, m,
            gates)`, 1 for `(m, number, gates)`.
    """
    gates = NUM_GATES[cell.dynamics] * cell.units

    def shape(rows):
        return (number, rows, gates) if axis == 0 else (rows, number, gates)

    add_weights(
        cell,
        cell.kernel_initializer,
        stacked(axis),
        kernel=shape(cell.num_heads * cell.value_dim),
    )
    add_weights(
        cell,
        cell.recurrent_initializer,
        stacked(axis),
        recurrent_kernel=shape(cell.units),
    )
    initializer = cell.bias_initializer
    if cell.dynamics == "lstm" and cell.unit_forget_bias:
        initializer = forget_gate_at_one(initializer, cell.units)
    # As in Keras, a GRU has two biases: one for inputs, one for the state.
    num_biases = 2 if cell.dynamics == "gru" else 1
    cell.bias = cell.add_weight(
        (num_biases, number, gates), initializer, name="bias"
    )


def update(
    cell: keras.layers.Layer,
    from_inputs: keras.KerasTensor,
    from_state: keras.KerasTensor,
    h: keras.KerasTensor,
    c: Sequence[keras.KerasTensor],
) -> list[keras.KerasTensor]:
    """One step of all GRUs or LSTMs of a cell.

    Args:
        cell: A `SlotCell`.
        from_inputs: Inputs times `kernel`, `(..., number, gates)`.
        from_state: h times `recurrent_kernel`, of the same shape.
        h: `(..., units)`.
        c: List of the LSTM's c `(..., units)`. For a GRU the list is empty.

    Returns:
        List of the new h and, for an LSTM, the new c.
    """
    activations = cell.activation, cell.recurrent_activation
    from_inputs = from_inputs + cell.bias[0]
    if cell.dynamics == "gru":
        return gru(from_inputs, from_state + cell.bias[1], h, *activations)
    return lstm(from_inputs + from_state, c[0], *activations)


def gru(
    from_inputs: keras.KerasTensor,
    from_state: keras.KerasTensor,
    h: keras.KerasTensor,
    activation: Callable,
    recurrent_activation: Callable,
) -> list[keras.KerasTensor]:
    """`h ← z h + (1 − z) tanh(W x + r (U h))`, gates in the order z, r, new."""
    x_z, x_r, x_new = ops.split(from_inputs, 3, axis=-1)
    h_z, h_r, h_new = ops.split(from_state, 3, axis=-1)
    z = recurrent_activation(x_z + h_z)
    r = recurrent_activation(x_r + h_r)
    return [z * h + (1 - z) * activation(x_new + r * h_new)]


def lstm(
    gates: keras.KerasTensor,
    c: keras.KerasTensor,
    activation: Callable,
    recurrent_activation: Callable,
) -> list[keras.KerasTensor]:
    """`c ← σ(f) c + σ(i) tanh(new)`, `h = σ(o) tanh(c)`; gates i, f, new, o."""
    i, f, new, o = ops.split(gates, 4, axis=-1)
    c = recurrent_activation(f) * c + recurrent_activation(i) * activation(new)
    return [recurrent_activation(o) * activation(c), c]
