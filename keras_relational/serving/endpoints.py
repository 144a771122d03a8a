"""The signatures of an exported model, as functions of a TensorFlow graph."""

import contextlib
import inspect
import re
from collections.abc import Callable

import keras
import tensorflow as tf

from keras_relational.models.declared_roles import KINDS
from keras_relational.models.declared_roles import Roles
from keras_relational.models.declared_roles import numbered
from keras_relational.models.declared_roles import roles
from keras_relational.serving.graph_checks import asserted_indices
from keras_relational.serving.graph_checks import at_least_one_row
from keras_relational.serving.graph_checks import before_calls
from keras_relational.serving.graph_checks import checked_inputs
from keras_relational.serving.graph_checks import without_nan


def endpoints(
    model: keras.Model, kind: str | None = None
) -> tuple[dict[str, Callable], list[tf.TensorSpec]]:
    """The signatures of an export, as functions of a graph.

    Args:
        model: Built functional or sequential `keras.Model`.
        kind: Kind of the output that is the model's answer: `"logits"`,
            `"probabilities"` or `"raw"`. By default `models.roles` tells.

    Returns:
        Dictionary from the names of signatures to functions, and the list of
        `tf.TensorSpec` that each function takes.

    Raises:
        ValueError: If the model is not built, if the kind of its answer is
            unknown or not certain, or if an answer that should be a choice is
            not a choice among two classes or more.
    """
    if kind not in (None, *KINDS):
        raise ValueError(
            f"`outputs` must be one of {', '.join(map(repr, KINDS))}, or None. "
            f"Received: outputs={kind!r}"
        )
    declared = roles(model)
    names = [*declared.outputs, *declared.states]
    answer_index = _answer_index(declared)
    kind = kind or declared.outputs[names[answer_index]]
    _check_kind(model, kind, answer_index)
    input_signature = [
        tf.TensorSpec((None, *x.shape[1:]), x.dtype, name=name)
        for x, name in zip(model.inputs, _input_names(model), strict=True)
    ]
    # Takes a list of inputs, whatever the structure of the model's inputs.
    of_lists = keras.Model(model.inputs, model.outputs)
    layers = _layers_with_propositions(model)

    def answer(inputs):
        inputs = at_least_one_row(checked_inputs(input_signature, inputs))
        with asserted_indices(model):
            outputs = keras.tree.flatten(of_lists(inputs, training=False))
        named = dict(zip(names, outputs, strict=True))
        if kind != "raw":
            named |= _choice(kind, named.pop(names[answer_index]))
        return named

    def serving_default(*inputs):
        return _finished(answer(inputs), inputs)

    def propositions(*inputs):
        with _recorded_calls(layers) as calls:
            outputs = answer(inputs)
        for number, call in enumerate(calls):
            prefix = f"layer_{number}_" if len(calls) > 1 else ""
            for name, value in _propositions(*call).items():
                outputs[prefix + name] = value
        return _finished(outputs, inputs)

    functions = {"serving_default": serving_default}
    if layers:
        functions["propositions"] = propositions
    return functions, input_signature


def _answer_index(declared: Roles):
    """The place of the answer: a choice before anything else."""
    kinds = list(declared.outputs.values())
    for wanted in (("logits", "probabilities"), ("raw",)):
        for index, kind in enumerate(kinds):
            if kind in wanted:
                return index
    return 0


def _check_kind(model, kind, answer_index):
    output = model.outputs[answer_index]
    if kind is None:
        layer = output._keras_history.operation
        raise ValueError(
            "The kind of the model's answer is not certain: its first output, "
            f"of shape {output.shape}, comes from the layer {layer.name!r}. "
            "Pass export_model(..., outputs='logits') where a softmax of it "
            "gives the probabilities of classes, 'probabilities' where it is "
            "these already, 'raw' for anything else, such as a regression or "
            "an image. Or declare it, by models.declare."
        )
    shape = tuple(output.shape)
    if kind != "raw" and (len(shape) < 2 or shape[-1] == 1):
        raise ValueError(
            f"The model's answer cannot be {kind}: these need two classes or "
            "more, and shape (batch, num_classes). Use outputs='raw' for a "
            f"single number. Received: {model!r} with an output of shape "
            f"{shape}"
        )


def _input_names(model):
    # Keras sorts the inputs of a dictionary by their keys.
    structure = getattr(model, "input", None)
    keys = sorted(structure) if isinstance(structure, dict) else ()
    given = keys or [
        None
        if re.fullmatch(r"(keras_tensor|input_layer)(_\d+)?", name)
        else name
        for name in (x.name for x in model.inputs)
    ]
    return numbered(given, "input")


def _layers_with_propositions(model):
    return [
        layer
        for layer in model._flatten_layers(include_self=False)
        if hasattr(layer, "propositions")
    ]


@contextlib.contextmanager
def _recorded_calls(layers):
    """Yields a list that collects each call of the layers: what, with what."""
    calls = []

    def record(layer, *args, **kwargs):
        calls.append((layer, args, kwargs))

    with before_calls(layers, record):
        yield calls


def _propositions(layer, args, kwargs):
    """The propositions and attention scores of a layer for a recorded call."""
    known = inspect.signature(layer.propositions).parameters
    accepted = {name: x for name, x in kwargs.items() if name in known}
    outputs = dict(layer.propositions(*args, **accepted))
    if "return_attention_scores" in inspect.signature(layer.call).parameters:
        kwargs = {**kwargs, "return_attention_scores": True}
        _, scores = layer(*args, **kwargs)
        for number, mask in enumerate(keras.tree.flatten(scores), start=1):
            outputs[f"attention_scores_{number}"] = mask
    return outputs


def _choice(kind, values):
    values = without_nan(tf.cast(values, tf.float32))
    return {
        "probabilities": tf.nn.softmax(values) if kind == "logits" else values,
        "label": tf.argmax(values, axis=-1, output_type=tf.int64),
    }


def _finished(outputs, inputs):
    """The outputs in types that JSON has, with as many rows as the inputs."""
    batch_size = tf.shape(inputs[0])[0]
    return {
        name: tf.cast(x, tf.float32 if x.dtype.is_floating else x.dtype)[
            :batch_size
        ]
        for name, x in outputs.items()
    }
