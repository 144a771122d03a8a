"""The adding task: what is the sum of the marked numbers of a sequence?

Hochreiter and Schmidhuber, 1997, in the form of Goyal et al., 2020,
*Factorizing Declarative and Procedural Knowledge in Structured, Dynamical
Environments* (SCOFF), appendix B. A model learns to add two or four of 50
numbers, and is tested on two to ten of 200 numbers.
"""

from collections.abc import Sequence

import numpy as np

from keras_relational.datasets.balanced_labels import balanced_labels
from keras_relational.random_streams import stream
from keras_relational.validation import check_positive_integers

TRAIN_LENGTH = 50
TEST_LENGTH = 200
TRAIN_VALUES = (2, 4)
# The rows of the paper's table 3.
TEST_VALUES = (2, 3, 4, 5, 8, 9, 10)


def load_data(
    num_train: int = 50_000,
    num_test: int = 20_000,
    test_values: int | Sequence[int] = 10,
    seed: int = 0,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Makes training sequences of length 50 and test sequences of length 200.

    Args:
        num_train: Positive integer, the number of training sequences. Half of
            them have two marked numbers, and half of them four.
        num_test: Positive integer, the number of test sequences. The paper has
            20,000 for each of `TEST_VALUES`.
        test_values: Number of marked numbers in a test sequence: an integer, or
            a sequence of integers that occur equally often.
        seed: Non-negative integer. Equal seeds give equal data. `generate` with
            the same seed makes the training set again: take another one for
            fresh examples.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: float32 inputs `(n, length, 2)`
        and float32 sums `(n,)`, as `generate` returns them.

    Raises:
        ValueError: If a number is out of its range.

    Example:

    >>> (x_train, _), (x_test, _) = load_data(num_train=8, num_test=4)
    >>> x_train.shape, x_test.shape
    ((8, 50, 2), (4, 200, 2))
    """
    check_positive_integers(num_train=num_train, num_test=num_test)
    train = generate(
        num_train, TRAIN_LENGTH, TRAIN_VALUES, stream(seed, "train")
    )
    test = generate(num_test, TEST_LENGTH, test_values, stream(seed, "test"))
    return train, test


def generate(
    num_sequences: int,
    length: int = TRAIN_LENGTH,
    num_values: int | Sequence[int] = 2,
    seed: int | Sequence[int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Makes sequences of numbers, some of them marked, and their sums.

    The numbers are uniform between 0 and 1. The sequence is divided into equal
    parts, one for each marked number. The mark is at a random place in its
    part. The paper says this for two marked numbers only.

    Args:
        num_sequences: Positive integer, the number of sequences.
        length: Positive integer, the length of each sequence.
        num_values: Number of marked numbers: an integer from 1 to `length`, or
            a sequence of such integers. They occur equally often, in random
            order.
        seed: Seed of `np.random.default_rng`. Equal seeds give equal data. By
            default the data are new each time. The seed of a `load_data` gives
            its training set.

    Returns:
        `(inputs, targets)`: float32 `(num_sequences, length, 2)`, the numbers
        and the marks (1 or 0), and float32 `(num_sequences,)`, the sums.

    Raises:
        ValueError: If a number is out of its range.

    Example:

    >>> inputs, targets = generate(4, length=10, num_values=(2, 4), seed=0)
    >>> inputs.shape, inputs[..., 1].sum(1)
    ((4, 10, 2), array([4., 2., 2., 4.], dtype=float32))
    """
    values = np.atleast_1d(num_values)
    check_positive_integers(num_sequences=num_sequences, length=length)
    if (
        values.ndim != 1
        or values.dtype.kind not in "iu"
        or not values.size
        or not 1 <= values.min() <= values.max() <= length
    ):
        raise ValueError(
            f"`num_values` must be one or more integers from 1 to {length}, "
            f"the length. Received: num_values={num_values}"
        )
    rng = np.random.default_rng(seed)
    inputs = np.zeros((num_sequences, length, 2), "float32")
    inputs[..., 0] = rng.random((num_sequences, length), "float32")
    number = values[balanced_labels(rng, num_sequences, len(values))]
    row, part = np.nonzero(np.arange(values.max()) < number[:, None])
    first, end = (edge * length // number[row] for edge in (part, part + 1))
    inputs[row, rng.integers(first, end), 1] = 1
    return inputs, np.einsum("nl,nl->n", inputs[..., 0], inputs[..., 1])
