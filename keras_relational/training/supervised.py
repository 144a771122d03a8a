"""Supervised training in runs that can be continued."""

import functools
import time
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_relational import runs
from keras_relational.training.minibatches import Minibatches
from keras_relational.training.minibatches import MinibatchModel
from keras_relational.validation import check_positive_integers


def train_classifier(
    model: keras.Model,
    x: Any,
    y: np.ndarray,
    num_batches: int = 100_000,
    batch_size: int = 10,
    optimizer: keras.optimizers.Optimizer | str | None = None,
    validation: Mapping[str, tuple[Any, np.ndarray]] | None = None,
    batches_per_epoch: int = 5_000,
    steps_per_execution: int = 500,
    run: runs.Run | None = None,
    part: str | None = None,
    seed: int = 0,
    verbose: int | str = "auto",
) -> dict[str, np.ndarray]:
    """Trains a classifier on small batches, and takes its learning curves.

    This is `fit` with `Minibatches`. After every epoch it measures the accuracy
    on each validation set.

    Args:
        model: A functional `keras.Model` from `x` to logits. It is trained in
            place.
        x: Array of inputs, or a tuple of them.
        y: Integer array of labels.
        num_batches: Number of training steps.
        batch_size: Number of examples of a step.
        optimizer: A Keras optimizer; by default plain SGD with learning rate
            0.01, as in Table S2 of Shanahan et al., 2020.
        validation: Dictionary of names and `(x, y)` pairs.
        batches_per_epoch: As in `fit`; a multiple of `steps_per_execution`.
        steps_per_execution: Number of training steps of one compiled call. On
            PyTorch nothing is compiled.
        run: As in `fit`.
        part: As in `fit`.
        seed: Non-negative integer that fixes the order of the examples.
        verbose: As in `keras.Model.fit`.

    Returns:
        Dictionary of arrays as `fit` returns it, with `loss` and `accuracy` on
        the training examples as they went by, and `NAME_accuracy` for each
        validation set.

    Raises:
        ValueError: As `fit` raises it.
    """
    _check_numbers(
        num_batches, batches_per_epoch, steps_per_execution=steps_per_execution
    )
    trained = MinibatchModel(model.inputs, model.outputs)
    trained.dtype_policy = model.dtype_policy  # Keras takes the global one.
    trained.compile(
        optimizer or keras.optimizers.SGD(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=keras.backend.backend() != "torch",
    )
    # Builds the loss and the metrics, from the shape of one batch.
    one_batch = Minibatches(x, y, batch_size, None)[0]
    trained.evaluate(*one_batch, batch_size=batch_size, verbose=0)

    def measure():
        return {
            f"{name}_accuracy": accuracy(model, *test)
            for name, test in (validation or {}).items()
        }

    def blocks_from(first):
        return Minibatches(
            x,
            y,
            batch_size,
            steps_per_execution,
            initial_batch=first,
            seed=seed,
            final_batch=num_batches,
        )

    return fit(
        trained,
        blocks_from,
        num_batches,
        batches_per_epoch,
        measure=measure,
        run=run,
        part=part,
        verbose=verbose,
        batches_per_item=steps_per_execution,
    )


def adam(learning_rate: float) -> keras.optimizers.Adam:
    """Adam with ε = 1e-8, the default of PyTorch and TensorFlow 1.

    The papers trained with that ε. Keras' default, 1e-7, is larger than the
    first gradients of some of their models: those of an autoencoder of moving
    squares are some 1e-9, and with Keras' ε it never begins to learn.
    """
    return keras.optimizers.Adam(learning_rate, epsilon=1e-8)


def compile_model(
    model: keras.Model,
    learning_rate: float,
    loss: str | keras.losses.Loss | Callable,
    metrics: list[str] | None = None,
    convolutional: bool = False,
) -> None:
    """Compiles a model with Adam.

    XLA compiles the training step, except on PyTorch. On a CPU XLA is slow at
    convolutions, so with TensorFlow a model that has convolutions does without
    it. JAX always uses XLA.

    Args:
        model: `keras.Model` that is built. It is compiled in place.
        learning_rate: Positive number, the learning rate of `adam`.
        loss: As in `keras.Model.compile`.
        metrics: As in `keras.Model.compile`.
        convolutional: If `True`, XLA is used on JAX only.

    Example:

    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    >>> compile_model(model, 0.001, "mse")
    >>> model.optimizer.epsilon
    1e-08
    """
    backend = keras.backend.backend()
    uses_xla = backend == "jax" if convolutional else backend != "torch"
    model.compile(
        adam(learning_rate), loss, metrics=metrics, jit_compile=uses_xla
    )


def fit(
    model: keras.Model,
    data_from: Callable[[int], keras.utils.PyDataset],
    num_batches: int,
    batches_per_epoch: int,
    measure: Callable[[], Mapping[str, float]] = dict,
    run: runs.Run | None = None,
    part: str | None = None,
    verbose: int | str = "auto",
    batches_per_item: int = 1,
) -> dict[str, np.ndarray]:
    """Trains a model on endless data, in a run that can be continued.

    After every epoch `measure` is called. With a run, the curves are written to
    `curves.csv` and `tensorboard/` in its folder, and all that is needed to go
    on to a checkpoint. A run that was killed continues from there, with the
    result that it would have had. A run with fewer batches than asked for goes
    on. A run that has them all trains nothing.

    Args:
        model: A compiled `keras.Model` whose weights are built. It is trained
            in place.
        data_from: Function from the number of a batch to a
            `keras.utils.PyDataset` that begins with that batch and has no end.
        num_batches: Number of training steps. The last epoch is shorter
            where it is no multiple of `batches_per_epoch`.
        batches_per_epoch: Number of training steps between two points of the
            curves.
        measure: Function without arguments to a dictionary of names and
            numbers.
        run: `runs.Run` to keep curves and checkpoints in. By default nothing
            is written.
        part: Name of this part of the run, if it trains several networks.
        verbose: As in `keras.Model.fit`; the bar counts batches.
        batches_per_item: Number of training steps of an item of the data, as
            `steps_per_execution` of `Minibatches`. An item is shorter where
            the data begin, or the training ends, within it.

    Returns:
        Dictionary of arrays, one entry an epoch: `batches`, `minutes` (time
        spent so far, all parts of the run together), what `fit` logs, and what
        `measure` returns.

    Raises:
        ValueError: If a number is out of its range, if `batches_per_epoch` is
            no multiple of `batches_per_item`, or if the checkpoint in the run
            is damaged, or of another model or other arguments.
    """
    _check_numbers(
        num_batches, batches_per_epoch, batches_per_item=batches_per_item
    )
    if not model.optimizer.built:  # Its variables are in the checkpoints.
        model.optimizer.build(model.trainable_variables)
    log = runs.TrainingLog(
        run, part, "batches", functools.partial(runs.ModelCheckpoints, model)
    )
    log.restore(num_batches)
    _check_epochs(log, batches_per_epoch)
    epoch_end = _EpochEnd(log, measure, num_batches, batches_per_epoch)
    while log.done < num_batches:
        # A shorter run ended within its last epoch, which is then made up.
        epoch, done = divmod(log.done, batches_per_epoch)
        length = min(batches_per_epoch - done, num_batches - log.done)
        is_whole = length == batches_per_epoch
        first_item = log.done // batches_per_item
        last_item = -(-(log.done + length) // batches_per_item)
        callbacks = [epoch_end]
        if verbose:
            callbacks.append(_BatchProgress(length, batches_per_item))
        model.fit(
            data_from(log.done),
            steps_per_epoch=last_item - first_item,
            initial_epoch=epoch,
            epochs=num_batches // batches_per_epoch if is_whole else epoch + 1,
            callbacks=callbacks,
            shuffle=False,
            verbose=verbose,
        )
    return {name: np.array(curve) for name, curve in log.curves.items()}


def accuracy(
    model: keras.Model, x: Any, y: np.ndarray, batch_size: int = 250
) -> float:
    """The share of labels whose logit is the largest.

    Args:
        model: A `keras.Model` from `x` to logits.
        x: Array of inputs, or a tuple of them.
        y: Integer array of labels, one or more for each example.
        batch_size: Number of examples computed at once.

    Returns:
        Number between 0 and 1.

    Raises:
        ValueError: If there is not one label for each row of logits.
    """
    logits = predictions(model, x, batch_size)
    if np.shape(y) != logits.shape[:-1]:
        raise ValueError(
            "There must be one label for each row of logits, "
            f"{logits.shape[:-1]}. Received: y.shape={np.shape(y)}"
        )
    return float(np.mean(logits.argmax(-1) == y))


def predictions(model: keras.Model, x: Any, batch_size: int = 250) -> Any:
    """The outputs for all examples: `keras.Model.predict` without its waiting.

    After its last batch `predict` waits for Keras' input pipeline on
    TensorFlow, for up to as long as the batches have taken.

    Args:
        model: A `keras.Model`.
        x: Array of inputs, or a structure of arrays.
        batch_size: Number of examples computed at once.

    Returns:
        Array, or a structure of arrays as the model's outputs.
    """
    number = len(keras.tree.flatten(x)[0])
    parts = [
        model.predict_on_batch(_rows(x, slice(first, first + batch_size)))
        for first in range(0, number, batch_size)
    ]
    return keras.tree.map_structure(
        lambda *arrays: np.concatenate(arrays), *parts
    )


class _EpochEnd(keras.callbacks.Callback):
    """Measures, and adds a row to the log."""

    def __init__(self, log, measure, num_batches, batches_per_epoch):
        super().__init__()
        self.log = log
        self.measure = measure
        self.num_batches = num_batches
        self.batches_per_epoch = batches_per_epoch
        self.began = time.monotonic() - 60 * log.minutes

    def on_epoch_end(self, epoch, logs=None):
        measured = {k: float(v) for k, v in self.measure().items()}
        logs.update(measured)  # For the progress bar.
        batches = (epoch + 1) * self.batches_per_epoch
        row = {
            "batches": min(batches, self.num_batches),
            "minutes": (time.monotonic() - self.began) / 60,
            **logs,
        }
        curves = self.log.curves
        if curves and set(row) != set(curves):
            raise ValueError(
                f"The run in {self.log.directory} has curves of "
                f"{', '.join(curves)}. Received: {', '.join(row)}. "
                "Measure the same, use another directory, or delete it."
            )
        if self.log.done % self.batches_per_epoch:
            self.log.drop_last_row()
        self.log.add(row)


class _BatchProgress(keras.callbacks.ProgbarLogger):
    """Keras' progress bar, which counts batches in place of items."""

    def __init__(self, num_batches, batches_per_item):
        super().__init__()
        self.num_batches = num_batches
        self.batches_per_item = batches_per_item

    def set_params(self, params):
        super().set_params({**params, "steps": self.num_batches})

    def on_train_batch_end(self, batch, logs=None):
        done = min((batch + 1) * self.batches_per_item, self.num_batches)
        super().on_train_batch_end(done - 1, logs)


def _check_numbers(num_batches, batches_per_epoch, **divisor):
    check_positive_integers(
        num_batches=num_batches, batches_per_epoch=batches_per_epoch, **divisor
    )
    ((name, value),) = divisor.items()
    if batches_per_epoch % value:
        raise ValueError(
            f"`batches_per_epoch` must be a multiple of `{name}`. Received: "
            f"batches_per_epoch={batches_per_epoch}, {name}={value}"
        )


def _check_epochs(log, batches_per_epoch):
    """The points of a run that continues must be as far apart as before."""
    batches = np.array(log.curves.get("batches", []))
    expected = batches_per_epoch * np.arange(1, len(batches) + 1)
    # The last epoch may have been a short one.
    expected[-1:] = np.minimum(batches, expected)[-1:]
    if not np.array_equal(batches, expected):
        raise ValueError(
            f"The run in {log.directory} was written with batches_per_epoch="
            f"{batches[0]}. Received: batches_per_epoch={batches_per_epoch}. "
            "Use the same, use another directory, or delete it."
        )


def _rows(data, rows):
    return keras.tree.map_structure(lambda array: array[rows], data)
