"""The domains of panels, and the ranges of their values."""

import numpy as np

DOMAINS = (
    "line_colour",
    "line_type",
    "shape_colour",
    "shape_type",
    "shape_size",
    "shape_quantity",
    "shape_position",
)
ORDERED_DOMAINS = (
    "line_colour",
    "shape_colour",
    "shape_size",
    "shape_quantity",
)
# First and last value of each domain, and the last value in training.
RANGES = np.array(
    [
        (0, 9, 4),
        (0, 5, 5),
        (0, 9, 4),
        (0, 6, 6),
        (0, 9, 4),
        (1, 9, 4),
        (0, 8, 8),
    ]
)
# Room for the values of all domains, from 0 on.
NUM_VALUES = 10


def value_limits(
    domains: np.ndarray, is_far: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last value of domains `(n,)`.

    `is_far` `(n,)` marks those with the range beyond that of training.
    """
    first, last, last_near = RANGES[domains].T
    return (
        np.where(is_far, last_near + 1, first),
        np.where(is_far, last, last_near),
    )
