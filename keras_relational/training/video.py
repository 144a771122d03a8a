"""Training on videos, and the errors of predicted frames.

`VideoBatches` makes videos when they are needed, or draws them from a training
set. The errors are those of roll-outs, and those on matched sets of intuitive
physics: does a predictor see what is impossible?
"""

import pathlib
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

import keras
import numpy as np

from keras_relational import models
from keras_relational.datasets import intuitive_physics
from keras_relational.models.image_model import to_pixels
from keras_relational.random_streams import stream
from keras_relational.training.minibatches import GeneratedBatches


class VideoBatches(GeneratedBatches):
    """Videos without end, each frame of which is to be predicted.

    Batch `i` depends on the seed and on `i` alone. The batches have no end, so
    `fit` needs `steps_per_epoch`, and `shuffle=False`.

    Args:
        generate: Function of a number of videos and a `seed` to uint8 frames
            `(n, time, height, width, channels)`, such as those in `datasets`.
        batch_size: Number of videos of a batch.
        initial_batch: Number of the batch to begin with.
        seed: Non-negative integer. Batch `i` is made with `[seed, i]`, and for
            NumPy `[seed, 0]` is `seed`: take another seed for test videos.
        num_given: Number of frames that the model sees, for a model of
            `models.roll_out_model` with `all_frames`. By default it sees all
            frames but the last.

    Example:

    >>> from keras_relational.datasets import dynamic_objects
    >>> def generate(n, seed):
    ...     return dynamic_objects.generate(n, seed=seed)
    >>> x, y = VideoBatches(generate, batch_size=2)[0]
    >>> x.dtype, x.shape, y.dtype, y.shape
    (dtype('uint8'), (2, 19, 64, 64, 1), dtype('float32'), (2, 19, 64, 64, 1))
    """

    def __init__(
        self,
        generate: Callable[..., np.ndarray],
        batch_size: int = 64,
        initial_batch: int = 0,
        seed: int = 0,
        num_given: int | None = None,
    ) -> None:
        super().__init__(batch_size, initial_batch, seed)
        self.make_videos = generate
        self.num_given = -1 if num_given is None else num_given

    def generate(
        self, n: int, seed: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Makes videos.

        Args:
            n: Number of videos.
            seed: Seed as `numpy.random.default_rng` takes it.

        Returns:
            The frames that the model sees, in uint8, and all but the first, in
            float32 with pixels between 0 and 1.
        """
        frames = to_pixels(self.make_videos(n, seed=seed))
        return frames[:, : self.num_given], frames[:, 1:] / np.float32(255)


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


def pixel_errors(
    predict: Callable[[np.ndarray], np.ndarray],
    inputs: np.ndarray,
    targets: np.ndarray,
    axis: tuple[int, ...],
    batch_size: int,
) -> np.ndarray:
    """Mean squared errors of predicted images, computed batch by batch.

    Args:
        predict: Function from a batch of `inputs` to predicted images, with
            pixels between 0 and 1.
        inputs: Array with one row an example.
        targets: uint8 array of the true images, with one row an example.
        axis: Axes over which the mean is taken.
        batch_size: Number of examples predicted at once.

    Returns:
        Array with one row an example, without those axes.
    """
    errors = []
    for i in range(0, len(targets), batch_size):
        rows = slice(i, i + batch_size)
        true = to_pixels(targets[rows]) / np.float32(255)
        errors.append(np.mean((predict(inputs[rows]) - true) ** 2, axis=axis))
    return np.concatenate(errors)


def roll_out_errors(
    predictor: keras.Model,
    videos: np.ndarray,
    num_given: int = 15,
    num_frames: int = 30,
    batch_size: int = 50,
) -> np.ndarray:
    """Mean squared error of each frame that is predicted from predictions.

    The predictor sees the first true frames, and then its own predictions.
    Fig. 7 of Goyal et al., 2020, shows errors relative to those of a GRU, and
    does not say of which kind.

    Args:
        predictor: A `keras.Model` as `models.video_predictor` builds.
        videos: uint8 array `(n, time, height, width, channels)`.
        num_given: Number of true frames to begin with.
        num_frames: Number of frames to predict.
        batch_size: Number of videos rolled out at once.

    Returns:
        Array `(num_frames,)`, for pixels between 0 and 1.

    Raises:
        ValueError: If the videos are too short.
    """
    return _errors_of_frames(
        models.roll_out_model(predictor, num_frames).predict_on_batch,
        *(videos, num_given, num_frames, batch_size),
    )


def _errors_of_frames(predict, videos, num_given, num_frames, batch_size=50):
    """Mean squared error of each frame, predicted from those before."""
    time = num_given + num_frames
    if videos.shape[1] < time:
        raise ValueError(
            f"{num_given} frames given and {num_frames} predicted need videos "
            f"of {time} frames. Received: videos.shape={videos.shape}"
        )
    errors = pixel_errors(
        predict,
        videos[:, :num_given],
        videos[:, num_given:time],
        axis=(2, 3, 4),
        batch_size=batch_size,
    )
    return errors.mean(axis=0)


def simple_roll_out_errors(
    videos: np.ndarray, num_given: int = 15, num_frames: int = 30
) -> dict[str, np.ndarray]:
    """Errors of two predictions that need no model, beside `roll_out_errors`.

    Args:
        videos: uint8 array `(n, time, height, width, channels)`.
        num_given: Number of frames before those that are predicted.
        num_frames: Number of frames that are predicted.

    Returns:
        Mean squared errors `(num_frames,)`, for pixels between 0 and 1, of

        - `mean_image`: the mean of all frames of all videos, each time,
        - `last_frame`: the last given frame, each time.

    Raises:
        ValueError: If the videos are too short.
    """
    videos = to_pixels(videos)
    mean = np.float32(videos.mean((0, 1)) / 255)
    predictions = {
        "mean_image": lambda given: mean,
        "last_frame": lambda given: given[:, -1:] / np.float32(255),
    }
    return {
        name: _errors_of_frames(predict, videos, num_given, num_frames)
        for name, predict in predictions.items()
    }


def plausibility(
    predictor: keras.Model, videos: np.ndarray, batch_size: int = 50
) -> np.ndarray:
    """How plausible videos are to a predictor: minus the error of its frames.

    The predictor sees all frames before each frame and predicts it. The result
    is minus the mean squared error over all frames, which is the log-likelihood
    under a Gaussian, up to a factor and a constant. Goyal et al., 2020, section
    5, use "model likelihood", and say no more. Videos of a set are alike until
    something impossible happens in some of them, so until then they count the
    same.

    Args:
        predictor: A `keras.Model` as `models.video_predictor` builds.
        videos: uint8 array `(n, time, height, width, channels)`.
        batch_size: Number of videos predicted at once.

    Returns:
        Array `(n,)`.
    """
    return -pixel_errors(
        predictor.predict_on_batch,
        videos[:, :-1],
        videos[:, 1:],
        axis=(1, 2, 3, 4),
        batch_size=batch_size,
    )


def relative_error(plausibilities: np.ndarray) -> float:
    """The share of matched sets in which the possible videos seem less likely.

    Args:
        plausibilities: Array `(num_sets, 4)`: of each set two possible videos,
            then two impossible ones.

    Returns:
        Number between 0 and 1. A set whose sums are equal counts half.

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
            "The plausibility of a video is NaN, so it cannot be compared: has "
            "the predictor diverged?"
        )
    pairs = plausibilities.reshape(-1, 2, 2).sum(axis=2)
    difference = pairs[:, 0] - pairs[:, 1]
    return float(np.mean((difference < 0) + (difference == 0) / 2))


