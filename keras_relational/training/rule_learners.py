"""Training a learner of abstract rules, with its paper's settings and data."""

import math
import pathlib

import keras
import numpy as np

from keras_relational import models
from keras_relational import runs
from keras_relational.datasets import distribution_of_three
from keras_relational.random_streams import stream
from keras_relational.training.minibatches import Minibatches
from keras_relational.training.rules import Preset
from keras_relational.training.rules import as_put_out
from keras_relational.training.rules import cross_entropy
from keras_relational.training.rules import other_task_preset
from keras_relational.training.rules import preset
from keras_relational.training.rules import rule_accuracy
from keras_relational.training.rules import train_autoencoder
from keras_relational.training.supervised import compile_model
from keras_relational.training.supervised import fit
from keras_relational.validation import check_choice

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
    learning_rate: float | None = None,
    epochs: int | None = None,
    reorder_options: bool = False,
) -> Preset:
    """The settings of a task's paper, for options that go together.

    A CoRelNet has those of Kerg et al., 2022: a learning rate of 5e-4 and 5,000
    batches, here whole epochs of the task's training set. The authors draw new
    problems for each batch, and normalize the embeddings.

    Args:
        task: One of `distribution_of_three.TASKS`.
        sequential: `"esbn"`, `"ntm"`, `"lstm"` or `"corelnet"`.
        mode: `"multiple_choice"` or `"generative"`.
        fillers: `"image"` or `"vector"`.
        pretrained: `True` if the autoencoder is trained first, then frozen.
        withheld: Number of fillers that are withheld from training.
        confidence: `True` if the ESBN has a confidence.
        normalization: `True` if the embeddings are normalized over time.
        learning_rate: Positive number, in place of the paper's.
        epochs: Positive integer, in place of the paper's.
        reorder_options: `True` if options come in another order each time a
            problem is shown.

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
    if reorder_options and (mode == "generative" or task in pairs):
        raise ValueError(
            "Options come in another order in multiple choice only, and for "
            "distribution_of_three and identity_rules. Received: "
            f"reorder_options=True, task={task!r}, mode={mode!r}"
        )
    if sequential == "corelnet" and mode == "generative":
        raise ValueError(
            "A CoRelNet scores options. Received: sequential='corelnet', "
            "mode='generative'"
        )
    # For a CoRelNet, the data are those of the other networks.
    name = "lstm" if sequential == "corelnet" else sequential
    if task == "distribution_of_three":
        kind = "pretrained" if pretrained else "end_to_end"
        settings = preset(kind, fillers, mode, name, withheld)
    else:
        settings = other_task_preset(task, name, withheld, normalization)
    if sequential == "corelnet":
        batches = math.ceil(settings.num_train / 32)
        settings = settings._replace(
            learning_rate=5e-4,
            epochs=math.ceil(5_000 / batches),
            batch_normalization=False,
        )
    return settings._replace(
        learning_rate=learning_rate or settings.learning_rate,
        epochs=epochs or settings.epochs,
    )


def rule_fillers(
    kind: str = "image", folder: pathlib.Path | str | None = None
) -> np.ndarray:
    """Fillers of a kind: the library's own, or images from a folder.

    Args:
        kind: `"image"` or `"vector"`.
        folder: Optional path of a folder with PNG files, for images.

    Returns:
        `distribution_of_three.load_images(folder)`, `glyphs()` or `one_hot()`.

    Raises:
        ValueError: If the kind is unknown, if there is a folder for vectors, or
            as for `distribution_of_three.load_images`.

    Example:

    >>> rule_fillers("vector").shape
    (100, 100)
    """
    check_choice("kind of fillers", kind, models.FILLERS)
    if kind == "vector":
        if folder is not None:
            raise ValueError(
                "A folder of images makes fillers of kind 'image'. Received: "
                f"kind='vector', folder={str(folder)!r}"
            )
        return distribution_of_three.one_hot()
    if folder is not None:
        return distribution_of_three.load_images(folder)
    return distribution_of_three.glyphs()


def rule_problems(
    fillers: np.ndarray,
    task: str,
    mode: str,
    withheld: int,
    num_train: int,
    seed: int = 0,
) -> tuple[
    np.ndarray, distribution_of_three.Problems, distribution_of_three.Problems
]:
    """Fillers in random order, and problems of them to train and to test on.

    Each set has 10,000 problems, or as many as there are.

    Args:
        fillers: Array of all fillers.
        task: One of `distribution_of_three.TASKS`.
        mode: `"multiple_choice"` or `"generative"`.
        withheld: Number of fillers that are withheld from training.
        num_train: Number of training problems, if above 10,000.
        seed: Non-negative integer. It fixes which fillers are withheld, and the
            problems.

    Returns:
        `(fillers, train, test)`: the fillers in random order, of which the last
        ones are withheld, and two `distribution_of_three.Problems`.

    Raises:
        ValueError: As for `distribution_of_three.load_data`.

    Example:

    >>> fillers = rule_fillers("vector")
    >>> kind = "distribution_of_three", "generative"
    >>> fillers, train, test = rule_problems(fillers, *kind, 95, 360)
    >>> len(train.labels), len(test.labels)
    (360, 10000)
    """
    order = np.random.default_rng(stream(seed, "withheld"))
    sizes = max(num_train, 10_000), 10_000
    total = distribution_of_three.num_problems(task, len(fillers))
    if withheld == 0 and total is not None and total < sum(sizes):
        sizes = total // 2, total // 2  # There are few fillers.
    train, test = distribution_of_three.load_data(
        *(withheld, task, mode, *sizes), num_fillers=len(fillers), seed=seed
    )
    return order.permutation(fillers), train, test


def pretrain_autoencoder(
    autoencoder: keras.Model, fillers: np.ndarray, run: runs.Run | None = None
) -> float:
    """Trains an autoencoder of fillers, and freezes it.

    Args:
        autoencoder: A `keras.Model` as `models.filler_autoencoder` builds. It
            is trained in place.
        fillers: All fillers, as the autoencoder takes them.
        run: `runs.Run` to save the autoencoder in, as for `train_autoencoder`.

    Returns:
        The share of fillers that are reconstructed, at least a half.

    Raises:
        ValueError: If less than half of the fillers are reconstructed. From
            some initial weights the sigmoid of images is stuck at 0.
    """
    share = train_autoencoder(autoencoder, fillers, run=run)
    if share < 0.5:
        raise ValueError(
            "The autoencoder must reconstruct at least half of the fillers. It "
            f"reconstructs {share:.0%}: its sigmoid may be stuck at 0. Start "
            "again with another seed."
        )
    autoencoder.trainable = False
    return share


def train_rule_learner(
    model: keras.Model,
    fillers: np.ndarray,
    train: distribution_of_three.Problems,
    test: distribution_of_three.Problems,
    withheld: int,
    settings: Preset,
    run: runs.Run | None = None,
    seed: int = 0,
    verbose: int | str = "auto",
    reorder_options: bool = False,
) -> dict[str, float]:
    """Trains a model of `models.rule_learner`, and tests it.

    Batches are of 32. In the papers the last batch of an epoch may be smaller.
    Here all have one size, and the training is rounded up to 20 equal parts,
    the points of the learning curves. After each part the accuracy on 2,000
    test problems is measured.

    Args:
        model: As `models.rule_learner` builds. It is trained in place.
        fillers: Array of all fillers. The last ones are withheld.
        train: Problems to train on.
        test: Problems to test on.
        withheld: Number of fillers that are withheld from training. Batch
            normalization does not see them in training either.
        settings: `Preset` of the learning rate of Adam, the number of epochs,
            and the number of problems of an epoch.
        run: `runs.Run` to keep curves and checkpoints in. By default nothing is
            written.
        seed: Non-negative integer that fixes the order of the problems.
        verbose: As in `keras.Model.fit`.
        reorder_options: `True` to show options in another order each time, as
            `distribution_of_three.option_orders` has them.

    Returns:
        Dictionary of the accuracies on all problems: `train` and `test`.
    """
    trained = models.over_fillers(model, fillers[: len(fillers) - withheld])
    tested = models.over_fillers(model, fillers)
    candidates, shown = None, train
    if reorder_options:
        shown = distribution_of_three.option_orders(train)
    targets = shown.labels
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if "decoder" in models.roles(model).parts:  # It generates fillers.
        candidates = as_put_out(fillers)
        targets = candidates[train.labels]
        loss = cross_entropy if fillers.ndim == 2 else "mse"
    compile_model(trained, settings.learning_rate, loss)
    epoch = math.ceil(min(len(train.labels), settings.num_train) / 32)
    batches_per_point = math.ceil(epoch * settings.epochs / _NUM_POINTS)
    some = type(test)(*(x[:_NUM_TESTED] for x in test))
    fit(
        trained,
        lambda first: Minibatches(
            shown.fillers, targets, 32, None, first, seed
        ),
        _NUM_POINTS * batches_per_point,
        batches_per_point,
        lambda: {"test": rule_accuracy(tested, some, candidates)},
        run,
        verbose=verbose,
    )
    return {
        "train": rule_accuracy(tested, train, candidates),
        "test": rule_accuracy(tested, test, candidates),
    }
