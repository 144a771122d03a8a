"""Training a learner of abstract rules, with its paper's settings and data."""

import math

import keras
import numpy as np

from keras_relational import models
from keras_relational import runs
from keras_relational.datasets import distribution_of_three
from keras_relational.training.compilation import compile_model
from keras_relational.training.minibatches import Minibatches
from keras_relational.training.rules import Preset
from keras_relational.training.rules import as_put_out
from keras_relational.training.rules import cross_entropy
from keras_relational.training.rules import other_task_preset
from keras_relational.training.rules import preset
from keras_relational.training.rules import rule_accuracy
from keras_relational.training.supervised import fit

_NUM_POINTS = 20  # Of the learning curves.
_NUM_TESTED = 2_000  # For a point of the curves.


def rule_settings(
    task: str,
    sequential: str = "esbn",
    mode: str = "multiple_choice",
    fillers: str = "image",
    pretrained: bool = False,
    withheld: int = 95,
    confidence: bool = False,
    normalization: bool = False,
) -> Preset:
    """The settings of a task's paper, for options that go together.

    Args:
        task: One of `distribution_of_three.TASKS`.
        sequential: `"esbn"`, `"ntm"` or `"lstm"`.
        mode: `"multiple_choice"` or `"generative"`.
        fillers: `"image"` or `"vector"`.
        pretrained: `True` if the autoencoder is trained first, then frozen.
        withheld: Number of fillers that are withheld from training.
        confidence: `True` if the ESBN has a confidence.
        normalization: `True` if the embeddings are normalized over time.

    Returns:
        `Preset`, from `preset` or `other_task_preset`.

    Raises:
        ValueError: If the options do not go together, or the paper has no such
            settings.

    Example:

    >>> rule_settings("distribution_of_three", withheld=50).epochs
    150
    """
    pairs = ("same_different", "relational_match_to_sample")
    if task in pairs and sequential == "esbn" and not confidence:
        raise ValueError(
            "An ESBN cannot tell whether two fillers are the same without a "
            f"confidence, which {task} needs. Received: confidence=False"
        )
    if confidence and sequential != "esbn":
        raise ValueError(
            "Only the ESBN has a confidence. Received: confidence=True, "
            f"sequential={sequential!r}"
        )
    if normalization and mode == "generative":
        raise ValueError(
            "A normalization is for multiple choice: the decoder takes "
            "embeddings of the encoder. Received: normalization=True, "
            "mode='generative'"
        )
    if fillers == "vector" and not pretrained:
        raise ValueError(
            "Vectors need a pretrained autoencoder: end to end, no weight of a "
            "withheld filler would be trained. Received: fillers='vector', "
            "pretrained=False"
        )
    if task == "distribution_of_three":
        kind = "pretrained" if pretrained else "end_to_end"
        return preset(kind, fillers, mode, sequential, withheld)
    return other_task_preset(task, sequential, withheld, normalization)


def rule_problems(
    task: str,
    mode: str,
    withheld: int,
    num_fillers: int,
    num_train: int,
    seed: int = 0,
) -> tuple[distribution_of_three.Problems, distribution_of_three.Problems]:
    """Training and test problems, of 10,000 each where there are so many.

    Args:
        task: One of `distribution_of_three.TASKS`.
        mode: `"multiple_choice"` or `"generative"`.
        withheld: Number of fillers that are withheld from training.
        num_fillers: Number of fillers.
        num_train: Number of training problems, if above 10,000.
        seed: Non-negative integer.

    Returns:
        Pair of `distribution_of_three.Problems`: to train on, and to test on.

    Raises:
        ValueError: As for `distribution_of_three.load_data`.
    """
    sizes = max(num_train, 10_000), 10_000
    total = distribution_of_three.num_problems(task, num_fillers)
    if withheld == 0 and total is not None and total < sum(sizes):
        sizes = total // 2, total // 2  # There are few fillers.
    return distribution_of_three.load_data(
        *(withheld, task, mode, *sizes), num_fillers=num_fillers, seed=seed
    )


def train_rule_learner(
    model: keras.Model,
    fillers: np.ndarray,
    train: distribution_of_three.Problems,
    test: distribution_of_three.Problems,
    withheld: int,
    mode: str,
    learning_rate: float,
    epochs: int,
    num_train: int,
    run: runs.Run | None = None,
    seed: int = 0,
    verbose: int | str = "auto",
) -> dict[str, float]:
    """Trains a model of `models.rule_learner`, and tests it.

    Batches are of 32. In the papers the last batch of an epoch may be smaller;
    here all have one size, and the length is rounded up to 20 equal parts, the
    points of the learning curves. After each of them the accuracy on 2,000 test
    problems is measured.

    Args:
        model: As `models.rule_learner` builds. It is trained in place.
        fillers: Array of all fillers. The last ones are withheld.
        train: Problems to train on.
        test: Problems to test on.
        withheld: Number of fillers that are withheld from training. They do not
            count in a batch normalization either.
        mode: `"multiple_choice"` or `"generative"`, the model's own.
        learning_rate: Positive number, the learning rate of Adam.
        epochs: Positive integer.
        num_train: Number of problems of an epoch.
        run: `runs.Run` to keep curves and checkpoints in. By default nothing is
            written.
        seed: Non-negative integer that fixes the order of the problems.
        verbose: As in `keras.Model.fit`.

    Returns:
        Dictionary of the accuracies on all problems: `train` and `test`.
    """
    trained = models.over_fillers(model, fillers[: len(fillers) - withheld])
    tested = models.over_fillers(model, fillers)
    targets, candidates = train.labels, None
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if mode == "generative":
        candidates = as_put_out(fillers)
        targets = candidates[train.labels]
        loss = cross_entropy if fillers.ndim == 2 else "mse"
    compile_model(trained, learning_rate, loss)
    num_batches = math.ceil(min(len(targets), num_train) / 32) * epochs
    batches_per_epoch = math.ceil(num_batches / _NUM_POINTS)
    some = type(test)(*(x[:_NUM_TESTED] for x in test))
    fit(
        trained,
        lambda first: Minibatches(
            train.fillers, targets, 32, None, first, seed
        ),
        _NUM_POINTS * batches_per_epoch,
        batches_per_epoch,
        lambda: {"test": rule_accuracy(tested, some, candidates)},
        run,
        verbose=verbose,
    )
    return {
        "train": rule_accuracy(tested, train, candidates),
        "test": rule_accuracy(tested, test, candidates),
    }
