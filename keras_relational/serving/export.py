"""SavedModels that TensorFlow Serving takes."""

import os
import tempfile

import keras

from keras_relational.serving.endpoints import endpoints
from keras_relational.serving.serving_api import serving_api
from keras_relational.serving.warmup import write_warmup_requests
from keras_relational.validation import check_positive_integers


def export_model(model, path, version=1, outputs=None):
    """Writes a trained model as a SavedModel that can be served.

    The folder `path/version/` has one or two signatures. Both take the model's
    own inputs in batches of any size:

    - `serving_default`, the model's answer. It depends on what the model puts
      out:

      | it puts out | answered |
      | --- | --- |
      | `"logits"` | `probabilities`, their softmax, and `label`, the largest |
      | `"probabilities"` | `probabilities`, as they are, and `label` |
      | `"raw"` | the outputs as they are, under their own names |

      `label` is an int64 number from 0.

    - `propositions`, where a layer of the model has a method of that name, as
      `PrediNet` has: all of the above, the layer's propositions
      (`positions_1`, `positions_2`, `distances`) and its attention masks
      (`attention_scores_1`, `attention_scores_2`). With several such layers
      the names begin with `layer_0_`, `layer_1_`, and so on, in the order of
      the computation.

    Names. Inputs and outputs keep the names that the model's author gave them:
    that of a `keras.Input`, that of the layer that makes an output, or a key.
    Names that Keras made up, such as `keras_tensor_5`, are replaced: an only
    input is called `inputs`, an only output `outputs`, several are `input_0`,
    `input_1`, and so on.

    Models with several outputs, such as the agents that `boxworld_agent`
    builds, have the first one answered as above; the others follow under their
    names. Where inputs are called `state_0`, `state_1` and so on, the model's
    last outputs are the states that follow, and have the same names: send
    them with the next request.

    Where a normalization uses the batch at hand (`"batch"`, `"sub_batch"`,
    `"misaligned"`, `"sliding_window"`, `"temporal_and_batch"`), an answer
    depends on what else is in the request, or in the batch that a server makes
    of several; alone, `"batch"` cannot tell candidates apart.

    Requests. The graph itself refuses, as an invalid argument: inputs of other
    shapes; inputs of different batch sizes; NaN and infinite numbers; and a
    number that names nothing, such as the id of a fourth task of three, where
    a `CategoryEncoding`, an `Embedding` or the images of an analogy are looked
    up by it. It refuses to answer where logits or probabilities come out as
    NaN. An empty batch gives an empty answer.

    Floating-point outputs are float32 under any dtype policy. Nothing is
    compiled with XLA: a server without XLA, as TensorFlow Serving is on a CPU,
    would fail on every request. Warm-up requests lie in `assets.extra`.

    All is written to a temporary folder in `path` and then renamed, so a server
    that watches `path` never sees half a version. A version that exists is
    never overwritten.

    Args:
        model: Built functional or sequential `keras.Model`.
        path: Folder of the model, made if it is missing; a server's
            `--model-dir`.
        version: Positive integer; servers pick the highest.
        outputs: What the model's first output is, `"logits"`,
            `"probabilities"` or `"raw"`. It may be left out where that is
            certain: the output is made by a softmax; or by a layer named
            `"logits"`, `"policy"`, `"probabilities"` or `"predicted"` (raw),
            as in the models of `keras_relational.models`; or the model was
            compiled with a categorical cross-entropy of logits.

    Returns:
        Path of the version's folder.

    Raises:
        FileExistsError: If that version exists.
        ImportError: If the extra `serving` is not installed.
        RuntimeError: If Keras runs on another backend than TensorFlow.
        ValueError: If `version` is not a positive integer; if the model is not
            built; if it is not certain what its outputs are; or if they are no
            choice among two classes or more, `(batch, ..., num_classes)`, but
            are said to be logits or probabilities.

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
    serving_api("prediction_log_pb2")  # Rather now than after the work.
    functions, input_signature = endpoints(model, outputs)
    target = os.path.join(path, str(version))
    if os.path.lexists(target):
        raise FileExistsError(_exists(target))
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
            raise FileExistsError(_exists(target)) from error
    return target


def _exists(target):
    return (
        f"{target} exists, and a version is never overwritten: servers may "
        "have it open. Export under a higher `version`, or remove that folder "
        "first."
    )


def _write_saved_model(model, functions, input_signature, folder):
    archive = keras.export.ExportArchive()
    archive.track(model)
    for name, function in functions.items():
        archive.add_endpoint(name, function, input_signature)
    archive.write_out(folder, verbose=False)
