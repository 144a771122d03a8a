"""What a layer is tried with: its arguments, its inputs, and what must hold.

A case is a dictionary of plain values, so that it can be sent to a process that
runs it, shrunk, and printed as a program.
"""

from hypothesis import strategies as st

# What must hold, and its share of the cases. Checks that compile take long.
CHECKS = {
    "rows": 9,
    "precision": 7,
    "seeds": 3,
    "saving": 3,
    "graph": 2,
    "xla": 1,
    "backends": 1,
}

# The first is what a case is shrunk to. oneDNN and XLA take other ways for
# large products than for small ones.
BATCHES = (1, 2, 3, 8, 32, 40)
NUMBERS = (1, 2, 3, 4)
SIZES = (1, 2, 3, 5, 8, 12, 16)
FEATURES = (1, 2, 3, 4, 6, 8, 16, 33, 64)

# Inputs are `offset + scale * normal`.
OFFSETS = (0, 0, 0, 1, 30, 1000)
SCALES = (1, 1, 1, 0.01, 10)

number = st.sampled_from(NUMBERS)
size = st.sampled_from(SIZES)
width = st.sampled_from(FEATURES)
one_or_two = st.sampled_from((1, 2))
flag = st.booleans()


def layer(name, **arguments):
    """A layer as plain values: its name and its arguments."""
    return {"layer": name, "arguments": arguments}


@st.composite
def cases(draw, name, check):
    """Cases of one layer and one check."""
    batch = draw(st.sampled_from(BATCHES))
    arguments, shapes, traits = LAYERS[name](draw, batch)
    spec = layer(name, **arguments)
    if name.endswith("Cell"):
        spec = layer("RNN", cell=spec, return_sequences=draw(flag))
    if isinstance(shapes, list):
        shapes = {"inputs": shapes}
    traits = {"mask": True, "any_size": False, **traits}
    if traits.get("normalizes") == "features":
        # Of one feature a layer normalization leaves nothing.
        traits["normalizes"] = next(iter(shapes.values()))[-1] > 1
    takes_mask, any_size = traits.pop("mask"), traits.pop("any_size")
    policy = "float32"
    if check == "precision":
        policy = draw(st.sampled_from(("mixed_bfloat16", "mixed_float16")))
    offset = draw(st.sampled_from(OFFSETS))
    scale = draw(st.sampled_from(SCALES))
    if policy == "mixed_float16" and not traits.get("normalizes"):
        # Products of large numbers are too large for float16.
        offset, scale = min(offset, 1), min(scale, 1)
    return {
        "spec": spec,
        "shapes": shapes,
        "check": check,
        "policy": policy,
        "offset": offset,
        "scale": scale,
        "integers": draw(st.sampled_from([False, False, False, True])),
        "masked": takes_mask and draw(st.sampled_from([False, False, True])),
        "any_size": any_size and draw(flag),
        "seeded": draw(flag),
        "seed": draw(st.integers(0, 3)),
        **{trait: value for trait, value in traits.items() if value},
    }


def _drawn(draw, **strategies):
    """Arguments, drawn in the order of their strategies."""
    return {name: draw(each) for name, each in strategies.items()}


def _plain(shape, traits, **strategies):
    """A layer whose arguments are drawn one by one, then its input's shape."""
    return lambda draw, batch: (
        _drawn(draw, **strategies),
        shape(draw, batch),
        traits,
    )


def _set(draw, batch, features=None):
    n = draw(size)
    return [batch, n, features or draw(width)]


def _set_or_image(draw, batch):
    if not draw(flag):
        return _set(draw, batch)
    side = st.sampled_from((1, 2, 3, 4))
    return [batch, draw(side), draw(side), draw(width)]


def _time_series(draw, batch, time=None):
    time = time or draw(size)
    features = draw(width)
    if draw(flag):
        return [batch, draw(number), time, features]
    return [batch, time, features]


def _steps(draw, batch):
    """A few steps, each a vector, a set or an image."""
    time = draw(st.sampled_from((1, 2, 3)))
    step = draw(st.sampled_from(([], [1], [3], [6], [2, 2])))
    return {"sequences": [batch, time, *step, draw(width)]}


def _vectors(draw, batch):
    """A few steps, each a vector."""
    time = draw(st.sampled_from((1, 2, 4)))
    return {"sequences": [batch, time, draw(width)]}


