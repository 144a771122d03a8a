"""The constructors of SCOFF and RIMs take the arguments of their cells."""

import inspect
import re

import pytest

from keras_relational import layers

LAYERS = [
    (layers.SCOFF, layers.SCOFFCell, (4, 3, 2)),
    (layers.RIMs, layers.RIMsCell, (4, 3, 2)),
]
RNN_ARGUMENTS = (
    *("return_sequences", "return_state", "go_backwards"),
    *("stateful", "unroll"),
)
parametrize = pytest.mark.parametrize(("layer_cls", "cell_cls", "args"), LAYERS)


def documented(cls):
    """The texts of the arguments in a docstring, by name."""
    (section,) = re.findall(
        r"\n    Args:\n(.*?)\n\n", cls.__doc__, flags=re.DOTALL
    )
    entries = re.split(r"(?:^|\n) {8}(\S+): ", section)[1:]
    return dict(zip(entries[::2], entries[1::2], strict=True))


def argument_names(cls):
    *names, kwargs = inspect.signature(cls).parameters
    assert kwargs == "kwargs"
    return names


@parametrize
def test_the_signature_of_a_layer(layer_cls, cell_cls, args):
    """Names, order and default values: the cell's, then the RNN's."""
    cell = inspect.signature(cell_cls).parameters
    layer = inspect.signature(layer_cls).parameters
    names = argument_names(cell_cls)
    assert argument_names(layer_cls) == [*names, *RNN_ARGUMENTS]
    for name in names:
        assert layer[name] == cell[name]


@parametrize
def test_every_argument_is_documented(layer_cls, cell_cls, args):
    for cls in (layer_cls, cell_cls):
        texts = documented(cls)
        assert list(texts) == [*argument_names(cls), "**kwargs"]
        for text in texts.values():
            assert len(text.split()) > 3
            assert "See above" not in text
    of_layer, of_cell = documented(layer_cls), documented(cell_cls)
    for name in argument_names(cell_cls):
        assert of_layer[name] == of_cell[name]


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
