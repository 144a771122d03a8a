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
flag = st.booleans()


def layer(name, **arguments):
    """A layer as plain values: its name and its arguments."""
    return {"layer": name, "arguments": arguments}


@st.composite
def cases(draw, name, check):
    """Cases of one layer and one check."""
    batch = draw(st.sampled_from(BATCHES))
    found = LAYERS[name](draw, batch)
    policy = "float32"
    if check == "precision":
        policy = draw(st.sampled_from(("mixed_bfloat16", "mixed_float16")))
    offset = draw(st.sampled_from(OFFSETS))
    scale = draw(st.sampled_from(SCALES))
    if policy == "mixed_float16" and not found.get("normalizes"):
        # Products of large numbers are too large for float16.
        offset, scale = min(offset, 1), min(scale, 1)
    case = {
        "spec": found["spec"],
        "shapes": found["shapes"],
        "check": check,
        "policy": policy,
        "offset": offset,
        "scale": scale,
        "integers": draw(st.sampled_from([False, False, False, True])),
        "masked": found.get("mask", True)
        and draw(st.sampled_from([False, False, True])),
        "any_size": found.get("any_size", False) and draw(flag),
        "seeded": draw(flag),
        "seed": draw(st.integers(0, 3)),
    }
    for trait in (
        "mixes_examples",
        "makes_choices",
        "normalizes",
        "fixed",
        "starts_valid",
    ):
        if found.get(trait):
            case[trait] = found[trait]
    return case


def _set(draw, batch, features=None):
    n = draw(size)
    return [batch, n, features or draw(st.sampled_from(FEATURES))]


def _set_or_image(draw, batch):
    if not draw(flag):
        return _set(draw, batch)
    side = st.sampled_from((1, 2, 3, 4))
    return [batch, draw(side), draw(side), draw(st.sampled_from(FEATURES))]


def _predinet(draw, batch):
    shape = _set_or_image(draw, batch)
    shape[-1] = max(2, shape[-1])
    spec = layer(
        "PrediNet",
        num_heads=draw(number),
        num_relations=draw(number),
        key_dim=draw(size),
    )
    return {"spec": spec, "shapes": {"inputs": shape}}


def _relation_network(draw, batch):
    spec = layer("RelationNetwork", units=draw(size), hidden_units=draw(size))
    return {
        "spec": spec,
        "shapes": {"inputs": _set_or_image(draw, batch)},
        "any_size": True,
    }


def _pooling(draw, batch):
    spec = layer(
        "MultiHeadAttentionPooling",
        num_heads=draw(number),
        key_dim=draw(size),
        value_dim=draw(size),
    )
    return {"spec": spec, "shapes": {"inputs": _set_or_image(draw, batch)}}


def _two_simplicial(draw, batch):
    score = draw(st.sampled_from(("unsigned", "trilinear", "determinant")))
    key_dim = draw(st.sampled_from((1, 2, 4, 8)))
    spec = layer(
        "TwoSimplicialAttention",
        num_heads=draw(number),
        key_dim=3 * key_dim if score == "determinant" else key_dim,
        score=score,
    )
    features = draw(st.sampled_from(FEATURES))
    shapes = {"query": _set(draw, batch, features)}
    if draw(flag):
        shapes["base"] = [batch, draw(number), features]
    return {"spec": spec, "shapes": shapes}


def _virtual_entities(draw, batch):
    spec = layer("VirtualEntities", num_entities=draw(number))
    return {"spec": spec, "shapes": {"inputs": _set(draw, batch)}}


def _transformer_block(draw, batch):
    spec = layer(
        "RelationalTransformerBlock",
        num_heads=draw(number),
        key_dim=draw(size),
        hidden_units=draw(size),
        num_iterations=draw(st.sampled_from((1, 2))),
    )
    shape = _set(draw, batch)
    return {
        "spec": spec,
        "shapes": {"inputs": shape},
        # Of one feature a layer normalization leaves nothing.
        "normalizes": shape[-1] > 1,
        "any_size": True,
    }


