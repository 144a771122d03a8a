"""What an exported model is asked and what it answers, as graph functions."""

import contextlib
import functools
import inspect
import re

import keras
import tensorflow as tf

from keras_relational.models.analogy_scorer import CandidateSequences

KINDS = ("logits", "probabilities", "raw")

# What an output is whose layer has this name.
_KIND_OF_NAME = {
    "logits": "logits",
    "policy": "logits",
    "probabilities": "probabilities",
    "predicted": "raw",
}

_CROSS_ENTROPIES = (
    keras.losses.CategoricalCrossentropy,
    keras.losses.SparseCategoricalCrossentropy,
)

# Layers that look something up by its number.
_LOOK_UP = (
    CandidateSequences,
    keras.layers.CategoryEncoding,
    keras.layers.Embedding,
)


def endpoints(model, kind=None):
    """The signatures of an export, as functions of a graph.

    Args:
        model: Built functional or sequential `keras.Model`.
        kind: What its first output is, one of `KINDS`; found out if `None`.

    Returns:
        Dictionary from the names of signatures to functions, and the list of
        `tf.TensorSpec` that each of them takes.

    Raises:
        ValueError: As `export_model`.
    """
    if kind not in (None, *KINDS):
        raise ValueError(
            f"`outputs` must be one of {', '.join(map(repr, KINDS))}, or None. "
            f"Received: outputs={kind!r}"
        )
    if not getattr(model, "outputs", None) or not model.inputs:
        raise ValueError(
            "`model` must be a functional or sequential Keras model that is "
            "built, so that the shapes of its inputs are known. Give it a "
            f"keras.Input, or call it once. Received: {model!r}"
        )
    names = _output_names(model)
    answered = _answered_output(model, names)
    kind = kind or _kind(model, answered, names)
    if kind != "raw":
        _check_classes(model, kind, answered)
    input_signature = [
        tf.TensorSpec((None, *x.shape[1:]), x.dtype, name=name)
        for x, name in zip(model.inputs, _input_names(model), strict=True)
    ]
    # Takes a list of inputs, whatever structure the model's own have.
    of_lists = keras.Model(model.inputs, model.outputs)
    reasoners = _layers_with_propositions(model)

    def answer(inputs):
        inputs = _one_row_or_more(_checked(input_signature, inputs))
        with _ranges_asserted(model):
            outputs = keras.tree.flatten(of_lists(inputs, training=False))
        named = dict(zip(names, outputs, strict=True))
        if kind != "raw":
            named |= _choice(kind, named.pop(names[answered]))
        return named

    def serving_default(*inputs):
        return _finished(answer(inputs), inputs)

    def propositions(*inputs):
        with _recorded_calls(reasoners) as calls:
            outputs = answer(inputs)
        for number, call in enumerate(calls):
            prefix = f"layer_{number}_" if len(calls) > 1 else ""
            for name, value in _propositions(*call).items():
                outputs[prefix + name] = value
        return _finished(outputs, inputs)

    functions = {"serving_default": serving_default}
    if reasoners:
        functions["propositions"] = propositions
    return functions, input_signature


# What the model is.


def _answered_output(model, names):
    """The position of the output that is the model's answer."""
    known = [i for i, name in enumerate(names) if name in _KIND_OF_NAME]
    return known[0] if len(known) == 1 else 0


def _kind(model, answered, names):
    """What that output is, where it is certain."""
    output = model.outputs[answered]
    layer = output._keras_history.operation
    if _is_softmax(layer, len(output.shape)):
        return "probabilities"
    if names[answered] in _KIND_OF_NAME:
        return _KIND_OF_NAME[names[answered]]
    loss = getattr(model, "loss", None)
    if (
        len(model.outputs) == 1
        and isinstance(loss, _CROSS_ENTROPIES)
        and loss.get_config()["from_logits"]
    ):
        return "logits"
    raise ValueError(
        "What the model puts out is not certain: its first output, of shape "
        f"{output.shape}, is made by the layer {layer.name!r}. Say it: "
        "export_model(..., outputs='logits') where a softmax of it gives the "
        "probabilities of classes, 'probabilities' where it is these already, "
        "'raw' for anything else, such as a regression or an image."
    )


def _is_softmax(layer, rank):
    if isinstance(layer, keras.layers.Softmax):
        return layer.axis in (-1, rank - 1)
    return getattr(layer, "activation", None) is keras.activations.softmax


def _check_classes(model, kind, answered):
    shape = tuple(model.outputs[answered].shape)
    if len(shape) < 2 or shape[-1] == 1:
        raise ValueError(
            f"`model` was to put out {kind} of two classes or more, of shape "
            "(batch, num_classes). Use outputs='raw' for a single number. "
            f"Received: {model!r} with an output of shape {shape}"
        )


def _input_names(model):
    # A dictionary's keys are sorted, as Keras sorts the inputs.
    structure = getattr(model, "input", None)
    keys = sorted(structure) if isinstance(structure, dict) else ()
    given = keys or [
        None
        if re.fullmatch(r"(keras_tensor|input_layer)(_\d+)?", name)
        else name
        for name in (x.name for x in model.inputs)
    ]
    return _numbered(given, "input")


def _output_names(model):
    structure = getattr(model, "output", None)  # Of a Sequential, none.
    if isinstance(structure, dict):
        return sorted(structure)
    layers = [x._keras_history.operation for x in model.outputs]
    names = [None if _is_made_up(x) else x.name for x in layers]
    states = [x.name for x in model.inputs if re.match(r"state_\d+$", x.name)]
    if states and len(states) < len(names):
        names[-len(states) :] = states
    # Those of one layer with several outputs would be alike.
    return _numbered(
        [x if names.count(x) == 1 else None for x in names], "output"
    )


