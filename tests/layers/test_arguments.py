"""Arguments of constructors, and inputs of shapes that are refused.

The constructors of SCOFF and RIMs take the arguments of their cells. Inputs
that do not fit together, or to what a layer was built for, were once taken
without a word, or ended in an error of the backend.
"""

import inspect
import re

import keras
import numpy as np
import pytest

from keras_relational import layers


def zeros(*shape):
    return np.zeros(shape, "float32")


def built(layer, *arguments, **options):
    layer(*arguments, **options)
    return layer


def adapted():
    layer = layers.BatchContextNormalization(statistics="training")
    layer.adapt([zeros(20, 5, 3)])
    return layer


def episodic(cell, *arguments):
    return layers.EpisodicRNN(cell(4))(*arguments)


def simplicial_block():
    layer = layers.SimplicialTransformerBlock(1, 3, 1, 3, 4)
    return built(layer, zeros(2, 3, 5), zeros(2, 2, 5))


GRU, LSTM = keras.layers.GRUCell, keras.layers.LSTMCell
FRAMES, FIRST = zeros(6, 5), np.zeros((2, 3), bool)
REFUSED = {
    "time_folded_mask": (
        lambda: layers.TimeFolded(keras.layers.LSTM(3))(
            zeros(2, 3, 4, 5), mask=np.ones((3, 2, 4), bool)
        ),
        r"mask\.shape=\(3, 2, 4\), inputs\.shape=\(2, 3, 4, 5\)",
    ),
    "time_folded_mask_of_one_axis": (
        lambda: layers.TimeFolded(keras.layers.LSTM(3))(
            zeros(2, 3, 4, 5), mask=np.ones(2, bool)
        ),
        r"mask\.shape=\(2,\)",
    ),
    "normalization_features": (
        lambda: built(layers.TemporalContextNormalization(), zeros(2, 5, 3))(
            zeros(2, 5, 1)
        ),
        r"axis -1 .* value 3, .* \(2, 5, 1\)",
    ),
    "normalization_adapted": (
        lambda: adapted()(zeros(2, 6, 3)),
        r"shape \(5, 3\).* inputs\.shape=\(2, 6, 3\)",
    ),
    "normalization_adapted_again": (
        lambda: adapted().adapt([zeros(2, 6, 3)]),
        r"shape \(5, 3\).* inputs\.shape=\(2, 6, 3\)",
    ),
    "episodic_state_size": (
        lambda: episodic(GRU, FRAMES, FIRST, [zeros(2, 1)]),
        r"\[\(2, 4\)\]\].* Received: .*\[\(2, 1\)\]",
    ),
    "episodic_state_batch": (
        lambda: episodic(GRU, FRAMES, FIRST, [zeros(1, 4)]),
        r"\[\(2, 4\)\]\].* Received: .*\[\(1, 4\)\]",
    ),
    "episodic_states_no_list": (
        lambda: episodic(GRU, FRAMES, FIRST, zeros(2, 4)),
        r"a list of states .* \(2, 3\), \(2, 4\)\]",
    ),
    "episodic_too_few_states": (
        lambda: episodic(LSTM, FRAMES, FIRST, [zeros(2, 4)]),
        r"\[\(2, 4\), \(2, 4\)\]\].* Received: .*\[\(2, 4\)\]",
    ),
    "episodic_frames": (
        lambda: episodic(GRU, zeros(7, 5), FIRST, [zeros(2, 4)]),
        r"\[\(6, None\), .* Received: shapes \[\(7, 5\)",
    ),
    "episodic_first": (
        lambda: episodic(GRU, FRAMES, np.zeros(6, bool), [zeros(6, 4)]),
        r"Received: shapes \[\(6, 5\), \(6,\)",
    ),
    "scoff_state_batch": (
        lambda: layers.SCOFF(4, 3, 2)(
            zeros(3, 5, 6), initial_state=zeros(1, 12)
        ),
        r"\[\(3, 12\)\]\. Received: .* \[\(1, 12\)\]",
    ),
    "scoff_features": (
        lambda: built(layers.SCOFF(4, 3, 2), zeros(3, 5, 6))(zeros(3, 5, 7)),
        r"axis -1 .* value 6, .* \(3, 5, 7\)",
    ),
    "rims_features": (
        lambda: built(layers.RIMs(4, 3, 2), zeros(3, 5, 6))(zeros(3, 5, 7)),
        r"axis -1 .* value 6, .* \(3, 5, 7\)",
    ),
    "scoff_cell_features": (
        lambda: built(
            keras.layers.RNN(layers.SCOFFCell(4, 3, 2)), zeros(3, 5, 6)
        )(zeros(3, 5, 7)),
        r"axis -1 .* value 6, .* \(3, 7\)",
    ),
    "rims_cell_features": (
        lambda: built(
            keras.layers.RNN(layers.RIMsCell(4, 3, 2)), zeros(3, 5, 6)
        )(zeros(3, 5, 7)),
        r"axis -1 .* value 6, .* \(3, 7\)",
    ),
    "slot_pooling_mask": (
        lambda: layers.SlotPooling(3, 4)(
            zeros(3, 5, 12), mask=np.ones((3, 4), bool)
        ),
        r"shape \(3, 5\)\. Received: mask\.shape=\(3, 4\)",
    ),
    "slot_pooling_features": (
        lambda: built(layers.SlotPooling(3, 4), zeros(3, 12))(zeros(3, 15)),
        r"axis -1 .* value 12, .* \(3, 15\)",
    ),
    "simplicial_base": (
        lambda: built(
            layers.TwoSimplicialAttention(1, 3),
            zeros(2, 3, 5),
            base=zeros(2, 2, 5),
        )(zeros(2, 3, 5), base=zeros(2, 2, 6)),
        r"\(2, None, 5\), .* base\.shape=\(2, 2, 6\)",
    ),
    "simplicial_base_symbolic": (
        lambda: built(
            layers.TwoSimplicialAttention(1, 3),
            zeros(2, 3, 5),
            base=zeros(2, 2, 5),
        )(keras.Input((3, 5)), base=keras.Input((2, 6))),
        r"\(None, None, 5\), .* base\.shape=\(None, 2, 6\)",
    ),
    "simplicial_batch": (
        lambda: layers.TwoSimplicialAttention(1, 3)(
            zeros(2, 3, 5), base=zeros(1, 2, 5)
        ),
        r"\(2, None, 5\), .* base\.shape=\(1, 2, 5\)",
    ),
    "virtual_entities": (
        lambda: simplicial_block()(zeros(2, 3, 5), zeros(2, 2, 6)),
        r"entities\.shape=\(2, 3, 5\), virtual_entities\.shape=\(2, 2, 6\)",
    ),
}


