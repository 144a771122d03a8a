"""What all RNN cells do when they are called without an RNN."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_relational import layers

CELLS = {
    "scoff": lambda: layers.SCOFFCell(4, 2, 3, num_active=1),
    "scoff, lstm": lambda: layers.SCOFFCell(4, 2, 3, dynamics="lstm"),
    "rims": lambda: layers.RIMsCell(4, 3, 2),
    "relational memory": lambda: layers.RelationalMemoryCell(4, 3, 2),
    "ntm": lambda: layers.NTMCell(4, 3, 2),
    "lstm": lambda: layers.LayerNormLSTMCell(4),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_built_when_it_is_called(name):
    cell = CELLS[name]()
    inputs = np.random.default_rng(0).normal(size=(2, 5)).astype("float32")
    sizes = keras.tree.flatten(cell.state_size)
    states = [np.ones((2, size), "float32") for size in sizes]
    outputs, new = cell(inputs, states)[:2]
    rnn = keras.layers.RNN(cell)
    np.testing.assert_allclose(
        rnn(inputs[:, None], initial_state=states), outputs, atol=1e-6
    )
    for one, size in zip(keras.tree.flatten(new), sizes, strict=True):
        assert one.shape == (2, size)


@pytest.mark.parametrize("name", ["scoff", "ntm"])
def test_the_initial_state_is_a_weight(name):
    cell = CELLS[name]()
    with pytest.raises(ValueError, match="no weights yet"):
        cell.get_initial_state(2)
    cell.build((None, 5))
    assert len(cell.get_initial_state(2)) == len(cell.state_size)


@pytest.mark.parametrize("name", ["scoff", "rims"])
def test_what_a_cell_attends_to(name):
    """The cell's scores are those of the layer around it, at one step."""
    cell = CELLS[name]()
    layer = {
        "scoff": lambda: layers.SCOFF(4, 2, 3, num_active=1),
        "rims": lambda: layers.RIMs(4, 3, 2),
    }[name]()
    inputs = np.random.default_rng(0).normal(size=(2, 5)).astype("float32")
    cell.build(inputs.shape)
    layer.build((2, 1, 5))
    layer.set_weights(cell.get_weights())
    outputs, states, scores = cell(
        inputs, cell.get_initial_state(2), return_attention_scores=True
    )
    np.testing.assert_array_equal(outputs, states[0])
    expected = layer(inputs[:, None], return_attention_scores=True)
    np.testing.assert_allclose(outputs, expected[0], atol=1e-6)
    assert len(scores) == len(expected[1]) == 3
    for one, other in zip(scores, expected[1], strict=True):
        np.testing.assert_allclose(one, ops.squeeze(other, 1), atol=1e-6)
