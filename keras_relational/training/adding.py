"""Tests of the adding task: Table 3 of Goyal et al., 2020."""

from collections.abc import Mapping

import keras
import numpy as np

from keras_relational.datasets import adding
from keras_relational.random_streams import stream


def adding_tests(
    num_test: int = 20_000, seed: int = 0
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Sequences of 200, with two to ten numbers to add.

    Args:
        num_test: Number of sequences for each of `adding.TEST_VALUES`.
        seed: Non-negative integer.

    Returns:
        Dictionary from how many numbers are marked to sequences and sums, as
        `adding.generate` returns them.
    """
    return {
        number: adding.generate(
            num_test,
            adding.TEST_LENGTH,
            number,
            stream(seed, "numbers_to_add", number),
        )
        for number in adding.TEST_VALUES
    }


def adding_errors(
    model: keras.Model,
    tests: Mapping[int, tuple[np.ndarray, np.ndarray]],
    num_tested: int | None = None,
) -> dict[int, float]:
    """The mean squared error of a model's sums on each test.

    Args:
        model: `keras.Model` as `models.adding_model` builds, compiled with the
            loss `"mse"`.
        tests: As `adding_tests` returns.
        num_tested: Number of sequences of each test, the first ones. By default
            all are used.

    Returns:
        Dictionary from how many numbers are marked to the error.
    """
    return {
        number: model.evaluate(
            x[:num_tested], y[:num_tested, None], batch_size=250, verbose=0
        )
        for number, (x, y) in tests.items()
    }
