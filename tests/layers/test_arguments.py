"""Arguments of constructors, and inputs of shapes that are refused.

The constructors of SCOFF and RIMs take the arguments of their cells. Inputs
that do not fit together, or to what a layer was built for, were once taken
without a word, or ended in an error of the backend.
"""

import functools
import inspect
import re

import keras
import numpy as np
import pytest

from keras_relational import layers
from keras_relational.layers._strided_convolution import StridedConv2D

# The sizes that each constructor needs, in its order.
SIZES = {
    layers.Abstractor: (2, 3, 7),
    layers.DualAttention: (2, 1),
    layers.DualAttentionBlock: (2, 1, 7),
    layers.ESBN: (4, 3),
    layers.InnerProductRelations: (3,),
    layers.LayerNormLSTMCell: (4,),
    layers.MultiHeadAttentionPooling: (2, 3, 4),
    layers.NTMCell: (4, 3, 2),
    layers.PositionalSymbols: (4,),
    layers.PrediNet: (2, 3, 4),
    layers.RIMs: (4, 4, 2),
    layers.RIMsCell: (4, 3, 2),
    layers.RelationNetwork: (4, 5),
    layers.RelationalAttention: (2, 4),
    layers.RelationalConvolution: (2, 3),
    layers.RelationalCrossAttention: (2, 3),
    layers.RelationalMemoryCell: (4, 3, 2),
    layers.RelationalTransformerBlock: (2, 3, 7),
    layers.SCOFF: (4, 3, 2),
    layers.SCOFFCell: (4, 3, 2),
    layers.SharedWorkspace: (2,),
    layers.SimplicialTransformerBlock: (1, 3, 1, 3, 4),
    layers.SlidingWindowNormalization: (3,),
    layers.SlotAttention: (3, 4, 6),
    layers.SlotPooling: (3, 4),
    layers.SymbolicAttention: (4,),
    layers.TwoSimplicialAttention: (2, 3),
    layers.VirtualEntities: (2,),
}


def sizes(cls):
    names = inspect.signature(cls).parameters
    return dict(zip(names, SIZES.get(cls, ()), strict=False))


def make(cls, **arguments):
    return cls(**{**sizes(cls), **arguments})


@pytest.mark.parametrize("wrong", [0, -1, 2.0, "2", None, True])
@pytest.mark.parametrize("cls", SIZES)
def test_refuses_sizes_that_are_no_positive_integers(cls, wrong):
    for name in sizes(cls):
        # A part of the block checks these, and knows them by other names.
        named = name.removeprefix("num_simplicial_").removeprefix("simplicial_")
        message = f"{named}` must be a positive integer.*{named}={wrong}"
        with pytest.raises(ValueError, match=message):
            make(cls, **{name: wrong})


