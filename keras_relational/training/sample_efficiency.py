"""How much does a mechanism learn from few examples? And how well it sorts.

Altabaa et al., 2024, *Abstractors and relational cross-attention*, section 4:
pairwise order and sorting. Altabaa and Lafferty, 2023, *Learning hierarchical
relational representations through relational convolutions*: the Relations Game
and SET. Webb et al., 2021, *Emergent Symbols through Binding in External
Memory*: rules over fillers never seen before.
"""

import math
from typing import Any

import keras
import numpy as np

from keras_relational import models
from keras_relational import runs
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import ordered_objects
from keras_relational.datasets import relations_game
from keras_relational.datasets import set_game
from keras_relational.random_streams import stream
from keras_relational.training.supervised import adam
from keras_relational.training.supervised import predictions
from keras_relational.training.supervised import train_classifier
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

_OF_TILES = ("same", "occurs", "xoccurs", "between", "match_rows")
# The tasks of few examples, and the mechanisms that can do them.
FEW_EXAMPLES = {
    "pairwise_order": models.SET_REASONERS,
    "sorting": models.SORTERS,
    "set_game": models.SET_REASONERS,
    **dict.fromkeys(_OF_TILES, models.SET_REASONERS),
    **dict.fromkeys(distribution_of_three.TASKS, models.SET_REASONERS),
}
_NUM_POINTS = 40
_NUMBERS = {"train": 5_000, "validation": 1_000, "test": 2_000}


def model_and_data(
    task: str, reasoner: str, num_train: int = 2_000, seed: int = 0
) -> tuple[keras.Model, tuple]:
    """Builds a model of a mechanism, and makes a task for it.

    - `"pairwise_order"`: `ordered_objects.load_pairs`.
    - `"sorting"`: `ordered_objects.load_sequences`, for a `models.sorter`.
    - `"set_game"`: `set_game.load_data`.
    - A task of the Relations Game: entities are the nine tiles of an image,
      row by row. Training and validation are on pentominoes, the test on
      hexominoes.
    - A task of `distribution_of_three`, with its options as further entities.
      A filler is a random vector of 32 normal numbers. Training and validation
      have 50 fillers, the test 50 others.

    Args:
        task: One of `FEW_EXAMPLES`.
        reasoner: One of `FEW_EXAMPLES[task]`.
        num_train: Positive integer, number of training examples for sorting
            and SET. There are always 2,016 pairs, 5,000 images, and 5,000
            problems of a rule.
        seed: Non-negative integer. It fixes initial weights and data.

    Returns:
        Pair: the `keras.Model`, and a triple of training, validation and test
        data, each a pair of `x` and labels.

    Raises:
        ValueError: If the task or the mechanism is unknown.

    Example:

    >>> model, (train, _, _) = model_and_data("pairwise_order", "esbn")
    >>> train[0].shape, train[1].shape
    ((2016, 2, 32), (2016,))
    """
    check_choice("task", task, FEW_EXAMPLES)
    check_choice("reasoner", reasoner, FEW_EXAMPLES[task])
    keras.utils.set_random_seed(seed)
    if task == "sorting":
        parts = ordered_objects.load_sequences(num_train, seed=seed)
        data = tuple(((x, places_so_far(y)), y) for x, y in parts)
        return models.sorter(reasoner, 10, 12), data
    data = _sets(task, num_train, seed)
    x, y = data[0]
    num_entities, num_features = x.shape[1:]
    model = models.set_classifier(
        reasoner, num_entities, num_features, int(y.max()) + 1
    )
    return model, data


def _sets(task, num_train, seed):
    """Training, validation and test data for a `models.set_classifier`."""
    if task == "pairwise_order":
        return ordered_objects.load_pairs(seed=seed)
    if task == "set_game":
        return set_game.load_data(num_train, seed=seed)
    if task in distribution_of_three.TASKS:
        return _rules(task, seed)
    return tuple(_tiles(task, part, seed) for part in _NUMBERS)


def _rules(task, seed):
    """Problems of a rule as sequences of vectors, and their labels."""
    number = _NUMBERS["train"]
    known, test = distribution_of_three.load_data(
        *(50, task, "multiple_choice"),
        number + _NUMBERS["validation"],
        _NUMBERS["test"],
        seed=seed,
    )
    rng = np.random.default_rng(stream(seed, "objects_beside_batches"))
    shape = distribution_of_three.NUM_FILLERS, 32
    vectors = rng.normal(size=shape).astype("float32")

    def part(problems, chosen):
        labels = problems.labels[chosen].astype("int32")
        return vectors[problems.fillers[chosen]], labels

    train, validation = slice(number), slice(number, None)
    return part(known, train), part(known, validation), part(test, slice(None))


def _tiles(task, part, seed):
    """Images as sets of tiles, `(number, 9, 432)`, and their labels."""
    images, labels, _ = relations_game.generate(
        task,
        _NUMBERS[part],
        "hexominoes" if part == "test" else "pentominoes",
        stream(seed, f"{part}_beside_batches"),
    )
    return relations_game.tiles(images), labels


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
    """Trains a classifier on the first examples, and stops it early.

    It is measured at 40 points of the training. What counts is the test
    accuracy at the first point with the best validation accuracy, as if the
    training had stopped there. The model is trained in place, to the end, by
    Adam with a learning rate of 0.001.

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
        _NUM_POINTS * batches_per_point,
        min(batch_size, num_train),
        adam(0.001),
        {"validation": validation, "test": test},
        batches_per_point,
        batches_per_point,
        run,
        part,
        seed,
        verbose,
    )
    best = curves["validation_accuracy"].argmax()
    return float(curves["test_accuracy"][best])


def places_so_far(places: np.ndarray) -> np.ndarray:
    """What a sorter is given in training: the right places, one step late.

    Args:
        places: Integer array `(batch, n)`, as from
            `ordered_objects.load_sequences`.

    Returns:
        Int32 array `(batch, n)`, which begins with n: nothing so far.

    Example:

    >>> places_so_far(np.array([[2, 0, 1]]))
    array([[3, 2, 0]], dtype=int32)
    """
    n = places.shape[1]
    so_far = np.full(places.shape, n, "int32")
    so_far[:, 1:] = places[:, :-1]
    return so_far


def sorted_places(
    model: keras.Model, entities: np.ndarray, batch_size: int = 1_000
) -> np.ndarray:
    """Lets a sorter put out one place after the other, from its own places.

    Args:
        model: A `keras.Model` as `models.sorter` builds.
        entities: Float array `(batch, n, m)`.
        batch_size: Positive integer, number of sequences computed at once.

    Returns:
        Int32 array `(batch, n)`. It may name a place twice.

    Raises:
        ValueError: If `batch_size` is not a positive integer.
    """
    check_positive_integers(batch_size=batch_size)
    number, n = entities.shape[:2]
    places = np.zeros((number, n), "int32")
    for step in range(n):
        given = (entities, places_so_far(places))
        logits = predictions(model, given, batch_size)
        places[:, step] = logits[:, step].argmax(-1)
    return places
