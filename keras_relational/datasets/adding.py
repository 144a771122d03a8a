"""The adding task: what is the sum of the marked numbers of a sequence?

Hochreiter and Schmidhuber, 1997, in the form of Goyal et al., 2020,
*Factorizing Declarative and Procedural Knowledge in Structured, Dynamical
Environments* (SCOFF), appendix B. A model learns to add two or four numbers of
50 and is tested on two to ten of 200.
"""

import numpy as np

from keras_relational.datasets.balanced_labels import balanced_labels
from keras_relational.validation import check_positive_integers

TRAIN_LENGTH = 50
TEST_LENGTH = 200
TRAIN_VALUES = (2, 4)
# The rows of the paper's table 3.
TEST_VALUES = (2, 3, 4, 5, 8, 9, 10)


def load_data(num_train=50_000, num_test=20_000, test_values=10, seed=0):
    """Sequences of 50 to train on, and of 200 to test on.

    Args:
        num_train: Number of training sequences, in which two or four numbers
            are marked, in equal shares.
        num_test: Number of test sequences; the paper has 20,000 for each of
            `TEST_VALUES`.
        test_values: How many numbers are marked in test sequences, as
            `num_values` of `generate`.
        seed: Non-negative integer.

    Returns:
        `(x_train, y_train), (x_test, y_test)` as `generate` returns them.

    Raises:
        ValueError: As for `generate`.

    Example:

    >>> (x_train, _), (x_test, _) = load_data(num_train=8, num_test=4)
    >>> x_train.shape, x_test.shape
    ((8, 50, 2), (4, 200, 2))
    """
    return (
        generate(num_train, TRAIN_LENGTH, TRAIN_VALUES, seed=[seed, 0]),
        generate(num_test, TEST_LENGTH, test_values, seed=[seed, 1]),
    )


def generate(num_sequences, length=TRAIN_LENGTH, num_values=2, seed=None):
    """Makes sequences of numbers, some of them marked, and their sums.

    The numbers are uniform between 0 and 1. Of two marked ones, one is anywhere
    in the first half of the sequence and one anywhere in the second. The paper
    does not say where three or more are: here, one is in each of as many equal
    parts.

    Args:
        num_sequences: Positive integer.
        length: Positive integer.
        num_values: How many numbers are marked, from 1 to `length`, or a
            sequence of such integers: equal shares of each, in random order.
        seed: Seed as `np.random.default_rng` takes it: the same sequences every
            time. By default they are new ones.

    Returns:
        `(inputs, targets)`: float32 `(num_sequences, length, 2)`, the numbers
        and the marks, 1 or 0; and float32 `(num_sequences,)`, the sums.

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
    first, end = (
        edge * length // number[row] for edge in (part, part + 1)
    )  # Of the part, of which every sequence has as many as numbers to add.
    inputs[row, rng.integers(first, end), 1] = 1
    return inputs, np.einsum("nl,nl->n", inputs[..., 0], inputs[..., 1])
