"""Checks how often random values occur."""

import numpy as np


def assert_frequencies(values, expected):
    """Each value occurs as often as expected, within five standard deviations.

    Args:
        values: Array of random values.
        expected: Dictionary from each value to its probability.
    """
    assert set(np.unique(values)) == set(expected)
    for value, probability in expected.items():
        error = abs(np.mean(values == value) - probability)
        deviation = np.sqrt(probability * (1 - probability) / len(values))
        assert error < 5 * deviation, value
