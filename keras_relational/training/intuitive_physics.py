"""Tests of intuitive physics: does a predictor see what is impossible?"""

from collections.abc import Mapping

import keras
import numpy as np

from keras_relational.datasets import intuitive_physics
from keras_relational.random_streams import stream
from keras_relational.training.video import plausibility
from keras_relational.training.video import relative_error


def physics_tests(num_sets: int = 100, seed: int = 0) -> dict[str, np.ndarray]:
    """Matched sets of each block: two possible videos and two impossible ones.

    They share nothing with batches of `VideoBatches` of the same seed.

    Args:
        num_sets: Number of sets of each block.
        seed: Non-negative integer.

    Returns:
        Dictionary from each of `intuitive_physics.BLOCKS` to its sets, as
        `intuitive_physics.generate` returns them.
    """
    return {
        block: intuitive_physics.generate(
            block, num_sets, seed=stream(seed, "block_beside_batches", number)
        )
        for number, block in enumerate(intuitive_physics.BLOCKS, start=1)
    }


def relative_errors(
    model: keras.Model, tests: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """The relative error of a predictor on each block.

    Args:
        model: `keras.Model` as `models.video_predictor` builds.
        tests: Dictionary from a block to its sets, uint8 `(num_sets, 4, time,
            height, width, 3)`.

    Returns:
        Dictionary from each block to its `relative_error`.
    """
    errors = {}
    for block, sets in tests.items():
        videos = sets.reshape(-1, *sets.shape[2:])
        errors[block] = relative_error(
            plausibility(model, videos).reshape(-1, 4)
        )
    return errors