def _simplicial_block(draw, batch):
    spec = layer(
        "SimplicialTransformerBlock",
        num_heads=draw(number),
        key_dim=draw(size),
        num_simplicial_heads=draw(number),
        simplicial_key_dim=draw(st.sampled_from((1, 2, 4))),
        hidden_units=draw(size),
        num_iterations=draw(st.sampled_from((1, 2))),
    )
    features = draw(st.sampled_from(FEATURES))
    shapes = {
        "entities": _set(draw, batch, features),
        "virtual_entities": [batch, draw(number), features],
    }
    return {"spec": spec, "shapes": shapes, "normalizes": features > 1}


def _time_series(draw, batch, time=None):
    time = time or draw(size)
    features = draw(st.sampled_from(FEATURES))
    if draw(flag):
        return [batch, draw(number), time, features]
    return [batch, time, features]


def _context(draw, batch):
    lengths = draw(
        st.none() | st.lists(st.integers(1, 4), min_size=1, max_size=3)
    )
    spec = layer(
        "TemporalContextNormalization",
        segment_lengths=lengths,
        center=draw(flag),
        scale=draw(flag),
    )
    return {
        "spec": spec,
        "shapes": {
            "inputs": _time_series(draw, batch, lengths and sum(lengths))
        },
        "normalizes": True,
        "any_size": lengths is None,
    }


def _batch_context(draw, batch):
    spec = layer(
        "BatchContextNormalization",
        group_size=draw(st.none() | st.integers(1, 5)),
        over_time=draw(flag),
        statistics=draw(st.sampled_from(("batch", "training"))),
    )
    return {
        "spec": spec,
        "shapes": {"inputs": _time_series(draw, batch)},
        "normalizes": spec["arguments"]["statistics"] == "batch",
        "mixes_examples": True,
    }


def _sliding_window(draw, batch):
    spec = layer("SlidingWindowNormalization", window_size=draw(number))
    return {
        "spec": spec,
        "shapes": {"inputs": _time_series(draw, batch)},
        "normalizes": True,
        "mixes_examples": True,
    }


def _esbn(draw, batch):
    spec = layer(
        "ESBN",
        units=draw(size),
        key_dim=draw(size),
        extra_step=draw(flag),
        return_sequences=draw(flag),
        return_retrieved=draw(flag),
        confidence=draw(flag),
    )
    return {
        "spec": spec,
        "shapes": {"inputs": _set(draw, batch)},
        "any_size": True,
    }


def _slot_arguments(draw, num_slots):
    return {
        "units": draw(st.sampled_from((1, 2, 5, 8))),
        "dynamics": draw(st.sampled_from(("gru", "lstm"))),
        "num_heads": draw(number),
        "key_dim": draw(size),
        "value_dim": draw(size),
        "num_message_heads": draw(number),
        "message_key_dim": draw(size),
        "message_value_dim": draw(size),
        "num_active": draw(st.integers(1, num_slots)),
    }


def _scoff_arguments(draw):
    num_object_files = draw(number)
    arguments = _slot_arguments(draw, num_object_files)
    if draw(flag):
        arguments["num_active"] = None
    return {
        **arguments,
        "num_object_files": num_object_files,
        "num_schemata": draw(number),
        "position_dim": draw(st.sampled_from((0, 1, 3))),
        "schema_keys": draw(st.sampled_from(("shared", "separate"))),
        "gated_messages": draw(flag),
    }


def _rims_arguments(draw):
    num_modules = draw(number)
    return {**_slot_arguments(draw, num_modules), "num_modules": num_modules}


def _steps(draw, batch):
    """A few steps, each a vector, a set or an image."""
    time = draw(st.sampled_from((1, 2, 3)))
    step = draw(
        st.sampled_from(([], [1], [3], [6], [2, 2])).map(lambda x: [*x])
    )
    return [batch, time, *step, draw(st.sampled_from(FEATURES))]


def _scoff(draw, batch):
    spec = layer("SCOFF", **_scoff_arguments(draw), return_sequences=draw(flag))
    return {
        "spec": spec,
        "shapes": {"sequences": _steps(draw, batch)},
        "makes_choices": True,
    }