def _predinet(draw, batch):
    shape = _set_or_image(draw, batch)
    shape[-1] = max(2, shape[-1])
    arguments = _drawn(
        draw, num_heads=number, num_relations=number, key_dim=size
    )
    return arguments, shape, {}


def _two_simplicial(draw, batch):
    score = draw(st.sampled_from(("unsigned", "trilinear", "determinant")))
    key_dim = draw(st.sampled_from((1, 2, 4, 8)))
    arguments = {
        "num_heads": draw(number),
        "key_dim": 3 * key_dim if score == "determinant" else key_dim,
        "score": score,
    }
    features = draw(width)
    shapes = {"query": _set(draw, batch, features)}
    if draw(flag):
        shapes["base"] = [batch, draw(number), features]
    return arguments, shapes, {}


def _simplicial_block(draw, batch):
    arguments = _drawn(
        draw,
        num_heads=number,
        key_dim=size,
        num_simplicial_heads=number,
        simplicial_key_dim=st.sampled_from((1, 2, 4)),
        hidden_units=size,
        num_iterations=one_or_two,
    )
    features = draw(width)
    shapes = {
        "entities": _set(draw, batch, features),
        "virtual_entities": [batch, draw(number), features],
    }
    return arguments, shapes, {"normalizes": "features"}


def _context(draw, batch):
    lengths = draw(
        st.none() | st.lists(st.integers(1, 4), min_size=1, max_size=3)
    )
    arguments = _drawn(draw, center=flag, scale=flag)
    shape = _time_series(draw, batch, lengths and sum(lengths))
    traits = {"normalizes": True, "any_size": lengths is None}
    return {"segment_lengths": lengths, **arguments}, shape, traits


def _batch_context(draw, batch):
    arguments = _drawn(
        draw,
        group_size=st.none() | st.integers(1, 5),
        over_time=flag,
        statistics=st.sampled_from(("batch", "training")),
    )
    normalizes = arguments["statistics"] == "batch"
    traits = {"normalizes": normalizes, "mixes_examples": True}
    return arguments, _time_series(draw, batch), traits


def _slot_arguments(draw, num_slots):
    return _drawn(
        draw,
        units=st.sampled_from((1, 2, 5, 8)),
        dynamics=st.sampled_from(("gru", "lstm")),
        num_heads=number,
        key_dim=size,
        value_dim=size,
        num_message_heads=number,
        message_key_dim=size,
        message_value_dim=size,
        num_active=st.integers(1, num_slots),
    )


def _scoff_cell(draw):
    num_object_files = draw(number)
    arguments = _slot_arguments(draw, num_object_files)
    if draw(flag):
        arguments["num_active"] = None
    return {
        **arguments,
        "num_object_files": num_object_files,
        **_drawn(
            draw,
            num_schemata=number,
            position_dim=st.sampled_from((0, 1, 3)),
            schema_keys=st.sampled_from(("shared", "separate")),
            gated_messages=flag,
        ),
    }


def _rims_cell(draw):
    num_modules = draw(number)
    return {**_slot_arguments(draw, num_modules), "num_modules": num_modules}


def _slots(cell, **strategies):
    """A layer of the arguments of its cell and more, or the cell itself."""
    return lambda draw, batch: (
        {**cell(draw), **_drawn(draw, **strategies)},
        _steps(draw, batch),
        {"makes_choices": True},
    )


def _relational_memory_cell(draw, batch):
    # Before the first valid step Keras' RNN puts out zeros on TensorFlow, and
    # on JAX the initial state, which is no zero here.
    arguments = _relational_memory(draw)
    return arguments, _vectors(draw, batch), {"starts_valid": True}


def _relational_memory(draw):
    num_heads = draw(number)
    return {
        "units": num_heads * draw(number),
        "num_slots": draw(number),
        "num_heads": num_heads,
        "key_dim": draw(st.none() | number),
    }


def _with_symbols(draw, batch, entities):
    """Entities, and symbols of each example or of each pair of entities."""
    features, n = draw(width), entities[1]
    symbols = draw(st.sampled_from(([batch, n, features], [1, n, n, features])))
    return {"entities": entities, "symbols": symbols}


