"""Kinds of examples in equal shares."""

import numpy as np


def balanced_labels(rng, size, num_kinds):
    """A kind for each of so many examples, in random order.

    Each kind has as many as the others, or one more: which do is drawn, too, so
    that each is as likely in a batch that they do not divide.

    Args:
        rng: `np.random.Generator`.
        size: Number of examples.
        num_kinds: Number of kinds.

    Returns:
        Integer array `(size,)`, from 0 on.
    """
    kinds = np.arange(size) + rng.integers(num_kinds)
    return rng.permutation(kinds % num_kinds)