def _rims(draw, batch):
    spec = layer("RIMs", **_rims_arguments(draw), return_sequences=draw(flag))
    return {
        "spec": spec,
        "shapes": {"sequences": _steps(draw, batch)},
        "makes_choices": True,
    }


def _rnn(cell, draw, batch, steps=None, **traits):
    shape = steps or [
        batch,
        draw(st.sampled_from((1, 2, 4))),
        draw(st.sampled_from(FEATURES)),
    ]
    spec = layer("RNN", cell=cell, return_sequences=draw(flag))
    return {"spec": spec, "shapes": {"sequences": shape}, **traits}


def _scoff_cell(draw, batch):
    cell = layer("SCOFFCell", **_scoff_arguments(draw))
    return _rnn(cell, draw, batch, _steps(draw, batch), makes_choices=True)


def _rims_cell(draw, batch):
    cell = layer("RIMsCell", **_rims_arguments(draw))
    return _rnn(cell, draw, batch, _steps(draw, batch), makes_choices=True)


def _relational_memory_cell(draw, batch):
    # Before the first valid step Keras' RNN puts out zeros on TensorFlow, and
    # on JAX the initial state, which is no zero here.
    return _rnn(_relational_memory(draw), draw, batch, starts_valid=True)


def _relational_memory(draw):
    num_heads = draw(number)
    return layer(
        "RelationalMemoryCell",
        units=num_heads * draw(number),
        num_slots=draw(number),
        num_heads=num_heads,
        key_dim=draw(st.none() | number),
    )


def _ntm_cell(draw, batch):
    cell = layer(
        "NTMCell",
        units=draw(size),
        memory_size=draw(size),
        memory_dim=draw(size),
    )
    return _rnn(cell, draw, batch)


def _layer_norm_lstm(draw, batch):
    return _rnn(layer("LayerNormLSTMCell", units=draw(size)), draw, batch)


def _corelnet(draw, batch):
    spec = layer("CoRelNet", causal=draw(flag))
    return {"spec": spec, "shapes": {"inputs": _set_or_image(draw, batch)}}


def _symbols_shape(draw, batch, n):
    features = draw(st.sampled_from(FEATURES))
    return draw(
        st.sampled_from(([batch, n, features], [1, n, n, features])).map(
            lambda x: [*x]
        )
    )


def _relational_cross_attention(draw, batch):
    entities = _set(draw, batch)
    spec = layer(
        "RelationalCrossAttention",
        num_heads=draw(number),
        key_dim=draw(size),
        activation=draw(st.sampled_from(("softmax", "tanh", "linear"))),
    )
    shapes = {
        "entities": entities,
        "symbols": _symbols_shape(draw, batch, entities[1]),
    }
    return {"spec": spec, "shapes": shapes, "fixed": ["symbols"]}


def _abstractor(draw, batch):
    entities = _set(draw, batch)
    spec = layer(
        "Abstractor",
        num_heads=draw(number),
        key_dim=draw(size),
        hidden_units=draw(size),
        num_layers=draw(st.sampled_from((1, 2))),
    )
    features = draw(st.sampled_from(FEATURES))
    shapes = {"entities": entities, "symbols": [*entities[:2], features]}
    return {"spec": spec, "shapes": shapes}


def _positional_symbols(draw, batch):
    shape = _set(draw, batch)
    spec = layer("PositionalSymbols", max_length=shape[1] + draw(number))
    return {"spec": spec, "shapes": {"inputs": shape}, "any_size": True}


def _relative_symbols(draw, batch):
    spec = layer("PositionRelativeSymbols", max_distance=draw(number))
    return {
        "spec": spec,
        "shapes": {"inputs": _set(draw, batch)},
        "mixes_examples": True,
        "any_size": True,
    }


def _symbolic_attention(draw, batch):
    num_heads = draw(number)
    features = num_heads * draw(st.sampled_from((1, 2, 5, 16)))
    spec = layer(
        "SymbolicAttention", num_symbols=draw(size), num_heads=num_heads
    )
    return {
        "spec": spec,
        "shapes": {"inputs": _set(draw, batch, features)},
        "any_size": True,
    }