def _relational_cross_attention(draw, batch):
    entities = _set(draw, batch)
    arguments = _drawn(
        draw,
        num_heads=number,
        key_dim=size,
        activation=st.sampled_from(("softmax", "tanh", "linear")),
    )
    shapes = _with_symbols(draw, batch, entities)
    return arguments, shapes, {"fixed": ["symbols"]}


def _abstractor(draw, batch):
    entities = _set(draw, batch)
    arguments = _drawn(
        draw,
        num_heads=number,
        key_dim=size,
        hidden_units=size,
        num_layers=one_or_two,
    )
    symbols = [*entities[:2], draw(width)]
    return arguments, {"entities": entities, "symbols": symbols}, {}


def _positional_symbols(draw, batch):
    shape = _set(draw, batch)
    return {"max_length": shape[1] + draw(number)}, shape, {"any_size": True}


def _symbolic_attention(draw, batch):
    num_heads = draw(number)
    features = num_heads * draw(st.sampled_from((1, 2, 5, 16)))
    arguments = {"num_symbols": draw(size), "num_heads": num_heads}
    return arguments, _set(draw, batch, features), {"any_size": True}


def _relational_attention(draw, batch):
    entities = _set(draw, batch)
    num_heads = draw(number)
    arguments = {
        "num_heads": num_heads,
        "key_dim": 2 * draw(number),
        **_drawn(
            draw,
            num_relations=st.sampled_from((None, 1, 2, num_heads)),
            symmetric=flag,
            activation=st.sampled_from(("linear", "relu")),
            rotary=flag,
        ),
    }
    shapes = _with_symbols(draw, batch, entities)
    return arguments, shapes, {"fixed": ["symbols"]}


def _dual_attention(draw, batch):
    heads, relational = draw(number), draw(number)
    features = 2 * draw(number) * (heads + relational)
    entities = [batch, draw(size), features]
    arguments = {
        "num_heads": heads,
        "num_relational_heads": relational,
        **_drawn(
            draw,
            num_relations=st.sampled_from((None, 1, 2)),
            symmetric=flag,
            rotary=flag,
        ),
    }
    shapes = _with_symbols(draw, batch, entities)
    return arguments, shapes, {"fixed": ["symbols"]}


def _dual_attention_block(draw, batch):
    arguments, shapes, traits = _dual_attention(draw, batch)
    if draw(flag):
        features = shapes["entities"][-1]
        divisors = [x for x in NUMBERS if features % x == 0]
        arguments["num_cross_heads"] = draw(st.sampled_from(divisors))
        shapes["context"] = [batch, draw(number), draw(size)]
    arguments |= _drawn(draw, hidden_units=size, normalize_first=flag)
    return arguments, shapes, traits


def _relational_convolution(draw, batch):
    graphlet_size = draw(st.integers(1, 3))
    n = graphlet_size + draw(st.integers(0, 3))
    arguments = {
        "filters": draw(size),
        "graphlet_size": graphlet_size,
        "groups": draw(st.sampled_from(("combinations", "permutations"))),
        "pooling": draw(st.sampled_from((None, "mean", "max"))),
    }
    return arguments, [batch, n, n, draw(number)], {"mask": False}


def _convolution(draw, batch):
    stride = draw(st.sampled_from((1, 2, 3)))
    layouts = (None, "channels_last", "channels_first")
    arguments = {
        "filters": draw(number),
        "kernel_size": stride * draw(one_or_two),
        "strides": stride,
        "padding": draw(st.sampled_from(("valid", "same"))),
        "data_format": draw(st.sampled_from(layouts)),
    }
    side = st.integers(6, 9)
    shape = [batch, draw(side), draw(side), draw(number)]
    return arguments, shape, {"mask": False}


def _shared_workspace(draw, batch):
    num_heads, num_writers = draw(number), draw(st.none() | number)
    shapes = {
        "slots": [batch, draw(size), num_heads * draw(number)],
        "memory": [batch, draw(number), num_heads * draw(number)],
    }
    arguments = {"num_heads": num_heads, "num_writers": num_writers}
    return arguments, shapes, {"makes_choices": num_writers is not None}


def _slot_pooling(draw, batch):
    num_slots, num_heads = draw(number), draw(number)
    arguments = {
        "num_slots": num_slots,
        "units": num_heads * draw(number),
        "num_heads": num_heads,
    }
    return arguments, [batch, draw(size), num_slots * draw(number)], {}