NORMALIZATION = layers.TemporalContextNormalization
STRIDED = functools.partial(StridedConv2D, filters=4, kernel_size=6)
RNN = keras.layers.RNN


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (layers.Abstractor, {"dropout": -0.1}, "`dropout` must be at least 0"),
        (layers.Abstractor, {"dropout": 1.5}, "`dropout` must be at least 0"),
        (layers.Abstractor, {"dropout": "some"}, "`dropout` must be at least"),
        (layers.AppendCoordinates, {"order": "zx"}, "order .* one of: xy, yx"),
        (layers.AppendCoordinates, {"order": None}, "order .* one of: xy, yx"),
        (layers.BatchContextNormalization, {"group_size": 0}, "group_size=0"),
        (layers.BatchContextNormalization, {"statistics": "all"}, "'all'"),
        (layers.CoRelNet, {"causal": 0}, "`causal` must be True or False"),
        (layers.CoRelNet, {"causal": None}, "`causal` must be True or False"),
        (layers.CoRelNet, {"causal": "yes"}, "`causal` must be True or False"),
        (layers.DualAttentionBlock, {"dropout": 1}, "`dropout` must be"),
        (layers.DualAttentionBlock, {"num_cross_heads": -1}, "`num_cross_hea"),
        (layers.InnerProductRelations, {"key_dim": 0}, "`key_dim` must be a"),
        (layers.RIMs, {"num_active": 5}, "at most 4.*num_active=5"),
        (layers.RelationalAttention, {"num_relations": 3}, "must divide"),
        (
            layers.RelationalAttention,
            {"key_dim": 3, "rotary": True},
            "must be even",
        ),
        (
            layers.RelationalMemoryCell,
            {"units": 5},
            "multiple of `num_heads`.*units=5, num_heads=2",
        ),
        (layers.RelationalTransformerBlock, {"num_iterations": 0}, "ations=0"),
        (layers.SCOFF, {"num_active": 4}, "at most 3.*num_active=4"),
        (layers.SCOFF, {"dynamics": "rnn"}, "'rnn'.*gru, lstm"),
        (layers.SCOFF, {"dropout": 1.0}, "dropout=1.0"),
        (layers.SCOFF, {"schema_keys": "own"}, "'own'.*shared, separate"),
        (layers.SCOFF, {"balance": -0.1}, "balance=-0.1"),
        (layers.SCOFF, {"position_dim": -1}, "position_dim=-1"),
        (layers.SCOFF, {"position_dim": 1.5}, "position_dim=1.5"),
        (layers.SCOFF, {"num_message_heads": -1}, "num_message_heads=-1"),
        (layers.SCOFF, {"num_message_heads": 1.5}, "num_message_heads=1.5"),
        (layers.SharedWorkspace, {"num_writers": 0}, "`num_writers` must be a"),
        (
            layers.SimplicialTransformerBlock,
            {"score": "dot"},
            "'dot'.*unsigned",
        ),
        (layers.SlotPooling, {"units": 5, "num_heads": 2}, "5, num_heads=2"),
        (NORMALIZATION, {"segment_lengths": (3, 0)}, "positive integer.*0"),
        (NORMALIZATION, {"segment_lengths": ()}, "at least one"),
        (NORMALIZATION, {"segment_lengths": 6}, "tuple.*segment_lengths=6"),
        (NORMALIZATION, {"epsilon": 0}, "epsilon=0"),
        (layers.TwoSimplicialAttention, {"score": "dot"}, "'dot'.*unsigned"),
        (
            layers.TwoSimplicialAttention,
            {"score": "determinant", "key_dim": 4},
            "multiple of 3.*key_dim=4",
        ),
        (STRIDED, {"strides": 4}, r"\(0, 0\).*= \(2, 2\)$"),
        (STRIDED, {"strides": (2, 5)}, r"\(0, 0\).*= \(0, 1\)$"),
        (
            STRIDED,
            {"data_format": "channels_first"},
            "needs data_format = 'channels_last'.*= 'channels_first'$",
        ),
        (
            STRIDED,
            {"dilation_rate": 2},
            r"needs dilation_rate = \(1, 1\).*= \(2, 2\)$",
        ),
        (STRIDED, {"groups": 2}, r"needs groups = 1\..*groups = 2$"),
    ],
)
def test_refuses_arguments(cls, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(cls, **arguments)


def zeros(*shape):
    return np.zeros(shape, "float32")


def built(layer, *arguments, **options):
    layer(*arguments, **options)
    return layer


def refused(message):
    return pytest.raises(ValueError, match=f"(?s){message}")


@pytest.mark.any_backend
def test_contract_time_folded_refuses():
    layer = layers.TimeFolded(keras.layers.LSTM(3))
    with refused(r"mask\.shape=\(3, 2, 4\), inputs\.shape=\(2, 3, 4, 5\)"):
        layer(zeros(2, 3, 4, 5), mask=np.ones((3, 2, 4), bool))
    with refused(r"mask\.shape=\(2,\)"):
        layer(zeros(2, 3, 4, 5), mask=np.ones(2, bool))


@pytest.mark.any_backend
def test_contract_normalizations_refuse():
    with refused(r"axis -1 .* value 3, .* \(2, 5, 1\)"):
        built(NORMALIZATION(), zeros(2, 5, 3))(zeros(2, 5, 1))
    with refused(r"6 steps.*\(2, 5, 4\)"):
        NORMALIZATION((3, 3))(zeros(2, 5, 4))
    with refused(r"mask.*\(2, 5\).*\(2, 4\)"):
        NORMALIZATION()(zeros(2, 5, 4), mask=np.ones((2, 4), bool))
    with refused(r"'bath'.*sub_batch"):
        layers.normalization("bath")
    with refused("statistics='training'"):
        layers.BatchContextNormalization().adapt([zeros(2, 4, 2)])
    layer = layers.BatchContextNormalization(statistics="training")
    with refused("only the batch size varies"):
        layer.build((None, None, 2))
    with refused("one batch or more"):
        layer.adapt([])
    layer.adapt([zeros(20, 5, 3)])
    for call in (layer, lambda batch: layer.adapt([batch])):
        with refused(r"shape \(5, 3\).* inputs\.shape=\(2, 6, 3\)"):
            call(zeros(2, 6, 3))


@pytest.mark.any_backend
def test_contract_episodic_rnns_refuse():
    gru = layers.EpisodicRNN(keras.layers.GRUCell(4))
    lstm = layers.EpisodicRNN(keras.layers.LSTMCell(4))
    frames, first = zeros(6, 5), np.zeros((2, 3), bool)
    with refused(r"\[\(2, 4\)\]\].* Received: .*\[\(2, 1\)\]"):
        gru(frames, first, [zeros(2, 1)])
    with refused(r"\[\(2, 4\)\]\].* Received: .*\[\(1, 4\)\]"):
        gru(frames, first, [zeros(1, 4)])
    with refused(r"a list of states .* \(2, 3\), \(2, 4\)\]"):
        gru(frames, first, zeros(2, 4))
    with refused(r"\[\(2, 4\), \(2, 4\)\]\].* Received: .*\[\(2, 4\)\]"):
        lstm(frames, first, [zeros(2, 4)])
    with refused(r"\[\(6, None\), .* Received: shapes \[\(7, 5\)"):
        gru(zeros(7, 5), first, [zeros(2, 4)])
    with refused(r"Received: shapes \[\(6, 5\), \(6,\)"):
        gru(frames, np.zeros(6, bool), [zeros(6, 4)])


@pytest.mark.any_backend
def test_contract_recurrent_layers_refuse():
    with refused(r"inputs\.shape=\(None, 4, 3, None\)"):
        make(layers.SCOFF)(keras.Input((4, 3, None)))
    with refused(r"\[\(3, 12\)\]\. Received: .* \[\(1, 12\)\]"):
        make(layers.SCOFF)(zeros(3, 5, 6), initial_state=zeros(1, 12))
    with refused("built for 5 positions.*7 of them"):
        built(make(layers.SCOFF), zeros(1, 2, 5, 3))(zeros(1, 2, 7, 3))
    with refused(r"batches of 1 .*\(3, 3, 5\)"):
        built(make(layers.SCOFF, stateful=True), zeros(1, 3, 5))(zeros(3, 3, 5))
    for shape in ((2, 6, 3), (2, 3), (1, 6), (2, 1, 4), (2,)):
        with refused(re.escape(f"mask.shape={shape}")):
            make(layers.SCOFF)(zeros(2, 6, 4, 5), mask=np.ones(shape, bool))
    for cls in (layers.SCOFF, layers.RIMs):
        with refused(r"axis -1 .* value 6, .* \(3, 5, 7\)"):
            built(make(cls), zeros(3, 5, 6))(zeros(3, 5, 7))
    for cell in (layers.SCOFFCell(4, 3, 2), layers.RIMsCell(4, 3, 2)):
        with refused(r"axis -1 .* value 6, .* \(3, 7\)"):
            built(RNN(cell), zeros(3, 5, 6))(zeros(3, 5, 7))
    with refused("fixed features.*None"):
        make(layers.NTMCell).build((None, None))
    with refused(r"mask.shape=\(2, 3\)"):
        make(layers.ESBN)(zeros(2, 4, 5), mask=np.ones((2, 3), bool))


@pytest.mark.any_backend
def test_contract_layers_of_slots_refuse():
    layer = make(layers.SlotPooling)
    with refused(r"3 slots.*\(2, 5\)"):
        layer(zeros(2, 5))
    with refused(r"shape \(3, 5\)\. Received: mask\.shape=\(3, 4\)"):
        layer(zeros(3, 5, 12), mask=np.ones((3, 4), bool))
    with refused(r"axis -1 .* value 12, .* \(3, 15\)"):
        built(make(layers.SlotPooling), zeros(3, 12))(zeros(3, 15))
    with refused("which are 6 and 5"):
        make(layers.SharedWorkspace).build((2, 4, 6), (2, 3, 5))
    with refused("takes sets"):
        make(layers.SharedWorkspace).build((2, 4, 6), (2, 3, 3, 4))


@pytest.mark.any_backend
def test_contract_simplicial_layers_refuse():
    layer, query = make(layers.TwoSimplicialAttention), zeros(2, 3, 5)
    layer(query, base=zeros(2, 2, 5))
    with refused(r"\(2, None, 5\), .* base\.shape=\(2, 2, 6\)"):
        layer(query, base=zeros(2, 2, 6))
    with refused(r"\(None, None, 5\), .* base\.shape=\(None, 2, 6\)"):
        layer(keras.Input((3, 5)), base=keras.Input((2, 6)))
    with refused(r"\(2, None, 5\), .* base\.shape=\(1, 2, 5\)"):
        make(layers.TwoSimplicialAttention)(query, base=zeros(1, 2, 5))
    block = make(layers.SimplicialTransformerBlock)
    message = (
        r"entities\.shape=\(2, 3, 5\), virtual_entities\.shape=\(2, 2, 6\)"
    )
    for _ in range(2):  # Before the block is built, and after.
        with refused(message):
            block(query, zeros(2, 2, 6))
        block = built(
            make(layers.SimplicialTransformerBlock), query, zeros(2, 2, 5)
        )


@pytest.mark.any_backend
def test_contract_layers_with_symbols_refuse():
    entities, symbols, context = zeros(2, 4, 12), zeros(2, 4, 6), zeros(2, 3, 9)
    with refused("must divide .* which is 12"):
        layers.DualAttention(3, 2)(entities, symbols)
    block = functools.partial(make, layers.DualAttentionBlock)
    with refused("`num_cross_heads` must divide"):
        block(num_cross_heads=5)(entities, symbols, context)
    with refused("Received: a context"):
        block()(entities, symbols, context)
    with refused("Received: no context"):
        block(num_cross_heads=3)(entities, symbols)
    with refused("symbols for 4 positions.*max_length=5"):
        make(layers.PositionalSymbols)(zeros(3, 5, 8))
    with refused("num_heads=3 equal parts.*Choose a num_heads that divides 8"):
        make(layers.SymbolicAttention, num_heads=3)(zeros(3, 5, 8))
    for cls in (layers.Abstractor, layers.RelationalCrossAttention):
        with refused("takes sets"):
            make(cls)(zeros(3, 5, 5, 8), zeros(3, 5, 8))
        for shape in ((3, 5), (3, 6, 6), (2, 4, 6), (3, 5, 5, 6), (1, 4, 5, 6)):
            with refused("takes a symbol for each entity, .*symbols.shape="):
                make(cls)(zeros(3, 5, 8), zeros(*shape))


@pytest.mark.any_backend
def test_contract_layers_of_images_refuse():
    with refused("fixed number of channels.*None"):
        layers.AppendCoordinates()(keras.Input((3, 4, None)))
    for shape in ((2, 3), (2, 3, 4, 5, 6)):
        with refused(rf"an image .* or a set .*shape={re.escape(str(shape))}"):
            layers.AppendCoordinates()(zeros(*shape))
    with refused("last two features .* for its pos"):
        make(layers.PrediNet)(zeros(3, 4, 1))
    for shape in ((3, 5), (3, 4, None), (1,) * 5):
        with refused(r"mine takes a set .* a fixed m"):
            make(layers.RelationNetwork, name="mine").build(shape)
    for cls in (layers.MultiHeadAttentionPooling, layers.PrediNet):
        with refused(r"\(3, 2, 4, 5\).*\(3, 4, 2, 5\)"):
            built(make(cls), zeros(3, 2, 4, 5))(zeros(3, 4, 2, 5))


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
CELLS_OF_VECTORS = [
    layers.NTMCell,
    layers.LayerNormLSTMCell,
    layers.RelationalMemoryCell,
]


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
@pytest.mark.parametrize(
    "cls", [layers.SCOFFCell, layers.RIMsCell, *CELLS_OF_VECTORS]
)
def test_contract_a_cell_tells_what_it_takes(cls):
    """From `(5, 6)` an RNN takes inputs of shape `(5,)` for each step."""
    with pytest.raises(
        ValueError, match=r"takes inputs .*\(batch, .*inputs\.shape=\(5,\)"
    ):
        RNN(make(cls))(zeros(5, 6))


@pytest.mark.any_backend
@pytest.mark.parametrize("cls", CELLS_OF_VECTORS)
def test_contract_a_cell_of_vectors_takes_no_sets(cls):
    with pytest.raises(
        ValueError, match=r"takes inputs .*inputs\.shape=\(2, 4, 6\)"
    ):
        RNN(make(cls))(zeros(2, 3, 4, 6))
    rnn = built(RNN(make(cls)), zeros(2, 3, 6))
    for shape, words in (((2, 3, 5), "value 6"), ((2, 3, 4, 6), "ndim=2")):
        with pytest.raises(ValueError, match=f"(?s){words}"):
            rnn(zeros(*shape))


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 5), (2, 3, None)])
@pytest.mark.parametrize(
    "cls",
    [
        layers.InnerProductRelations,
        layers.PositionalSymbols,
        layers.RelationalTransformerBlock,
        layers.SlotAttention,
        layers.SymbolicAttention,
        layers.TwoSimplicialAttention,
        layers.VirtualEntities,
    ],
)
def test_refuses_what_is_no_set(cls, shape):
    with pytest.raises(ValueError, match=r"\(batch, n, m\) with a fixed m"):
        make(cls).build(shape)


