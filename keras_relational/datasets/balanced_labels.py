"""Random labels in equal shares."""

import numpy as np


def balanced_labels(
    rng: np.random.Generator, size: int, num_labels: int
) -> np.ndarray:
    """Draws labels from 0 in random order, each label equally often.

    If `size` is not a multiple of `num_labels`, some labels occur once more
    than others. Which ones is random, so all labels are equally likely.

    Example:

    >>> sorted(balanced_labels(np.random.default_rng(0), 6, 3).tolist())
    [0, 0, 1, 1, 2, 2]
    """
    labels = np.arange(size) + rng.integers(num_labels)
    return rng.permutation(labels % num_labels)
