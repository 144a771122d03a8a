"""A check of what was drawn at random."""

import numpy as np


def assert_shares(values, expected):
    """Within five standard deviations of the share of each value."""
    assert set(np.unique(values)) == set(expected)
    for value, share in expected.items():
        error = abs(np.mean(values == value) - share)
        assert error < 5 * np.sqrt(share * (1 - share) / len(values)), value
