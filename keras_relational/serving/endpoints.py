"""The signatures of an exported model, as functions of a TensorFlow graph."""

import contextlib
import inspect
import re
from collections.abc import Callable

import keras
import tensorflow as tf

from keras_relational.models.declared_roles import KINDS
from keras_relational.models.declared_roles import answer_index
from keras_relational.models.declared_roles import numbered
from keras_relational.models.declared_roles import paths_in
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

    `kind` is the kind of the model's answer. By default `models.roles` tells
    it. Returns functions by the names of their signatures, and the
    `tf.TensorSpec`s that each function takes. A function raises a `ValueError`
    if the model has an output of a name that the function adds.
    """
    if kind not in (None, *KINDS):
        raise ValueError(
            f"`outputs` must be one of {', '.join(map(repr, KINDS))}, or None. "
            f"Received: outputs={kind!r}"
        )
    declared = roles(model)
    place = answer_index(declared)
    input_names = _input_names(model)
    # A new state is sent back under the name of the input.
    states = input_names[len(input_names) - len(declared.states) :]
    names = [*declared.outputs, *states]
    kind = kind or declared.outputs[names[place]]
    _check_kind(model, kind, place)
    _check_batched(names, model.outputs)
    input_signature = [
        tf.TensorSpec((None, *x.shape[1:]), x.dtype, name=name)
        for x, name in zip(model.inputs, input_names, strict=True)
    ]
    # Takes a list of inputs, whatever the structure of the model's inputs.
    of_lists = keras.Model(model.inputs, model.outputs)
    layers = [
        layer
        for layer in model._flatten_layers(include_self=False)
        if hasattr(layer, "propositions")
    ]

    def answer(inputs):
        inputs = at_least_one_row(checked_inputs(input_signature, inputs))
        with asserted_indices(model):
            outputs = keras.tree.flatten(of_lists(inputs, training=False))
        named = dict(zip(names, outputs, strict=True))
        if kind == "raw":
            return named
        choice = _choice(kind, named.pop(names[place]))
        return _with_others(named, choice, ", or pass outputs='raw'")

    def serving_default(*inputs):
        return _finished(answer(inputs), inputs)

    def propositions(*inputs):
        with _recorded_calls(layers) as calls:
            outputs = answer(inputs)
        for number, call in enumerate(calls):
            prefix = f"layer_{number}_" if len(calls) > 1 else ""
            found = _propositions(*call).items()
            others = {prefix + name: value for name, value in found}
            outputs = _with_others(outputs, others)
        return _finished(outputs, inputs)

    functions = {"serving_default": serving_default}
    if layers:
        functions["propositions"] = propositions
    return functions, input_signature


def _check_kind(model, kind, place):
    output = model.outputs[place]
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


def _check_batched(names, outputs):
    for name, output in zip(names, outputs, strict=True):
        if len(output.shape) == 0:
            raise ValueError(
                "An output needs an axis for the batch. Received: the output "
                f"{name!r}, a single number for all examples. Leave it out, by "
                "keras.Model(model.inputs, the other outputs)"
            )


def _input_names(model):
    structure = getattr(model, "input", None)
    given = [
        None
        if re.fullmatch(r"(keras_tensor|input_layer)(_\d+)?", name)
        else name
        for name in (x.name for x in model.inputs)
    ]
    if isinstance(structure, dict):
        given = paths_in(structure)
    return numbered(given, "input")


@contextlib.contextmanager
def _recorded_calls(layers):
    """Yields a list of the layers' calls: layer, arguments, and keywords."""
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


def _with_others(outputs, others, advice=""):
    """The outputs joined with those that the export adds.

    A `ValueError` says if two have one name; it ends with `advice`.
    """
    for name in others:
        if name in outputs:
            raise ValueError(
                f"The export adds an output {name!r}, and the model has one of "
                "that name. Give the model's own another name, by "
                f"models.declare(model, ...){advice}"
            )
    return outputs | others


def _finished(outputs, inputs):
    """The outputs in types that JSON has, without rows for an empty batch."""
    is_empty = tf.equal(tf.shape(inputs[0])[0], 0)

    def finished(x):
        rows = tf.where(is_empty, 0, tf.shape(x)[0])
        return tf.cast(x, tf.float32 if x.dtype.is_floating else x.dtype)[:rows]

    return {name: finished(x) for name, x in outputs.items()}
