import equations
import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import WITHOUT_MASKS
from layer_contract import LayerContract
from layers_for_tests import RNNOfCell
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import assert_equals
from layers_for_tests import random_array
from layers_for_tests import with_random_weights

from keras_relational.layers import NTMCell

UNITS, ROWS, SIZE, FEATURES = 3, 4, 2, 5
SIZES = {"units": UNITS, "memory_size": ROWS, "memory_dim": SIZE}


@equations.each_example
def in_loops(weights, inputs, valid):
    """The equations in loops over steps and rows of the memory."""
    weights = equations.of_cell(weights)
    h, c, read = np.zeros(UNITS), np.zeros(UNITS), np.zeros(SIZE)
    memory = weights["initial_memory"]
    for x in inputs[valid]:
        gates = np.append(x, read) @ weights["kernel"]
        gates = gates + h @ weights["recurrent_kernel"] + weights["bias"]
        h, c = equations.lstm(gates, c)
        heads = h @ weights["head_kernel"] + weights["head_bias"]
        read_key, write_key, erase, add = np.split(np.maximum(heads, 0), 4)
        shares = equations.softmax([row @ read_key for row in memory])
        read = sum(w * row for w, row in zip(shares, memory, strict=True))
        shares = equations.softmax([row @ write_key for row in memory])
        memory = [
            row * (1 - w * erase) + w * add
            for w, row in zip(shares, memory, strict=True)
        ]
    return h


@keras.saving.register_keras_serializable("test_neural_turing_machine")
class NTM(RNNOfCell):
    cell_class = NTMCell


def random_ntm(**kwargs):
    layer = NTM(**SIZES, **kwargs)
    return with_random_weights(layer, (None, None, FEATURES), scale=0.7)


class NTMTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            NTM,
            checks=WITHOUT_MASKS,
            init_kwargs=SIZES,
            reference=in_loops,
            expected_output_shape=(2, UNITS),
            expected_num_trainable_weights=6,
        )


def test_padded_steps_change_nothing():
    mask = np.ones((3, 6), bool)
    mask[0, 2:] = mask[1, 0] = False
    assert_equals(random_ntm(), in_loops, random_array(3, 6, FEATURES), mask)


def test_large_memories_in_half_precision():
    """Sums of 256 large products overflow in float16."""
    cell = NTMCell(8, 3, 256, dtype="float16")
    cell.build((None, FEATURES))
    for weight in cell.weights:
        weight.assign(np.full(weight.shape, 3.0))
    states = cell.get_initial_state(2)
    states[3] = 20 * ops.ones_like(states[3])
    h, new = cell(random_array(2, FEATURES).astype("float16"), states)
    for values in (h, *new):
        assert np.isfinite(array(values)).all()


def test_sizes_of_section_4_3():
    rnn = keras.layers.RNN(NTMCell(512))
    rnn.build((None, None, 128))
    lstm = 4 * 512 * (128 + 256 + 512 + 1)
    assert rnn.count_params() == lstm + 4 * 256 * (512 + 1) + 10 * 256


def test_initial_weights_are_those_of_appendix_a1():
    keras.utils.set_random_seed(0)
    cell = NTMCell(512)
    cell.build((None, 128))
    weights = {weight.name: array(weight.value) for weight in cell.weights}
    deviations = {
        "kernel": np.sqrt(2 / (128 + 256 + 512)) * np.array([1, 1, 5 / 3, 1]),
        "recurrent_kernel": np.sqrt(1 / 512) * np.array([1, 1, 5 / 3, 1]),
        "head_kernel": np.sqrt(2 / 512) * np.ones(4),
        "initial_memory": np.sqrt(2 / (10 + 256)) * np.ones(1),
    }
    for name, expected in deviations.items():
        parts = np.split(weights.pop(name), len(expected), axis=1)
        for part, deviation in zip(parts, expected, strict=True):
            assert part.std() == pytest.approx(deviation, rel=0.05), name
            assert abs(part.mean()) < 0.1 * deviation
    assert set(weights) == {"bias", "head_bias"}
    for bias in weights.values():
        assert 0.98 / np.sqrt(512) < np.abs(bias).max() <= 1 / np.sqrt(512)


def test_the_order_of_the_rows_does_not_matter():
    rnn, inputs = random_ntm(), random_array(2, 5, FEATURES)
    before = array(rnn(inputs))
    memory = array(rnn.cell.initial_memory)
    rnn.cell.initial_memory.assign(memory[[2, 0, 3, 1]])
    assert_close(rnn(inputs), before)
    rnn.cell.initial_memory.assign(2 * memory)
    assert np.abs(array(rnn(inputs)) - before).max() > 1e-3


def test_scores_are_what_is_read_and_written_with():
    cell = with_random_weights(NTMCell(**SIZES), (None, FEATURES), scale=1)
    states = [random_array(2, size, seed=size) for size in cell.state_size]
    inputs = random_array(2, FEATURES)
    found = cell(inputs, states, return_attention_scores=True)
    h, new_states, scores = keras.tree.map_structure(array, found)
    np.testing.assert_array_equal(h, cell(inputs, states)[0])
    assert scores.shape == (2, 2, ROWS)
    np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-6)
    memory, new_memory = (
        x[3].reshape(2, ROWS, SIZE) for x in (states, new_states)
    )
    read, written = scores[:, 0], scores[:, 1]
    assert_close(
        np.einsum("bi,bid->bd", read, memory), new_states[2], atol=1e-5
    )
    heads = h @ array(cell.head_kernel)
    heads = np.maximum(heads + array(cell.head_bias), 0)
    erase, add = np.split(heads, 4, axis=-1)[2:]
    expected = memory * (1 - written[..., None] * erase[:, None])
    expected += written[..., None] * add[:, None]
    assert_close(new_memory, expected, atol=1e-5)