def _relational_attention(draw, batch):
    entities = _set(draw, batch)
    num_heads = draw(number)
    spec = layer(
        "RelationalAttention",
        num_heads=num_heads,
        key_dim=2 * draw(number),
        num_relations=draw(st.sampled_from((None, 1, 2, num_heads))),
        symmetric=draw(flag),
        activation=draw(st.sampled_from(("linear", "relu"))),
        rotary=draw(flag),
    )
    shapes = {
        "entities": entities,
        "symbols": _symbols_shape(draw, batch, entities[1]),
    }
    return {"spec": spec, "shapes": shapes, "fixed": ["symbols"]}


def _dual_sizes(draw, batch):
    heads, relational = draw(number), draw(number)
    features = 2 * draw(number) * (heads + relational)
    entities = [batch, draw(size), features]
    arguments = {
        "num_heads": heads,
        "num_relational_heads": relational,
        "num_relations": draw(st.sampled_from((None, 1, 2))),
        "symmetric": draw(flag),
        "rotary": draw(flag),
    }
    symbols = _symbols_shape(draw, batch, entities[1])
    return arguments, {"entities": entities, "symbols": symbols}


def _dual_attention(draw, batch):
    arguments, shapes = _dual_sizes(draw, batch)
    spec = layer("DualAttention", **arguments)
    return {"spec": spec, "shapes": shapes, "fixed": ["symbols"]}


def _dual_attention_block(draw, batch):
    arguments, shapes = _dual_sizes(draw, batch)
    if draw(flag):
        features = shapes["entities"][-1]
        divisors = [x for x in NUMBERS if features % x == 0]
        arguments["num_cross_heads"] = draw(st.sampled_from(divisors))
        shapes["context"] = [batch, draw(number), draw(size)]
    spec = layer(
        "DualAttentionBlock",
        **arguments,
        hidden_units=draw(size),
        normalize_first=draw(flag),
    )
    return {"spec": spec, "shapes": shapes, "fixed": ["symbols"]}


def _inner_products(draw, batch):
    spec = layer(
        "InnerProductRelations",
        num_relations=draw(number),
        key_dim=draw(st.none() | size),
        symmetric=draw(flag),
    )
    return {
        "spec": spec,
        "shapes": {"inputs": _set(draw, batch)},
        "any_size": True,
    }


def _relational_convolution(draw, batch):
    graphlet_size = draw(st.integers(1, 3))
    n = graphlet_size + draw(st.integers(0, 3))
    spec = layer(
        "RelationalConvolution",
        filters=draw(size),
        graphlet_size=graphlet_size,
        groups=draw(st.sampled_from(("combinations", "permutations"))),
        pooling=draw(st.sampled_from((None, "mean", "max"))),
    )
    return {
        "spec": spec,
        "shapes": {"inputs": [batch, n, n, draw(number)]},
        "mask": False,
    }


def _convolution(draw, batch):
    stride = draw(st.sampled_from((1, 2, 3)))
    spec = layer(
        "StridedConv2D",
        filters=draw(number),
        kernel_size=stride * draw(st.sampled_from((1, 2))),
        strides=stride,
        padding=draw(st.sampled_from(("valid", "same"))),
        data_format=draw(
            st.sampled_from((None, "channels_last", "channels_first"))
        ),
    )
    side = st.integers(6, 9)
    shape = [batch, draw(side), draw(side), draw(number)]
    return {"spec": spec, "shapes": {"inputs": shape}, "mask": False}


def _slot_attention(draw, batch):
    spec = layer(
        "SlotAttention",
        num_slots=draw(number),
        units=draw(size),
        hidden_units=draw(size),
        num_iterations=draw(st.sampled_from((1, 2))),
    )
    shape = _set(draw, batch)
    return {
        "spec": spec,
        "shapes": {"inputs": shape},
        "normalizes": shape[-1] > 1,
        "any_size": True,
    }


def _shared_workspace(draw, batch):
    num_heads = draw(number)
    spec = layer(
        "SharedWorkspace",
        num_heads=num_heads,
        num_writers=draw(st.none() | number),
    )
    shapes = {
        "slots": [batch, draw(size), num_heads * draw(number)],
        "memory": [batch, draw(number), num_heads * draw(number)],
    }
    return {
        "spec": spec,
        "shapes": shapes,
        "makes_choices": spec["arguments"]["num_writers"] is not None,
    }