RNN = keras.layers.RNN
SLOTS = r"\(batch, time, m\), \(batch, time, n, m\) or "
SEQUENCES = {
    "scoff": (lambda: layers.SCOFF(4, 3, 2), SLOTS),
    "rims": (lambda: layers.RIMs(4, 3, 2), SLOTS),
    "esbn": (lambda: layers.ESBN(4, 3), r"\(batch, time, features\)"),
    "time_folded": (
        lambda: layers.TimeFolded(keras.layers.Flatten()),
        r"\(batch, time, \.\.\.\)",
    ),
    "normalization": (
        layers.TemporalContextNormalization,
        r"\(batch, \.\.\., time, features\)",
    ),
}
CELLS = {
    "scoff_cell": lambda: layers.SCOFFCell(4, 3, 2),
    "rims_cell": lambda: layers.RIMsCell(4, 3, 2),
    "ntm_cell": lambda: layers.NTMCell(4),
    "layer_norm_lstm_cell": lambda: layers.LayerNormLSTMCell(4),
    "relational_memory_cell": lambda: layers.RelationalMemoryCell(4, 3, 2),
}


@pytest.mark.any_backend
@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("shape", [(), (7,), (5, 6)])
def test_contract_what_is_no_sequence_is_told_with_its_shape(name, shape):
    make, expected = SEQUENCES[name]
    received = re.escape(f"inputs.shape={shape}")
    with pytest.raises(ValueError, match=f"{expected}.*{received}"):
        make()(zeros(*shape))
    with pytest.raises(ValueError, match=f"ndim=3.*{re.escape(str(shape))}"):
        built(make(), zeros(2, 3, 6))(zeros(*shape))


