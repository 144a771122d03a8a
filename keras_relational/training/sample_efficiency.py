"""How much does a model learn from few examples?"""

import math
from typing import Any

import keras
import numpy as np

from keras_relational import runs
from keras_relational.training.supervised import adam
from keras_relational.training.supervised import train_classifier
from keras_relational.validation import check_positive_integers

_NUM_POINTS = 40


def accuracy_after_few(
    model: keras.Model,
    train: tuple[Any, np.ndarray],
    validation: tuple[Any, np.ndarray],
    test: tuple[Any, np.ndarray],
    num_train: int,
    epochs: int,
    batch_size: int = 64,
    run: runs.Run | None = None,
    part: str | None = None,
    seed: int = 0,
    verbose: int | str = "auto",
) -> float:
    """Trains a classifier on the first examples, and measures its best point.

    Accuracies are measured at 40 points of the training. The result is the test
    accuracy at the first point with the best validation accuracy, as if the
    training had stopped there. In fact the model is trained in place to the
    end, by Adam with a learning rate of 0.001.

    Args:
        model: A functional `keras.Model` from `x` to logits.
        train: Pair of `x` and labels. `x` is an array or a tuple of them.
        validation: Pair of `x` and labels.
        test: Pair of `x` and labels.
        num_train: Positive integer, number of training examples.
        epochs: Positive integer, number of passes over them. The training is
            rounded up to 40 equal parts.
        batch_size: Positive integer, number of examples of a step, or all
            training examples if they are fewer.
        run: As in `train_classifier`.
        part: As in `train_classifier`.
        seed: Non-negative integer that fixes the order of the examples.
        verbose: As in `keras.Model.fit`.

    Returns:
        Number between 0 and 1.

    Raises:
        ValueError: If a number is not a positive integer, or there are fewer
            than `num_train` training examples.
    """
    check_positive_integers(
        num_train=num_train, epochs=epochs, batch_size=batch_size
    )
    x, y = train
    if num_train > len(y):
        raise ValueError(
            f"There are {len(y)} training examples. Received: num_train="
            f"{num_train}"
        )
    epoch = math.ceil(num_train / batch_size)
    batches_per_point = math.ceil(epoch * epochs / _NUM_POINTS)
    curves = train_classifier(
        model,
        keras.tree.map_structure(lambda array: array[:num_train], x),
        y[:num_train],
        num_batches=_NUM_POINTS * batches_per_point,
        batch_size=min(batch_size, num_train),
        optimizer=adam(0.001),
        validation={"validation": validation, "test": test},
        batches_per_epoch=batches_per_point,
        steps_per_execution=batches_per_point,
        run=run,
        part=part,
        seed=seed,
        verbose=verbose,
    )
    best = np.argmax(curves["validation_accuracy"])
    return float(curves["test_accuracy"][best])
