"""Batches of videos that are drawn from a training set."""

from collections.abc import Sequence

import numpy as np


class VideoSamples:
    """Draws videos from a training set, as `VideoBatches` takes them.

    A video may come again in the same batch.

    Args:
        videos: Array `(num_videos, time, height, width, channels)`.

    Call arguments:
        n: Number of videos to draw.
        seed: Seed, as `np.random.default_rng` takes it.

    Returns:
        Array `(n, time, height, width, channels)`.

    Example:

    >>> samples = VideoSamples(np.arange(4).reshape(4, 1, 1, 1, 1))
    >>> samples(3, seed=0).ravel().tolist()
    [3, 2, 2]
    """

    def __init__(self, videos: np.ndarray) -> None:
        self.videos = videos

    def __call__(self, n: int, seed: int | Sequence[int]) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return self.videos[rng.integers(len(self.videos), size=n)]