def _coordinates(draw, batch):
    arguments = _drawn(
        draw,
        low=st.sampled_from((0.0, -1.0)),
        high=st.sampled_from((1.0, 0.8)),
        order=st.sampled_from(("xy", "yx")),
    )
    shape = _set_or_image(draw, batch)
    if draw(flag):
        shape[1] = 300
    return arguments, shape, {"mask": False, "any_size": True}


def _time_folded(draw, batch):
    normalizes = {
        "Dense": False,
        "LayerNormalization": "features",
        "TemporalContextNormalization": True,
    }
    inner = draw(st.sampled_from(tuple(normalizes)))
    of_inner = {"units": draw(size)} if inner == "Dense" else {}
    arguments = {"layer": layer(inner, **of_inner), "unroll": draw(flag)}
    shape = [batch, draw(number), draw(size), draw(width)]
    return arguments, shape, {"normalizes": normalizes[inner]}


def _episodic_rnn(draw, batch):
    cells = {
        "GRUCell": lambda: {"units": draw(size)},
        "LayerNormLSTMCell": lambda: {"units": draw(size)},
        "RelationalMemoryCell": lambda: _relational_memory(draw),
    }
    name = draw(st.sampled_from([*cells]))
    time = draw(number)
    shapes = {
        "frames": [batch * time, draw(width)],
        "is_first": [batch, time],
        "states": None,
    }
    return {"cell": layer(name, **cells[name]())}, shapes, {"mask": False}


LAYERS = {
    "Abstractor": _abstractor,
    "AppendCoordinates": _coordinates,
    "BatchContextNormalization": _batch_context,
    "CoRelNet": _plain(_set_or_image, {}, causal=flag),
    "DualAttention": _dual_attention,
    "DualAttentionBlock": _dual_attention_block,
    "ESBN": _plain(
        _set,
        {"any_size": True},
        units=size,
        key_dim=size,
        extra_step=flag,
        return_sequences=flag,
        return_retrieved=flag,
        confidence=flag,
    ),
    "EpisodicRNN": _episodic_rnn,
    "InnerProductRelations": _plain(
        _set,
        {"any_size": True},
        num_relations=number,
        key_dim=st.none() | size,
        symmetric=flag,
    ),
    "LayerNormLSTMCell": _plain(_vectors, {}, units=size),
    "MultiHeadAttentionPooling": _plain(
        _set_or_image, {}, num_heads=number, key_dim=size, value_dim=size
    ),
    "NTMCell": _plain(
        _vectors, {}, units=size, memory_size=size, memory_dim=size
    ),
    "PositionRelativeSymbols": _plain(
        _set, {"mixes_examples": True, "any_size": True}, max_distance=number
    ),
    "PositionalSymbols": _positional_symbols,
    "PrediNet": _predinet,
    "RIMs": _slots(_rims_cell, return_sequences=flag),
    "RIMsCell": _slots(_rims_cell),
    "RelationNetwork": _plain(
        _set_or_image, {"any_size": True}, units=size, hidden_units=size
    ),
    "RelationalAttention": _relational_attention,
    "RelationalConvolution": _relational_convolution,
    "RelationalCrossAttention": _relational_cross_attention,
    "RelationalMemoryCell": _relational_memory_cell,
    "RelationalTransformerBlock": _plain(
        _set,
        {"normalizes": "features", "any_size": True},
        num_heads=number,
        key_dim=size,
        hidden_units=size,
        num_iterations=one_or_two,
    ),
    "SCOFF": _slots(_scoff_cell, return_sequences=flag),
    "SCOFFCell": _slots(_scoff_cell),
    "SharedWorkspace": _shared_workspace,
    "SimplicialTransformerBlock": _simplicial_block,
    "SlidingWindowNormalization": _plain(
        _time_series,
        {"normalizes": True, "mixes_examples": True},
        window_size=number,
    ),
    "SlotAttention": _plain(
        _set,
        {"normalizes": "features", "any_size": True},
        num_slots=number,
        units=size,
        hidden_units=size,
        num_iterations=one_or_two,
    ),
    "SlotPooling": _slot_pooling,
    "StridedConv2D": _convolution,
    "SymbolicAttention": _symbolic_attention,
    "TemporalContextNormalization": _context,
    "TimeFolded": _time_folded,
    "TwoSimplicialAttention": _two_simplicial,
    "VirtualEntities": _plain(_set, {}, num_entities=number),
}