@pytest.mark.parametrize(
    "shape", [(3, 5), (3, None, 5), (3, 4, None), (3, 2, None, 5), (1,) * 5]
)
@pytest.mark.parametrize(
    "cls",
    [layers.CoRelNet, layers.MultiHeadAttentionPooling, layers.PrediNet],
)
def test_refuses_what_is_no_set_of_fixed_size(cls, shape):
    with pytest.raises(ValueError, match=r"mine takes a set .* fixed size"):
        make(cls, name="mine")(keras.Input(batch_shape=shape))


@pytest.mark.parametrize(
    ("cls", "shape"),
    [
        (layers.ESBN, (2, 2, 5)),
        (layers.RelationNetwork, (4, 6)),
        (layers.RelationalTransformerBlock, (2, 2, 5)),
        (layers.RelationalTransformerBlock, (4, 6)),
        (layers.TwoSimplicialAttention, (2, 2, 5)),
        (layers.VirtualEntities, (2, 2, 5)),
        (layers.VirtualEntities, (4, 6)),
    ],
)
def test_refuses_other_shapes_after_build(cls, shape):
    layer = make(cls)
    layer.build((None, 4, 5))
    with pytest.raises(ValueError, match="incompatible"):
        layer(keras.Input(shape))


@pytest.mark.parametrize(
    ("cls", "number"), [(layers.SCOFF, 3), (layers.RIMs, 1)]
)
def test_refuses_initial_states_of_other_sizes(cls, number):
    layer, inputs = cls(4, 2, number, dynamics="lstm"), zeros(2, 3, 5)
    h = np.ones((2, 8), "float32")
    assert layer(inputs, initial_state=[h, h]).shape == (2, 8)
    for states in ([h[:, :4], h[:, :4]], [h], [h, h, h]):
        with pytest.raises(ValueError, match=r"shapes \[\(2, 8\), \(2,"):
            layer(inputs, initial_state=states)
        with pytest.raises(ValueError, match=r"shapes \[\(None, 8\), \(None,"):
            layer(
                keras.Input((3, 5)),
                initial_state=[keras.Input(x.shape[1:]) for x in states],
            )


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