def _slot_pooling(draw, batch):
    num_slots, num_heads = draw(number), draw(number)
    spec = layer(
        "SlotPooling",
        num_slots=num_slots,
        units=num_heads * draw(number),
        num_heads=num_heads,
    )
    return {
        "spec": spec,
        "shapes": {"inputs": [batch, draw(size), num_slots * draw(number)]},
    }


def _coordinates(draw, batch):
    spec = layer(
        "AppendCoordinates",
        low=draw(st.sampled_from((0.0, -1.0))),
        high=draw(st.sampled_from((1.0, 0.8))),
        order=draw(st.sampled_from(("xy", "yx"))),
    )
    shape = _set_or_image(draw, batch)
    if draw(flag):
        shape[1] = 300
    return {
        "spec": spec,
        "shapes": {"inputs": shape},
        "mask": False,
        "any_size": True,
    }


def _time_folded(draw, batch):
    inner = draw(
        st.sampled_from(
            ("Dense", "LayerNormalization", "TemporalContextNormalization")
        )
    )
    arguments = {"units": draw(size)} if inner == "Dense" else {}
    spec = layer(
        "TimeFolded", layer=layer(inner, **arguments), unroll=draw(flag)
    )
    shape = [batch, draw(number), draw(size), draw(st.sampled_from(FEATURES))]
    return {
        "spec": spec,
        "shapes": {"inputs": shape},
        "normalizes": inner != "Dense"
        and (inner != "LayerNormalization" or shape[-1] > 1),
    }


def _episodic_rnn(draw, batch):
    cells = {
        "GRUCell": lambda: layer("GRUCell", units=draw(size)),
        "LayerNormLSTMCell": lambda: layer(
            "LayerNormLSTMCell", units=draw(size)
        ),
        "RelationalMemoryCell": lambda: _relational_memory(draw),
    }
    name = draw(st.sampled_from([*cells]))
    time = draw(number)
    shapes = {
        "frames": [batch * time, draw(st.sampled_from(FEATURES))],
        "is_first": [batch, time],
        "states": None,
    }
    return {
        "spec": layer("EpisodicRNN", cell=cells[name]()),
        "shapes": shapes,
        "mask": False,
    }


LAYERS = {
    "Abstractor": _abstractor,
    "AppendCoordinates": _coordinates,
    "BatchContextNormalization": _batch_context,
    "CoRelNet": _corelnet,
    "DualAttention": _dual_attention,
    "DualAttentionBlock": _dual_attention_block,
    "ESBN": _esbn,
    "EpisodicRNN": _episodic_rnn,
    "InnerProductRelations": _inner_products,
    "LayerNormLSTMCell": _layer_norm_lstm,
    "MultiHeadAttentionPooling": _pooling,
    "NTMCell": _ntm_cell,
    "PositionRelativeSymbols": _relative_symbols,
    "PositionalSymbols": _positional_symbols,
    "PrediNet": _predinet,
    "RIMs": _rims,
    "RIMsCell": _rims_cell,
    "RelationNetwork": _relation_network,
    "RelationalAttention": _relational_attention,
    "RelationalConvolution": _relational_convolution,
    "RelationalCrossAttention": _relational_cross_attention,
    "RelationalMemoryCell": _relational_memory_cell,
    "RelationalTransformerBlock": _transformer_block,
    "SCOFF": _scoff,
    "SCOFFCell": _scoff_cell,
    "SharedWorkspace": _shared_workspace,
    "SimplicialTransformerBlock": _simplicial_block,
    "SlidingWindowNormalization": _sliding_window,
    "SlotAttention": _slot_attention,
    "SlotPooling": _slot_pooling,
    "StridedConv2D": _convolution,
    "SymbolicAttention": _symbolic_attention,
    "TemporalContextNormalization": _context,
    "TimeFolded": _time_folded,
    "TwoSimplicialAttention": _two_simplicial,
    "VirtualEntities": _virtual_entities,
}
