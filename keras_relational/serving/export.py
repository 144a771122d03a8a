"""SavedModels that TensorFlow Serving takes."""

import inspect
import os
import tempfile

import keras
import tensorflow as tf

from keras_relational.layers.shared import check_positive_integers
from keras_relational.serving.serving_api import serving_api
from keras_relational.serving.warmup import write_warmup_requests


def export_model(model, path, version=1):
    """Writes a trained model as a SavedModel that can be served.

    The folder `path/version/` has one or two signatures. Both take the model's
    own inputs, under their own names and data types, in batches of any size:

    - `serving_default` → `probabilities` `(batch, num_classes)`, the softmax of
      the model's logits, and `label` `(batch,)`, int64, the largest of them.
    - `propositions`, where the layer named `"central"` has a method of that
      name, as `PrediNet` has: the same two, the layer's propositions
      (`positions_1`, `positions_2`, `distances`) and, if it attends, its masks
      (`attention_scores_1`, `attention_scores_2`).

    The classes of `models.analogy_scorer`, and of the others that choose, are
    the candidates. Where a normalization uses the batch at hand (`"batch"`,
    `"sub_batch"`, `"misaligned"`, `"sliding_window"`, `"temporal_and_batch"`),
    an answer depends on what else is in the request, or in the batch that a
    server makes of several; alone, `"batch"` cannot tell candidates apart.

    An agent, as `models.boxworld_agent` builds, has the first of them: the
    probabilities are those of its actions, `label` is the likeliest. Its other
    outputs follow under their own names: `value`, and, where it has a memory,
    the states after the last frame under the names that they have as inputs,
    `state_0` and so on, to be sent with the next request.

    A model that predicts images, such as `models.object_predictor`, or
    whatever a layer named `"decoder"` puts out, as a generative
    `models.rule_learner` has, has one signature too, whose output is
    `predicted`: what is decoded, or not `(batch, num_classes)`, is no logits.

    Floating-point outputs are float32 under any dtype policy. An input of
    another shape is refused by the graph itself. Nothing is compiled with XLA:
    a server without XLA, as TensorFlow Serving is on a CPU, would fail on every
    request. Warm-up requests lie in `assets.extra`.

    All is written to a temporary folder in `path` and then renamed, so a server
    that watches `path` never sees half a version. A version that exists is
    never overwritten.

    Args:
        model: Built `keras.Model` with one output, logits
            `(batch, num_classes)` or images, or an agent.
        path: Folder of the model, made if it is missing; a server's
            `--model-dir`.
        version: Positive integer; servers pick the highest.

    Returns:
        Path of the version's folder.

    Raises:
        FileExistsError: If that version exists.
        ImportError: If the extra `serving` is not installed.
        RuntimeError: If Keras runs on another backend than TensorFlow.
        ValueError: If `version` is not a positive integer, or the model is not
            built or has other outputs than these.

    Example:

    ```python
    model = keras_relational.models.relations_classifier()
    serving.export_model(model, "relations", version=1)  # → relations/1
    ```
    """
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            "`export_model` writes TensorFlow graphs, and Keras runs on "
            f"{keras.backend.backend()!r} here. Save the model with "
            "model.save('model.keras'), then load and export it in a process "
            "that was started with KERAS_BACKEND=tensorflow."
        )
    check_positive_integers(version=version)
    serving_api("prediction_log_pb2")  # Rather now than after the work.
    _extra_outputs(model)
    target = os.path.join(path, str(version))
    if os.path.lexists(target):
        raise FileExistsError(_exists(target))
    os.makedirs(path, exist_ok=True)
    # Servers only look at folders whose names are numbers.
    with tempfile.TemporaryDirectory(dir=path, prefix=".export-") as aside:
        folder = os.path.join(aside, str(version))
        _write_saved_model(model, folder)
        write_warmup_requests(folder)
        try:
            os.rename(folder, target)
        except OSError as error:
            if not os.path.lexists(target):
                raise
            raise FileExistsError(_exists(target)) from error
    return target