@pytest.mark.any_backend
@pytest.mark.parametrize("name", CELLS)
def test_contract_a_cell_tells_what_it_takes(name):
    """From `(5, 6)` an RNN takes inputs of shape `(5,)` for each step."""
    with pytest.raises(
        ValueError, match=r"takes inputs .*\(batch, .*inputs\.shape=\(5,\)"
    ):
        RNN(CELLS[name]())(zeros(5, 6))


@pytest.mark.any_backend
@pytest.mark.parametrize(
    "name", ["ntm_cell", "layer_norm_lstm_cell", "relational_memory_cell"]
)
def test_contract_a_cell_of_vectors_takes_no_sets(name):
    with pytest.raises(
        ValueError, match=r"takes inputs .*inputs\.shape=\(2, 4, 6\)"
    ):
        RNN(CELLS[name]())(zeros(2, 3, 4, 6))
    rnn = built(RNN(CELLS[name]()), zeros(2, 3, 6))
    for shape, words in (((2, 3, 5), "value 6"), ((2, 3, 4, 6), "ndim=2")):
        with pytest.raises(ValueError, match=f"(?s){words}"):
            rnn(zeros(*shape))


@pytest.mark.any_backend
@pytest.mark.parametrize("name", REFUSED)
def test_contract_refuses_with_both_shapes(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


LAYERS = [
    (layers.SCOFF, layers.SCOFFCell, (4, 3, 2)),
    (layers.RIMs, layers.RIMsCell, (4, 3, 2)),
]
parametrize = pytest.mark.parametrize(("layer_cls", "cell_cls", "args"), LAYERS)


def documented(cls):
    """The texts of the arguments in a docstring, by name."""
    (section,) = re.findall(
        r"\nArgs:\n(.*?)\n\n", inspect.getdoc(cls), flags=re.DOTALL
    )
    entries = re.split(r"(?:^|\n) {4}(\S+): ", section)[1:]
    return dict(zip(entries[::2], entries[1::2], strict=True))


def argument_names(cls):
    *names, kwargs = inspect.signature(cls).parameters
    assert kwargs == "kwargs"
    return names


@parametrize
def test_every_argument_is_documented(layer_cls, cell_cls, args):
    """A layer names the sizes, and refers to its cell for all others."""
    for cls in (layer_cls, cell_cls):
        texts = documented(cls)
        assert list(texts) == [*argument_names(cls), "**kwargs"]
        for text in texts.values():
            assert len(text.split()) > 3
    assert f"`{cell_cls.__name__}`" in documented(layer_cls)["**kwargs"]
    cell = inspect.signature(cell_cls).parameters
    layer = inspect.signature(layer_cls).parameters
    for name in argument_names(layer_cls):
        assert layer[name] == cell[name]


@parametrize
def test_arguments_of_the_cell_are_attributes(layer_cls, cell_cls, args):
    layer = layer_cls(*args, key_dim=5, return_state=True, name="mine")
    assert layer.key_dim == layer.cell.key_dim == 5
    assert (layer.return_state, layer.name) == (True, "mine")
    names = set(argument_names(cell_cls))
    assert names <= set(layer.get_config())
    assert names <= set(dir(layer))


@parametrize
def test_arguments_by_position(layer_cls, cell_cls, args):
    layer = layer_cls(*args, "gru")
    assert layer.units == layer.cell.units == 4
    assert layer.dynamics == layer.cell.dynamics == "gru"


@parametrize
def test_wrong_arguments_are_named(layer_cls, cell_cls, args):
    for cls in (layer_cls, cell_cls):
        with pytest.raises(ValueError, match="num_head'"):
            cls(*args, num_head=2)
        last = argument_names(cls)[2]
        with pytest.raises(TypeError, match=last):
            cls(*args[:2])
        with pytest.raises(TypeError, match="units"):
            cls(*args, units=4)


@parametrize
def test_a_step_may_be_a_set(layer_cls, cell_cls, args):
    assert layer_cls(*args).accepts_sets
