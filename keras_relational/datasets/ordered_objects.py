"""Random vectors with an order: which comes first, and how are they sorted?

Altabaa et al., 2024, *Abstractors and relational cross-attention*. An object is
a vector of normal numbers, and its rank cannot be seen in it. A model learns
the ranks from pairs, or from sorted sequences. What the paper leaves out
follows the authors' program.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from keras_relational.random_streams import stream
from keras_relational.validation import check_positive_integers

Part: TypeAlias = tuple[np.ndarray, np.ndarray]

SEQUENCE_LENGTH = 10
# Of the two attributes of `products`: numbers of values, and sizes of vectors.
NUM_VALUES = (4, 12)
VALUE_SIZES = (4, 8)


def load_pairs(
    num_objects: int = 64, num_features: int = 32, seed: int = 0
) -> tuple[Part, Part, Part]:
    """Makes all pairs of two objects, and says whether they are in order.

    Half of the pairs are for training, 15 percent for validation, and the rest
    for the test. So the test has new pairs of known objects. The order is
    transitive: a pair can be told from others.

    Args:
        num_objects: Integer above 1.
        num_features: Positive integer, size of an object.
        seed: Non-negative integer. Equal seeds give equal data.

    Returns:
        `(x_train, y_train), (x_validation, y_validation), (x_test, y_test)`:
        float32 pairs `(n, 2, num_features)`, and int32 labels `(n,)`, 1 where
        the first object comes first.

    Raises:
        ValueError: If a number is out of its range.

    Example:

    >>> (x, y), _, (x_test, _) = load_pairs(seed=0)
    >>> x.shape, x_test.shape
    ((2016, 2, 32), (1412, 2, 32))
    """
    check_positive_integers(num_objects=num_objects, num_features=num_features)
    if num_objects < 2:
        raise ValueError(
            "There must be two objects to compare. Received: num_objects="
            f"{num_objects}"
        )
    rng = np.random.default_rng(stream(seed, "objects_beside_batches"))
    objects = rng.normal(size=(num_objects, num_features)).astype("float32")
    pairs = np.argwhere(~np.eye(num_objects, dtype=bool))
    pairs = rng.permutation(pairs)
    labels = (pairs[:, 0] < pairs[:, 1]).astype("int32")
    ends = len(pairs) // 2, len(pairs) * 65 // 100
    x, y = np.split(objects[pairs], ends), np.split(labels, ends)
    train, validation, test = zip(x, y, strict=True)
    return train, validation, test


def load_sequences(
    num_train: int = 3_000,
    num_validation: int = 1_000,
    num_test: int = 2_000,
    seed: int = 0,
) -> tuple[Part, Part, Part]:
    """Makes sequences of ten objects, and says how to sort them.

    There are 48 objects. Each has a value of a first attribute, of 4, and one
    of a second, of 12, with random vectors of size 4 and 8. The first attribute
    decides the order, and the second where the first is the same. No object is
    twice in a sequence.

    Args:
        num_train: Positive integer, number of training sequences.
        num_validation: Positive integer, number of validation sequences.
        num_test: Positive integer, number of test sequences.
        seed: Non-negative integer. Equal seeds give equal data. The first
            training sequences are the same for any `num_train`.

    Returns:
        `(x_train, y_train), (x_validation, y_validation), (x_test, y_test)`:
        float32 sequences `(n, 10, 12)`, and int32 places `(n, 10)`: first that
        of the first object in order, as from `np.argsort`.

    Raises:
        ValueError: If a number is not a positive integer.

    Example:

    >>> (x, y), _, _ = load_sequences(4, 4, 4, seed=0)
    >>> x.shape, y.shape
    ((4, 10, 12), (4, 10))
    """
    check_positive_integers(
        num_train=num_train, num_validation=num_validation, num_test=num_test
    )
    objects = products(stream(seed, "objects_beside_batches"))
    numbers = {
        "train": num_train,
        "validation": num_validation,
        "test": num_test,
    }
    train, validation, test = (
        _sequences(objects, number, stream(seed, f"{name}_beside_batches"))
        for name, number in numbers.items()
    )
    return train, validation, test


def products(seed: int | Sequence[int] | None = None) -> np.ndarray:
    """Makes the 48 objects of `load_sequences` in order, float32 `(48, 12)`."""
    rng = np.random.default_rng(seed)
    values = [
        rng.normal(size=shape).astype("float32")
        for shape in zip(NUM_VALUES, VALUE_SIZES, strict=True)
    ]
    first, second = np.indices(NUM_VALUES).reshape(2, -1)
    return np.concatenate([values[0][first], values[1][second]], axis=1)


def _sequences(objects, number, seed):
    rng = np.random.default_rng(seed)
    ranks = rng.random((number, len(objects))).argsort(1)[:, :SEQUENCE_LENGTH]
    return objects[ranks], ranks.argsort(1).astype("int32")
