"""Exports models as SavedModels for TensorFlow Serving."""

import os
import tempfile

import keras

from keras_relational.serving.endpoints import endpoints
from keras_relational.serving.saved_model_files import write_warmup_requests
from keras_relational.serving.serving_api import serving_api
from keras_relational.validation import check_positive_integers


def export_model(
    model: keras.Model,
    path: str | os.PathLike,
    version: int = 1,
    outputs: str | None = None,
) -> str:
    """Writes a trained model as a SavedModel that can be served.

    The folder `path/version/` has one or two signatures. Both take the model's
    own inputs in batches of any size.

    - `serving_default` gives the model's answer. It depends on the kind of the
      model's output:

      | kind | answer |
      | --- | --- |
      | `"logits"` | `probabilities`, their softmax, and `label`, the largest |
      | `"probabilities"` | `probabilities`, unchanged, and `label` |
      | `"raw"` | the outputs, unchanged, under their own names |

      `label` is an int64 number from 0.

    - `propositions` exists if a layer of the model has a method of that name,
      as `PrediNet` has. It gives all of the above, the layer's propositions
      (`positions_1`, `positions_2`, `distances`) and its attention scores
      (`attention_scores_1`, `attention_scores_2`). With several such layers
      these names begin with `layer_0_`, `layer_1_`, and so on, in the order of
      the computation.

    Names. Inputs and outputs keep the names that the model's author gave them:
    the name of a `keras.Input`, the name of an output in `models.declare` or
    else of the layer that makes the output, or a key of a dictionary. Names
    that Keras made up, such as `keras_tensor_5`, are replaced: a single input
    becomes `inputs` and a single output `outputs`; several become `input_0`,
    `input_1`, and so on. An output of the model with the name of one that a
    signature adds, such as `label`, is refused.

    Several outputs. The answer is the first output whose kind is `"logits"` or
    `"probabilities"`, else the first `"raw"` one, else the first of all. The
    others follow under their names. A model with states, such as an agent of
    `models.boxworld_agent` with a memory, also returns each new state under the
    name of the input, such as `state_0`. Send it with the next request.

    Batches. With the normalizations `"batch"`, `"sub_batch"`, `"misaligned"`,
    `"sliding_window"` and `"temporal_and_batch"` an answer depends on the other
    examples of the request, or of the batch that a server makes of several
    requests. For a single example, `"batch"` cannot tell candidates apart.

    Requests. The graph itself refuses invalid inputs: another shape, different
    batch sizes, NaN and infinite numbers, and an index out of bounds in a
    `CategoryEncoding`, an `Embedding` or any layer with a method
    `index_bounds`. It also refuses to answer if logits or probabilities are
    NaN. An empty batch gives an empty answer. All other batches give all rows
    of each output, also if there are more than examples. Servers that combine
    requests refuse such a model.

    Floating-point outputs are float32 under any dtype policy. Nothing is
    compiled with XLA, because a server without XLA, such as TensorFlow Serving
    on a CPU, would fail on every request. Warm-up requests are in
    `assets.extra`. The version is written to a temporary folder in `path` and
    then renamed, so a server that watches `path` never sees half a version.

    Args:
        model: Built functional or sequential `keras.Model`.
        path: Folder of the model, a server's `--model-dir`. It is created if it
            does not exist.
        version: Positive integer. Servers serve the highest version.
        outputs: Kind of the model's answer: `"logits"`, `"probabilities"` or
            `"raw"`. By default `models.roles` tells it: all models in
            `keras_relational.models` declare it, and of others it is known if
            a softmax makes the output; if the output's layer is called
            `"logits"`, `"policy"`, `"probabilities"` or `"predicted"` (raw); or
            if the model was compiled with a categorical cross-entropy of
            logits.

    Returns:
        Path of the version's folder.

    Raises:
        FileExistsError: If the version exists. It is never overwritten.
        ImportError: If the extra `serving` is not installed.
        RuntimeError: If Keras runs on another backend than TensorFlow.
        ValueError: If `version` is not a positive integer; if the model is not
            built; if the kind of its answer is not certain; if the answer
            should be logits or probabilities, and is not a choice among two
            classes or more, `(batch, ..., num_classes)`; if two inputs or two
            outputs have one name; or if an output has no axis for the batch.

    Example:

    ```python
    model = keras_relational.models.relations_classifier()
    serving.export_model(model, "relations", version=1)  # → relations/1

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    serving.export_model(model, "prices", outputs="raw")  # A regression.
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
    serving_api("prediction_log_pb2")  # Fails before the work, not after it.
    functions, input_signature = endpoints(model, outputs)
    target = os.path.join(path, str(version))
    if os.path.lexists(target):
        raise _version_exists(target)
    os.makedirs(path, exist_ok=True)
    # Servers only look at folders whose names are numbers.
    with tempfile.TemporaryDirectory(dir=path, prefix=".export-") as aside:
        folder = os.path.join(aside, str(version))
        _write_saved_model(model, functions, input_signature, folder)
        write_warmup_requests(folder)
        try:
            os.rename(folder, target)
        except OSError as error:
            if not os.path.lexists(target):
                raise
            raise _version_exists(target) from error
    return target


def _version_exists(target):
    return FileExistsError(
        f"{target} exists, and a version is never overwritten, because servers "
        "may have it open. Export under a higher `version`, or remove that "
        "folder first."
    )


def _write_saved_model(model, functions, input_signature, folder):
    archive = keras.export.ExportArchive()
    archive.track(model)
    for name, function in functions.items():
        archive.add_endpoint(name, function, input_signature)
    archive.write_out(folder, verbose=False)
