"""Training in runs that are logged, and can be continued."""

import csv
import hashlib
import importlib.util
import io
import json
import os
import pathlib
import time

import keras
import numpy as np

from keras_relational.datasets.npz import read_npz
from keras_relational.file_io import MAX_TEXT_BYTES
from keras_relational.file_io import write_atomically
from keras_relational.training.minibatches import Minibatches
from keras_relational.training.minibatches import MinibatchModel
from keras_relational.validation import check_positive_integers


def train_classifier(
    model,
    x,
    y,
    num_batches=100_000,
    batch_size=10,
    optimizer=None,
    validation=None,
    batches_per_epoch=5_000,
    steps_per_execution=500,
    directory=None,
    seed=0,
    verbose="auto",
):
    """Trains a classifier on small batches, and takes its learning curves.

    After every epoch the accuracy on each validation set is measured, and, in
    `directory`, the curves are written to `curves.csv` and to `tensorboard/`
    (where TensorFlow and TensorBoard are installed) and everything that is
    needed to go on to `checkpoint.npz`. Called again with the same arguments, a
    run that was killed continues from there, with the result that it would
    have had.

    Args:
        model: A functional `keras.Model` from `x` to logits. It is trained in
            place.
        x: Array of inputs, or a tuple of them.
        y: Integer array of labels.
        num_batches: Number of training steps; a multiple of
            `batches_per_epoch`.
        batch_size: Number of examples of a step.
        optimizer: A Keras optimizer; by default plain SGD with learning rate
            0.01, as in Table S2 of Shanahan et al., 2020.
        validation: Dictionary of names and `(x, y)` pairs.
        batches_per_epoch: Number of training steps between two points of the
            curves; a multiple of `steps_per_execution`.
        steps_per_execution: Number of training steps of one compiled call; on
            torch nothing is compiled.
        directory: Folder for logs and checkpoints; none are kept by default.
        seed: Non-negative integer that fixes the order of the examples.
        verbose: As in `keras.Model.fit`.

    Returns:
        Dictionary of arrays, one entry an epoch: `batches`, `minutes` (time
        spent so far, all parts of the run together), `loss` and `accuracy` (on
        the training examples as they went by), and `NAME_accuracy` for each
        validation set.

    Raises:
        ValueError: If the three numbers of batches do not divide each other,
            or the checkpoint in `directory` is of another model, has another
            `batches_per_epoch`, curves of other validation sets, or is damaged.
    """
    if num_batches % batches_per_epoch or (
        batches_per_epoch % steps_per_execution
    ):
        raise ValueError(
            "`num_batches` must be a multiple of `batches_per_epoch`, and that "
            "of `steps_per_execution`. Received: "
            f"num_batches={num_batches}, batches_per_epoch={batches_per_epoch},"
            f" steps_per_execution={steps_per_execution}"
        )
    trained = MinibatchModel(model.inputs, model.outputs)
    trained.compile(
        optimizer or keras.optimizers.SGD(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=keras.backend.backend() != "torch",
    )
    # Builds the loss and the metrics, from the shape of one batch.
    trained.evaluate(*_rows((x, y), slice(batch_size)), verbose=0)
    trained.optimizer.build(trained.trainable_variables)

    def measure():
        return {
            f"{name}_accuracy": accuracy(model, *test)
            for name, test in (validation or {}).items()
        }

    return fit_and_log(
        trained,
        lambda first: Minibatches(
            x, y, batch_size, steps_per_execution, first, seed
        ),
        num_batches,
        batches_per_epoch,
        measure,
        directory,
        verbose,
        batches_per_item=steps_per_execution,
    )


def adam(learning_rate):
    """Adam with the ε of PyTorch and TensorFlow 1, 1e-8, which the papers had.

    Keras' default, 1e-7, is more than the first gradients of some of their
    models: that of `models.image_autoencoder` is some 1e-9, and with Keras' ε
    it never begins to learn. Like TensorFlow 1, Keras adds ε before it corrects
    the mean of squares for its beginning, PyTorch after: in its terms ε is 32
    times as large at the first step, 1.3 times at the thousandth.

    Args:
        learning_rate: Positive number.

    Returns:
        `keras.optimizers.Adam`.
    """
    return keras.optimizers.Adam(learning_rate, epsilon=1e-8)


def fit_and_log(
    model,
    data_from,
    num_batches,
    batches_per_epoch,
    measure=dict,
    directory=None,
    verbose="auto",
    batches_per_item=1,
):
    """`fit` on data without end, in a run that can be continued.

    What is written to `directory`, and when, is said at `train_classifier`.

    Args:
        model: A compiled `keras.Model`, its weights and those of its optimizer
            built. It is trained in place.
        data_from: Function from the number of an item to a
            `keras.utils.PyDataset` that begins with it and has no end.
        num_batches: Number of training steps; a multiple of
            `batches_per_epoch`.
        batches_per_epoch: Number of training steps between two points of the
            curves.
        measure: Function without arguments to a dictionary of names and
            numbers, called after every epoch.
        directory: Folder for logs and checkpoints; none are kept by default.
        verbose: As in `keras.Model.fit`.
        batches_per_item: Number of training steps of an item of the data.

    Returns:
        Dictionary of arrays, one entry an epoch: `batches`, `minutes` (time
        spent so far, all parts of the run together), what `fit` logs, and what
        `measure` returns.

    Raises:
        ValueError: If `num_batches` is no multiple of `batches_per_epoch`, or
            that none of `batches_per_item`, one of them is not positive, or the
            checkpoint in `directory` is of another model, has another
            `batches_per_epoch`, curves of something else, or is damaged.
    """
    check_positive_integers(
        num_batches=num_batches,
        batches_per_epoch=batches_per_epoch,
        batches_per_item=batches_per_item,
    )
    if num_batches % batches_per_epoch:
        raise ValueError(
            "`num_batches` must be a multiple of `batches_per_epoch`. Received:"
            f" num_batches={num_batches}, batches_per_epoch={batches_per_epoch}"
        )
    if batches_per_epoch % batches_per_item:
        raise ValueError(
            "`batches_per_epoch` must be a multiple of `batches_per_item`. "
            f"Received: batches_per_epoch={batches_per_epoch}, "
            f"batches_per_item={batches_per_item}"
        )
    curves = _Curves(measure, batches_per_epoch, directory)
    initial_epoch = curves.restore(model)
    callbacks = [curves]
    if directory and _installed("tensorflow") and _installed("tensorboard"):
        callbacks.append(
            keras.callbacks.TensorBoard(
                os.path.join(directory, "tensorboard"), write_graph=False
            )
        )
    items_per_epoch = batches_per_epoch // batches_per_item
    model.fit(
        data_from(initial_epoch * items_per_epoch),
        steps_per_epoch=items_per_epoch,
        initial_epoch=initial_epoch,
        epochs=num_batches // batches_per_epoch,
        callbacks=callbacks,
        shuffle=False,
        verbose=verbose,
    )
    return {name: np.array(curve) for name, curve in curves.curves.items()}


def accuracy(model, x, y, batch_size=250):
    """The share of examples whose largest logit is that of their label.

    Args:
        model: A `keras.Model` from `x` to logits.
        x: Array of inputs, or a tuple of them.
        y: Integer array of labels.
        batch_size: Number of examples computed at once.

    Returns:
        Number between 0 and 1.

    Raises:
        ValueError: If there is not one label for each example.
    """
    logits = model.predict(x, batch_size=batch_size, verbose=0)
    if np.shape(y) != logits.shape[:1]:
        raise ValueError(
            f"There must be one label for each of {len(logits)} examples, "
            f"({len(logits)},). Received: y.shape={np.shape(y)}"
        )
    return float(np.mean(logits.argmax(-1) == y))


class _Curves(keras.callbacks.Callback):
    """Measures, logs and checkpoints after every epoch."""

    def __init__(self, measure, batches_per_epoch, directory):
        super().__init__()
        self.measure = measure
        self.batches_per_epoch = batches_per_epoch
        self.directory = directory and pathlib.Path(directory)
        self.curves = {}
        self.started = time.monotonic()

    def restore(self, model):
        """Takes up the last checkpoint; returns the epoch to begin with."""
        path = self.directory and self.directory / "checkpoint.npz"
        if not path or not path.exists():
            return 0
        variables = _state(model)
        self.curves, values = _read_checkpoint(path, variables)
        epoch_length = self.curves["batches"][0]
        if epoch_length != self.batches_per_epoch:
            raise ValueError(
                f"{path} was written with batches_per_epoch={epoch_length}. "
                f"Received: batches_per_epoch={self.batches_per_epoch}. Use "
                "the same, use another directory, or delete it."
            )
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        self.started -= 60 * self.curves["minutes"][-1]
        return len(self.curves["batches"])

    def on_epoch_end(self, epoch, logs=None):
        measured = {k: float(v) for k, v in self.measure().items()}
        logs.update(measured)  # For TensorBoard and the progress line.
        row = {
            "batches": (epoch + 1) * self.batches_per_epoch,
            "minutes": (time.monotonic() - self.started) / 60,
            **logs,
        }
        if self.curves and set(row) != set(self.curves):
            raise ValueError(
                f"The run in {self.directory} has curves of "
                f"{', '.join(self.curves)}. Received: {', '.join(row)}. "
                "Measure the same, use another directory, or delete it."
            )
        for name, value in row.items():
            self.curves.setdefault(name, []).append(value)
        if self.directory:
            self._save()

    def _save(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        save_curves(self.directory, self.curves)
        arrays = io.BytesIO()
        np.savez(
            arrays,
            curves=json.dumps(self.curves),
            **{
                f"variable_{i}": keras.ops.convert_to_numpy(variable)
                for i, variable in enumerate(_state(self.model))
            },
        )
        write_atomically(self.directory / "checkpoint.npz", arrays.getvalue())


def _read_checkpoint(path, variables):
    """Curves, and a value for each variable of this model."""
    shapes = {f"variable_{i}": tuple(x.shape) for i, x in enumerate(variables)}

    def check(headers):
        for name, (shape, dtype) in headers.items():
            if name == "curves":
                if shape or dtype.itemsize > 4 * MAX_TEXT_BYTES:
                    raise ValueError("its curves are no text, or too long")
            elif dtype.kind not in "biuf":
                raise ValueError(f"{name!r} holds no numbers: {dtype}")
        found = {k: x.shape for k, x in headers.items() if k != "curves"}
        if found != shapes:
            raise ValueError(
                f"it holds {len(found)} variables, this run has {len(shapes)}, "
                "or their shapes differ"
            )

    try:
        arrays = read_npz(path, None, "the checkpoint of a run", check)
        curves = json.loads(str(arrays.pop("curves")))
        lengths = {len(np.array(x, "float64")) for x in curves.values()}
        if not {"batches", "minutes"} <= set(curves) or len(lengths) != 1:
            raise ValueError("its curves are not of one length")
        if 0 in lengths:
            raise ValueError("its curves are empty")
        return curves, [arrays[name] for name in shapes]
    # Of any class, from what is neither JSON nor a table of numbers.
    except Exception as error:
        raise ValueError(
            f"{path} is damaged, or of another model or optimizer, and this "
            f"run cannot go on from it: {error or repr(error)} Put an intact "
            "copy in its place, or delete it to begin again."
        ) from error


def save_model(directory, model, name="model.keras"):
    """Keeps a trained model.

    Args:
        directory: `pathlib.Path` of the run, made if it is missing.
        model: A `keras.Model`.
        name: Name of the file.
    """
    directory.mkdir(parents=True, exist_ok=True)
    aside = directory / "partial.keras"  # Keras insists on the ending.
    model.save(aside)
    os.replace(aside, directory / name)


def save_result(directory, result):
    """Prints the figures of a finished run, and keeps them in `result.json`.

    Args:
        directory: `pathlib.Path` of the run.
        result: Dictionary of what JSON can hold.
    """
    print(json.dumps(result))
    content = json.dumps(result, indent=1).encode()
    write_atomically(directory / "result.json", content)


def options_in_name(parser, args, names):
    """What makes the name of a run its own: options other than by default.

    Two runs that differ in an option must not continue each other.

    Args:
        parser: `argparse.ArgumentParser`.
        args: What it has parsed.
        names: Of the options, as attributes of `args`.

    Returns:
        String such as `"-temperature0.5-normalization"`, or an empty one.

    Raises:
        ValueError: If an option is a path, which does not tell what is in it.
    """
    text = ""
    for name in names:
        value = getattr(args, name)
        if value == parser.get_default(name):
            continue
        if isinstance(value, pathlib.Path):
            raise ValueError(
                f"A path does not tell the files in it: add a `data_digest` of "
                f"what was read to the name of the run. Received: {name}="
                f"{value}"
            )
        text += f"-{name}" + ("" if value is True else str(value))
    return text


def data_digest(*arrays):
    """Tells data that were read from files apart, in the name of a run.

    Runs on other files must not continue each other, whatever these are called;
    those on the same files should, wherever these lie.

    Args:
        *arrays: Arrays of numbers, or lists of strings.

    Returns:
        String of eight hexadecimal digits: a hash of types, shapes and values.
    """
    digest = hashlib.blake2b(digest_size=4)
    for array in map(np.ascontiguousarray, arrays):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.reshape(-1).view("uint8"))
    return digest.hexdigest()


def check_export(parser, args):
    """Refuses `--export` before any work, where it could not be done after.

    Args:
        parser: `argparse.ArgumentParser`, which ends the program.
        args: What it has parsed, with `export`, a path or `None`.
    """
    if args.export is None:
        return
    if keras.backend.backend() != "tensorflow":
        parser.error("--export needs KERAS_BACKEND=tensorflow")
    if importlib.util.find_spec("tensorflow_serving") is None:
        parser.error("--export needs pip install 'keras_relational[serving]'")
    version = pathlib.Path(args.export) / "1"
    if version.exists():
        parser.error(
            f"{version} exists, and a version is never overwritten: --export "
            "needs another folder"
        )


def save_curves(directory, curves):
    """Keeps learning curves in `curves.csv`, a column each.

    Args:
        directory: `pathlib.Path` of the run.
        curves: Dictionary of names and lists of one length.
    """
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(curves)
    writer.writerows(zip(*curves.values(), strict=True))
    write_atomically(directory / "curves.csv", table.getvalue().encode())


def _state(model):
    return [*model.variables, *model.optimizer.variables]


def _rows(data, rows):
    return keras.tree.map_structure(lambda array: array[rows], data)


def _installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