def _exists(target):
    return (
        f"{target} exists, and a version is never overwritten: servers may "
        "have it open. Export under a higher `version`, or remove that folder "
        "first."
    )


def _extra_outputs(model):
    """The names of the outputs beside the logits, in their order."""
    outputs = getattr(model, "outputs", None) or ()
    shapes = [tuple(x.shape) for x in outputs]
    names = []
    if _predicts(model):
        return names
    if len(shapes) > 1 and shapes[1] == shapes[0][:-1]:
        names = ["value", *(x.name for x in model.inputs[2:])]
    # Agents with a memory have an axis of time.
    rank = 3 if len(names) > 1 else 2
    if len(shapes) != 1 + len(names) or len(shapes[0]) != rank:
        raise ValueError(
            "`model` must be a built Keras model with one output, logits of "
            "shape (batch, num_classes), such as `relations_classifier` "
            "returns, or images, such as `object_predictor` returns, or an "
            "agent, such as `boxworld_agent` returns. Received: "
            f"{model!r} with output shapes {shapes}"
        )
    return names


def _predicts(model):
    """Whether its one output is something else than logits."""
    outputs = getattr(model, "outputs", None) or ()
    if len(outputs) != 1:
        return False
    decodes = any(layer.name == "decoder" for layer in model.layers)
    return decodes or len(outputs[0].shape) > 2


def _write_saved_model(model, folder):
    input_signature = [
        tf.TensorSpec((None, *x.shape[1:]), x.dtype, name=x.name)
        for x in model.inputs
    ]
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serving_default", _answering(model), input_signature)
    central = _central_layer(model)
    if hasattr(central, "propositions"):
        archive.add_endpoint(
            "propositions", _reasoning(model, central), input_signature
        )
    archive.write_out(folder, verbose=False)


def _central_layer(model):
    layers = [layer for layer in model.layers if layer.name == "central"]
    return layers[0] if layers else None


def _answering(model):
    names = _extra_outputs(model)
    # Takes a list of inputs, whatever structure the model's own have.
    of_lists = keras.Model(model.inputs, model.outputs)

    def serving_default(*inputs):
        outputs = of_lists(_checked(model, inputs), training=False)
        if _predicts(model):
            (predicted,) = keras.tree.flatten(outputs)
            return _float32({"predicted": predicted})
        logits, *others = keras.tree.flatten(outputs)
        others = dict(zip(names, others, strict=True))
        return {**_float32(others), **_answer(logits)}

    return serving_default


def _reasoning(model, central):
    to_entities_and_logits = keras.Model(
        model.inputs, [central.input, model.outputs[0]]
    )
    attends = (
        "return_attention_scores" in inspect.signature(central.call).parameters
    )

    def propositions(*inputs):
        entities, logits = to_entities_and_logits(
            _checked(model, inputs), training=False
        )
        outputs = dict(central.propositions(entities))
        if attends:
            _, scores = central(entities, return_attention_scores=True)
            for number, mask in enumerate(keras.tree.flatten(scores), start=1):
                outputs[f"attention_scores_{number}"] = mask
        return {**_float32(outputs), **_answer(logits)}

    return propositions


def _checked(model, inputs):
    """Refuses inputs of other shapes, in the graph.

    Without it a server would answer for any shape that has the right number of
    values.
    """
    return [
        tf.ensure_shape(x, (None, *spec.shape[1:]))
        for x, spec in zip(inputs, model.inputs, strict=True)
    ]


def _answer(logits):
    return {
        "probabilities": tf.nn.softmax(tf.cast(logits, tf.float32)),
        "label": tf.argmax(logits, axis=-1, output_type=tf.int64),
    }


def _float32(outputs):
    """float16 and bfloat16 have no JSON in TensorFlow Serving."""
    return {
        name: tf.cast(x, tf.float32) if x.dtype.is_floating else x
        for name, x in outputs.items()
    }
