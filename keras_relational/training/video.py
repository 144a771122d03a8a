"""Training on videos that are made when they are needed, and roll-outs."""

import numpy as np

from keras_relational import models
from keras_relational.training.generated_batches import GeneratedBatches


class VideoBatches(GeneratedBatches):
    """Videos without end, each frame of which is to be predicted.

    Batch `i` depends on the seed and on `i` alone.

    Args:
        generate: Function of a number of videos and a seed to uint8 frames
            `(n, time, height, width, channels)`, such as those in `datasets`.
        batch_size: Number of videos of a batch.
        initial_batch: The batch to begin with.
        seed: Non-negative integer.

    Example:

    >>> from keras_relational.datasets import dynamic_objects
    >>> def generate(n, seed):
    ...     return dynamic_objects.generate(n, seed=seed)
    >>> x, y = VideoBatches(generate, batch_size=2)[0]
    >>> x.dtype, x.shape, y.dtype, y.shape
    (dtype('uint8'), (2, 19, 64, 64, 1), dtype('float32'), (2, 19, 64, 64, 1))
    """

    def __init__(self, generate, batch_size=64, initial_batch=0, seed=0):
        super().__init__(batch_size, initial_batch, seed)
        self.make_videos = generate

    def generate(self, n, seed):
        frames = self.make_videos(n, seed=seed)
        return frames[:, :-1], frames[:, 1:] / np.float32(255)


def roll_out_errors(
    predictor, videos, num_given=15, num_frames=30, batch_size=50
):
    """Mean squared error of each frame that is predicted from predictions.

    Fig. 7 of Goyal et al., 2020, has errors relative to those of a GRU, and
    does not say of what kind.

    Args:
        predictor: A `keras.Model` as `models.video_predictor` builds.
        videos: uint8 array `(n, time, height, width, channels)`.
        num_given: Number of true frames to begin with.
        num_frames: Number of frames to predict.
        batch_size: Number of videos rolled out at once.

    Returns:
        Array `(num_frames,)`; pixels between 0 and 1.

    Raises:
        ValueError: If the videos are too short.
    """
    time = num_given + num_frames
    if videos.shape[1] < time:
        raise ValueError(
            f"{num_given} frames given and {num_frames} predicted need videos "
            f"of {time} frames. Received: videos.shape={videos.shape}"
        )
    model = models.roll_out_model(predictor, num_frames)
    errors = []
    for i in range(0, len(videos), batch_size):
        batch = videos[i : i + batch_size]
        predicted = model.predict_on_batch(batch[:, :num_given])
        true = batch[:, num_given:time] / np.float32(255)
        errors.append(np.mean((predicted - true) ** 2, axis=(2, 3, 4)))
    return np.concatenate(errors).mean(axis=0)


def plausibility(predictor, videos, batch_size=50):
    """How plausible videos are to a predictor: minus the error of its frames.

    That is, minus the mean squared error of all frames that are predicted, each
    from all before, which is their log-likelihood under a Gaussian, but for a
    factor and a constant. Goyal et al., 2020, section 5, have "model
    likelihood", and say no more. What two videos of a set have in common, all
    that comes before the impossible, counts the same for both.

    Args:
        predictor: A `keras.Model` as `models.video_predictor` builds.
        videos: uint8 array `(n, time, height, width, channels)`.
        batch_size: Number of videos predicted at once.

    Returns:
        Array `(n,)`.
    """
    errors = []
    for i in range(0, len(videos), batch_size):
        batch = videos[i : i + batch_size]
        predicted = predictor.predict_on_batch(batch[:, :-1])
        squares = (predicted - batch[:, 1:] / np.float32(255)) ** 2
        errors.append(squares.mean(axis=(1, 2, 3, 4)))
    return -np.concatenate(errors)


def relative_error(plausibilities):
    """The share of matched sets in which what is possible seems less so.

    Args:
        plausibilities: Array `(num_sets, 4)`, of two possible videos and then
            two impossible ones.

    Returns:
        Number between 0 and 1; equal sums count half.

    Raises:
        ValueError: If the array has another shape, or a plausibility is NaN.

    Example:

    >>> relative_error([[3, 1, 0, 2], [0, 0, 1, 0]])
    0.5
    """
    plausibilities = np.asarray(plausibilities)
    if plausibilities.ndim != 2 or plausibilities.shape[1] != 4:
        raise ValueError(
            "Matched sets have four videos each, (num_sets, 4). Received: "
            f"plausibilities.shape={plausibilities.shape}"
        )
    if np.isnan(plausibilities).any():
        raise ValueError(
            "A video's plausibility is NaN, of which nothing can be said: has "
            "the predictor diverged?"
        )
    pairs = plausibilities.reshape(-1, 2, 2).sum(axis=2)
    difference = pairs[:, 0] - pairs[:, 1]
    return float(np.mean((difference < 0) + (difference == 0) / 2))