def _is_made_up(layer):
    """Whether Keras named the layer, after its class."""
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", type(layer).__name__)
    name = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
    return re.fullmatch(rf"{name}(_\d+)?", layer.name) is not None


def _numbered(names, word):
    """The names that were given, and numbers for the others."""
    if names == [None]:
        return [f"{word}s"]
    return [x or f"{word}_{i}" for i, x in enumerate(names)]


def _layers_with_propositions(model):
    return [
        layer
        for layer in model._flatten_layers(include_self=False)
        if hasattr(layer, "propositions")
    ]


# What the graph does.


def _checked(input_signature, inputs):
    """The inputs, once the graph has found nothing wrong with them.

    Without it a server would answer for any shape that has the right number of
    values, and one row of an input for every row of another.
    """
    inputs = [
        tf.ensure_shape(x, spec.shape)
        for x, spec in zip(inputs, input_signature, strict=True)
    ]
    names = [spec.name for spec in input_signature]
    batch_size = tf.shape(inputs[0])[0]
    assertions = [
        tf.debugging.assert_equal(
            tf.shape(x)[0],
            batch_size,
            f"The inputs {names[0]} and {name} must have one batch size",
        )
        for name, x in zip(names[1:], inputs[1:], strict=True)
    ]
    assertions += [
        tf.debugging.assert_equal(
            tf.reduce_all(tf.math.is_finite(x)),
            True,
            f"The input {name} must be finite. Received: NaN or infinity",
        )
        for name, x in zip(names, inputs, strict=True)
        if x.dtype.is_floating
    ]
    with tf.control_dependencies(assertions):
        return [tf.identity(x) for x in inputs]


@contextlib.contextmanager
def _ranges_asserted(model):
    """Adds assertions where layers of the model look something up by number."""

    def assert_range(layer, *args, **kwargs):
        call = inspect.signature(type(layer).call)
        arguments = call.bind(layer, *args, **kwargs).arguments
        if isinstance(layer, CandidateSequences):
            limit = tf.shape(arguments["embeddings"])[1]
            return _in_range(
                arguments["context"], limit, "context", "the number of images"
            ) + _in_range(
                arguments["candidates"],
                limit,
                "candidates",
                "the number of images",
            )
        is_code = isinstance(layer, keras.layers.CategoryEncoding)
        limit = layer.num_tokens if is_code else layer.input_dim
        return _in_range(arguments["inputs"], limit, layer.name, limit)

    layers = [
        layer
        for layer in model._flatten_layers(include_self=False)
        if isinstance(layer, _LOOK_UP)
    ]
    with _intercepted(layers, assert_range):
        yield


def _in_range(numbers, limit, name, limit_name):
    numbers = tf.cast(numbers, tf.int64)
    message = f"A number of {name} must be 0 or more, and below {limit_name}"
    return [
        tf.debugging.assert_non_negative(numbers, message),
        tf.debugging.assert_less(numbers, tf.cast(limit, tf.int64), message),
    ]


@contextlib.contextmanager
def _recorded_calls(layers):
    """Yields a list, filled with what the layers are called with."""
    calls = []

    def record(layer, *args, **kwargs):
        calls.append((layer, args, kwargs))

    with _intercepted(layers, record):
        yield calls


@contextlib.contextmanager
def _intercepted(layers, before):
    """Runs a function before each call of the layers.

    What it returns, assertions, comes before what the layer computes.
    """

    def intercept(layer):
        call = layer.call

        @functools.wraps(call)
        def intercepted(*args, **kwargs):
            with tf.control_dependencies(before(layer, *args, **kwargs) or ()):
                return call(*args, **kwargs)

        layer.call = intercepted

    for layer in layers:
        intercept(layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.call


def _propositions(layer, args, kwargs):
    """The propositions and attention masks of a layer that was called so."""
    known = inspect.signature(layer.propositions).parameters
    kept = {name: x for name, x in kwargs.items() if name in known}
    outputs = dict(layer.propositions(*args, **kept))
    if "return_attention_scores" in inspect.signature(layer.call).parameters:
        kwargs = {**kwargs, "return_attention_scores": True}
        _, scores = layer(*args, **kwargs)
        for number, mask in enumerate(keras.tree.flatten(scores), start=1):
            outputs[f"attention_scores_{number}"] = mask
    return outputs


def _choice(kind, values):
    values = tf.cast(values, tf.float32)
    assertion = tf.debugging.assert_equal(
        tf.reduce_any(tf.math.is_nan(values)),
        False,
        "The answer to these inputs is not a number",
    )
    with tf.control_dependencies([assertion]):
        values = tf.identity(values)
    return {
        "probabilities": tf.nn.softmax(values) if kind == "logits" else values,
        "label": tf.argmax(values, axis=-1, output_type=tf.int64),
    }


def _one_row_or_more(inputs):
    """The inputs; in place of an empty batch, one row of zeros.

    Convolutions fail on an empty batch in TensorFlow's fused kernels.
    """

    def one_row_or_more(x):
        rows = tf.cond(
            tf.equal(tf.shape(x)[0], 0),
            lambda: tf.zeros([1, *tf.unstack(tf.shape(x)[1:])], x.dtype),
            lambda: x,
        )
        return tf.ensure_shape(rows, x.shape)

    return [one_row_or_more(x) for x in inputs]


def _finished(outputs, inputs):
    """The outputs in types that JSON has, as many rows as the inputs have."""
    batch_size = tf.shape(inputs[0])[0]
    return {
        name: tf.cast(x, tf.float32 if x.dtype.is_floating else x.dtype)[
            :batch_size
        ]
        for name, x in outputs.items()
    }