def physics_tests(
    num_sets: int = 100,
    seed: int = 0,
    num_frames: int = intuitive_physics.NUM_FRAMES,
    image_size: int = intuitive_physics.IMAGE_SHAPE[0],
) -> dict[str, np.ndarray]:
    """Matched sets of each block: two possible videos and two impossible ones.

    They share nothing with batches of `VideoBatches` of the same seed.

    Args:
        num_sets: Number of sets of each block.
        seed: Non-negative integer.
        num_frames: Number of frames of a video, 20 or more.
        image_size: Height and width of a frame in pixels, a divisor of 64.

    Returns:
        Dictionary from each of `intuitive_physics.BLOCKS` to its sets, as
        `intuitive_physics.generate` returns them.
    """
    return {
        block: intuitive_physics.generate(
            *(block, num_sets, num_frames),
            stream(seed, "block_beside_batches", number),
            image_size,
        )
        for number, block in enumerate(intuitive_physics.BLOCKS, start=1)
    }


def published_physics_tests(
    folder: pathlib.Path | str | None, image_size: int
) -> dict[str, np.ndarray]:
    """The published sets of each block, as `physics_tests` has our own.

    Args:
        folder: Path of the folder of the development set, or `None`.
        image_size: Height and width of a frame in pixels.

    Returns:
        Dictionary from each of `intuitive_physics.BLOCKS` to its sets, as
        `intuitive_physics.read_published` returns them. Empty without a folder.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: As for `intuitive_physics.read_published`.
    """
    if folder is None:
        return {}
    return {
        block: intuitive_physics.read_published(folder, block, image_size)
        for block in intuitive_physics.BLOCKS
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
