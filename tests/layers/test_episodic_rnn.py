import keras
import numpy as np
import pytest
from keras import ops

from keras_relational import layers

UNITS = 4


def frames(batch=3, time=5, seed=0):
    """Frames, a mask of the first frames of episodes, and a state."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(batch * time, 2)).astype("float32"),
        rng.integers(2, size=(batch, time)).astype("bool"),
        [rng.normal(size=(batch, UNITS)).astype("float32")],
    )


def array(tensor):
    return ops.convert_to_numpy(tensor).astype("float64")


@pytest.mark.any_backend
def test_contract_equals_the_cell_step_by_step():
    cell = keras.layers.GRUCell(UNITS)
    x, is_first, (state,) = frames()
    outputs, last = layers.EpisodicRNN(cell)(x, is_first, [state])
    x = x.reshape(3, 5, 2)
    for t in range(5):
        state = np.where(is_first[:, t, None], 0, state)
        state = array(cell(x[:, t], [state])[0])
        np.testing.assert_allclose(array(outputs)[:, t], state, atol=1e-6)
    np.testing.assert_allclose(array(last), state, atol=1e-6)


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
        assert np.isfinite(array(one)).all()


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
    before = [array(weight.value) for weight in model.trainable_variables]
    model.fit(
        (x.reshape(5, 5, 2), is_first, state),
        np.zeros((5, 5, UNITS), "float32"),
        batch_size=2,
        verbose=0,
    )
    for old, new in zip(before, model.trainable_variables, strict=True):
        assert (old != array(new.value)).any()


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
    "new_cell",
    [MinimalCell, lambda: layers.LayerNormLSTMCell(3), lambda: ntm_cell()],
    ids=["minimal", "layer norm", "ntm"],
)
def test_other_cells_begin_where_they_begin(new_cell):
    cell = new_cell()
    layer = layers.EpisodicRNN(cell)
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(2, 5, 4)).astype("float32")
    is_first = np.zeros((2, 5), bool)
    is_first[0, 2] = is_first[1, 3] = True
    sizes = keras.tree.flatten(cell.state_size)
    states = [rng.normal(size=(2, n)).astype("float32") for n in sizes]
    outputs, *_ = layer(frames.reshape(10, 4), is_first, states)
    rnn = keras.layers.RNN(cell, return_sequences=True)
    for row, first in ((0, 2), (1, 3)):
        part = frames[row : row + 1]
        begun = [x[row : row + 1] for x in states]
        np.testing.assert_allclose(
            outputs[row, :first],
            rnn(part[:, :first], initial_state=begun)[0],
            atol=1e-5,
        )
        np.testing.assert_allclose(
            outputs[row, first:], rnn(part[:, first:])[0], atol=1e-5
        )


def ntm_cell():
    """A cell whose initial memory is learned, and not zero."""
    return layers.NTMCell(3, memory_size=2, memory_dim=4)
