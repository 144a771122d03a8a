"""Training on moving squares, which are drawn when they are needed."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_relational import models
from keras_relational.datasets import dynamic_objects
from keras_relational.models.image_model import to_pixels
from keras_relational.random_streams import stream
from keras_relational.training.minibatches import GeneratedBatches
from keras_relational.training.supervised import predictions


class FrameBatches(GeneratedBatches):
    """Single images without end, for an autoencoder.

    The squares have all widths, small and large. Only the predictor has to
    extrapolate: its training sequences show small squares. Webb et al., 2020,
    do not say so, but in section 7 they name their two other tasks as those in
    which the encoder has seen no object of the test domain.

    Batch `i` depends on the seed and on `i` alone. The batches have no end, so
    `fit` needs `steps_per_epoch`, and `shuffle=False`.

    Args:
        batch_size: Number of images of a batch.
        initial_batch: Number of the batch to begin with.
        seed: Non-negative integer. Batch `i` is made with `[seed, i]`, and for
            NumPy `[seed, 0]` is `seed`: take another seed for test images.

    Example:

    >>> x, y = FrameBatches()[0]
    >>> x.dtype, x.shape, y.dtype, float(y.max())
    (dtype('uint8'), (32, 64, 64, 1), dtype('float32'), 1.0)
    """

    def __init__(
        self, batch_size: int = 32, initial_batch: int = 0, seed: int = 0
    ) -> None:
        super().__init__(batch_size, initial_batch, seed)

    def generate(
        self, n: int, seed: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draws images.

        Args:
            n: Number of images.
            seed: Seed as `numpy.random.default_rng` takes it.

        Returns:
            uint8 images `(n, 64, 64, 1)`, and the same in float32 with pixels
            between 0 and 1.
        """
        (images,) = np.moveaxis(
            dynamic_objects.generate(
                n, dynamic_objects.ALL_WIDTHS, num_frames=1, seed=seed
            ),
            1,
            0,
        )
        return images, images.astype("float32") / 255


def frame_embeddings(
    model: keras.Model, sequences: np.ndarray, batch_size: int = 10
) -> np.ndarray:
    """The embeddings of the frames of sequences.

    Args:
        model: A `keras.Model` as `models.image_autoencoder` builds.
        sequences: uint8 array `(n, time, 64, 64, 1)`.
        batch_size: Number of sequences encoded at once.

    Returns:
        float32 array `(n, time, features)`.
    """
    frames = to_pixels(sequences).reshape(-1, *sequences.shape[2:])
    encoder = models.part(model, "encoder")
    z = predictions(encoder, frames, batch_size * sequences.shape[1])
    return z.reshape(*sequences.shape[:2], -1)


def prediction_error(
    model: keras.Model, sequences: np.ndarray, batch_size: int = 32
) -> float:
    """Mean squared error of predicted images, with pixels between 0 and 1.

    Reference: Table 4 of Webb et al., 2020.

    Args:
        model: A `keras.Model` as `models.object_predictor` builds.
        sequences: uint8 array `(n, time, 64, 64, 1)`. The model sees each frame
            but the last, and predicts each but the first.
        batch_size: Number of sequences of a batch. Some normalizations use the
            statistics of the batch.

    Returns:
        Number.
    """
    errors = []
    for first in range(0, len(sequences), batch_size):
        batch = sequences[first : first + batch_size]
        true = to_pixels(batch[:, 1:]) / np.float32(255)
        predicted = model.predict_on_batch(batch[:, :-1])
        errors.append(np.mean((predicted - true) ** 2, axis=(1, 2, 3, 4)))
    return float(np.concatenate(errors).mean())


def dynamic_object_tests(num_test: int, seed: int = 0) -> list[np.ndarray]:
    """Draws two test sets of sequences with large squares.

    They differ from the batches that `FrameBatches` draws of this seed.

    Args:
        num_test: Positive integer, the number of sequences of each set.
        seed: Non-negative integer.

    Returns:
        List of two uint8 arrays `(num_test, 20, 64, 64, 1)`.

    Example:

    >>> [x.shape for x in dynamic_object_tests(3)]
    [(3, 20, 64, 64, 1), (3, 20, 64, 64, 1)]
    """
    widths = dynamic_objects.TEST_WIDTHS
    return [
        dynamic_objects.generate(num_test, widths, seed=stream(seed, name))
        for name in ("test_beside_batches", "second_test_beside_batches")
    ]
