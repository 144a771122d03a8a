import keras
import numpy as np
import pytest
from keras import ops
from layers_for_tests import assert_close
from layers_for_tests import in_float32
from layers_for_tests import random_array

from keras_relational import layers

UNITS = 4


def frames(batch=3, time=5):
    """Frames, a mask of the first frames of episodes, and a state."""
    rng = np.random.default_rng(0)
    is_first = rng.integers(2, size=(batch, time)).astype("bool")
    state = random_array(batch, UNITS, seed=1)
    return random_array(batch * time, 2), is_first, [state]


@pytest.mark.any_backend
def test_contract_equals_the_cell_step_by_step():
    cell = keras.layers.GRUCell(UNITS)
    x, is_first, (state,) = frames()
    outputs, last = layers.EpisodicRNN(cell)(x, is_first, [state])
    x = x.reshape(3, 5, 2)
    for t in range(5):
        state = np.where(is_first[:, t, None], 0, state)
        state = in_float32(cell(x[:, t], [state])[0])
        assert_close(in_float32(outputs)[:, t], state)
    assert_close(in_float32(last), state)


@pytest.mark.any_backend
@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("dtype_of_cell", [None, "float32"])
def test_contract_dtype(dtype, dtype_of_cell):
    """Outputs have the layer's dtype, as their specification says."""
    layer = layers.EpisodicRNN(
        keras.layers.GRUCell(UNITS, dtype=dtype_of_cell or dtype), dtype=dtype
    )
    x, is_first, state = frames()
    expected = layer.compute_output_spec(
        keras.KerasTensor(x.shape), keras.KerasTensor(is_first.shape), state
    )
    for one, spec in zip(layer(x, is_first, state), expected, strict=True):
        assert keras.backend.standardize_dtype(one.dtype) == spec.dtype
        assert spec.dtype == layer.compute_dtype
        assert np.isfinite(in_float32(one)).all()


@pytest.mark.any_backend
def test_contract_trains_on_batches_of_any_size():
    inputs = (
        keras.Input((5, 2)),
        keras.Input((5,), dtype="bool"),
        keras.Input((UNITS,)),
    )
    rnn = layers.EpisodicRNN(keras.layers.GRUCell(UNITS))
    outputs, _ = rnn(ops.reshape(inputs[0], (-1, 2)), inputs[1], [inputs[2]])
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse")
    x, is_first, (state,) = frames(batch=5)
    before = [in_float32(weight.value) for weight in model.trainable_variables]
    model.fit(
        (x.reshape(5, 5, 2), is_first, state),
        np.zeros((5, 5, UNITS), "float32"),
        batch_size=2,
        verbose=0,
    )
    for old, new in zip(before, model.trainable_variables, strict=True):
        assert (old != in_float32(new.value)).any()


@pytest.mark.any_backend
def test_contract_config():
    layer = layers.EpisodicRNN(
        keras.layers.LSTMCell(UNITS), dtype="mixed_bfloat16"
    )
    again = layers.EpisodicRNN.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    assert again.cell.units == UNITS
    assert again.compute_dtype == "bfloat16"


def test_what_is_no_cell_is_refused():
    with pytest.raises(ValueError, match="must be a Keras RNN cell"):
        layers.EpisodicRNN(keras.layers.Dense(3))


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("argument", ["dropout", "recurrent_dropout"])
def test_dropout_that_keras_draws_outside_is_refused(argument, stacked):
    cell = keras.layers.GRUCell(UNITS, **{argument: 0.5})
    if stacked:
        cells = [keras.layers.GRUCell(UNITS), cell]
        cell = keras.layers.StackedRNNCells(cells)
    with pytest.raises(ValueError, match=f"a GRUCell with .*{argument}=0.5"):
        layers.EpisodicRNN(cell)


@keras.saving.register_keras_serializable("test_episodic_rnn")
class MinimalCell(keras.layers.Layer):
    """The least that Keras documents: a state size, and a call."""

    state_size = 3

    def call(self, inputs, states):
        h = 0.5 * states[0] + ops.sum(inputs, axis=-1, keepdims=True)
        return h, [h]


@pytest.mark.parametrize(
    "cell",
    [
        MinimalCell(),
        layers.LayerNormLSTMCell(3),
        # Its initial memory is learned, and not zero.
        layers.NTMCell(3, memory_size=2, memory_dim=4),
    ],
)
def test_other_cells_begin_where_they_begin(cell):
    layer = layers.EpisodicRNN(cell)
    frames = random_array(2, 5, 4)
    is_first = np.zeros((2, 5), bool)
    is_first[0, 2] = is_first[1, 3] = True
    sizes = keras.tree.flatten(cell.state_size)
    states = [random_array(2, n, seed=n) for n in sizes]
    outputs, *_ = layer(frames.reshape(10, 4), is_first, states)
    rnn = keras.layers.RNN(cell, return_sequences=True)
    for row, first in ((0, 2), (1, 3)):
        part = frames[row : row + 1]
        begun = [x[row : row + 1] for x in states]
        assert_close(
            outputs[row, :first],
            rnn(part[:, :first], initial_state=begun)[0],
            atol=1e-5,
        )
        assert_close(outputs[row, first:], rnn(part[:, first:])[0], atol=1e-5)
