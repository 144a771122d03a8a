import equations
import keras
import numpy as np
import pytest
from layer_contract import WITHOUT_MASKS
from layer_contract import LayerContract
from layers_for_tests import RNNOfCell
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import random_array
from layers_for_tests import with_random_weights

from keras_relational.layers import RelationalMemoryCell

UNITS, SLOTS, HEADS, FEATURES = 4, 3, 2, 5
SIZES = {
    "units": UNITS,
    "num_slots": SLOTS,
    "num_heads": HEADS,
    "key_dim": 3,
}


@equations.each_example
def in_loops(weights, inputs, valid):
    """One step and one row of the memory after the other."""
    memory = np.eye(SLOTS, UNITS)
    for x in inputs:
        memory = one_step(equations.of_cell(weights), memory, x)
    return memory.ravel()


def one_step(weights, memory, x):
    def dense(name, x):
        outputs = x @ weights[f"{name}/kernel"]
        return outputs + weights.get(f"{name}/bias", 0)

    x = dense("embedding", x)
    everything = np.vstack([memory, x])
    keys, values = dense("key", everything), dense("value", everything)
    rows = []
    for row in memory:
        new = row + equations.attend(dense("query", row), keys, values, HEADS)
        new = equations.normalized(new, weights, "attention_norm")
        new = new + equations.feedforward(new, weights, "hidden", "transformed")
        new = equations.normalized(new, weights, "norm")
        gates = dense("input_gates", x) + dense("memory_gates", np.tanh(row))
        rows.append(equations.gated(gates, new, row))
    return np.stack(rows)


@keras.saving.register_keras_serializable("test_relational_memory")
class RelationalMemory(RNNOfCell):
    cell_class = RelationalMemoryCell


def random_memory():
    return with_random_weights(RelationalMemory(**SIZES), (2, 4, FEATURES))


class RelationalMemoryTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            RelationalMemory,
            checks=WITHOUT_MASKS,
            init_kwargs=SIZES,
            reference=in_loops,
            expected_output_shape=(2, SLOTS * UNITS),
            expected_num_trainable_weights=16,
        )


def test_rows_are_exchangeable():
    rnn, inputs = random_memory(), random_array(2, 5, FEATURES)
    memory = random_array(2, SLOTS, UNITS)
    order = [2, 0, 1]
    outputs, permuted = (
        array(rnn(inputs, initial_state=[x.reshape(2, -1)])).reshape(
            2, SLOTS, UNITS
        )
        for x in (memory, memory[:, order])
    )
    assert_close(permuted, outputs[:, order])


def test_attention_scores():
    rnn, x = random_memory(), random_array(2, FEATURES)
    memory = rnn.cell.get_initial_state(2)
    outputs, (state,), scores = rnn.cell(
        x, memory, return_attention_scores=True
    )
    np.testing.assert_array_equal(outputs, state)
    assert scores.shape == (2, HEADS, SLOTS, SLOTS + 1)
    np.testing.assert_allclose(array(scores).sum(-1), 1, atol=1e-6)


def test_keys_are_as_large_as_values_by_default():
    assert RelationalMemoryCell(8, 3, 2).key_dim == 4
