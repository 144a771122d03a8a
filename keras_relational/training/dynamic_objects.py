"""Training on moving squares, which are drawn when they are needed."""

import numpy as np

from keras_relational import models
from keras_relational.datasets import dynamic_objects
from keras_relational.training.generated_batches import GeneratedBatches


class FrameBatches(GeneratedBatches):
    """Single images without end, for an autoencoder.

    Their squares have all widths, small and large: what is to extrapolate is
    the predictor, whose training sequences show small ones only. (Webb et al.,
    2020, do not say so; but they name the two other tasks as those in which
    the encoder has seen no object of the test domain, section 7.) Batch `i`
    depends on the seed and on `i` alone.

    Args:
        batch_size: Number of images of a batch.
        initial_batch: The batch to begin with.
        seed: Non-negative integer.

    Example:

    >>> x, y = FrameBatches()[0]
    >>> x.dtype, x.shape, y.dtype, float(y.max())
    (dtype('uint8'), (32, 64, 64, 1), dtype('float32'), 1.0)
    """

    def __init__(self, batch_size=32, initial_batch=0, seed=0):
        super().__init__(batch_size, initial_batch, seed)

    def generate(self, n, seed):
        (images,) = np.moveaxis(
            dynamic_objects.generate(
                n, dynamic_objects.ALL_WIDTHS, num_frames=1, seed=seed
            ),
            1,
            0,
        )
        return images, images.astype("float32") / 255


def frame_embeddings(model, sequences, batch_size=50):
    """The embeddings of the frames of sequences.

    Args:
        model: A `keras.Model` as `models.image_autoencoder` builds.
        sequences: uint8 array `(n, time, 64, 64, 1)`.
        batch_size: Number of sequences encoded at once.

    Returns:
        float32 array `(n, time, features)`.
    """
    frames = sequences.reshape(-1, *sequences.shape[2:])
    encoder = models.part(model, "encoder")
    z = encoder.predict(
        frames, batch_size=batch_size * sequences.shape[1], verbose=0
    )
    return z.reshape(*sequences.shape[:2], -1)


def prediction_error(model, sequences, batch_size=32):
    """Mean squared error of predicted images, with pixels between 0 and 1.

    Table 4 of Webb et al., 2020.

    Args:
        model: A `keras.Model` as `models.object_predictor` builds.
        sequences: uint8 array `(n, time, 64, 64, 1)`: each frame but the last
            is given, and each but the first is predicted.
        batch_size: Number of sequences of a batch, of whose statistics some
            normalizations make use.

    Returns:
        Number.
    """
    errors = [
        np.mean(
            (
                model.predict_on_batch(sequences[i : i + batch_size, :-1])
                - sequences[i : i + batch_size, 1:] / np.float32(255)
            )
            ** 2,
            axis=(1, 2, 3, 4),
        )
        for i in range(0, len(sequences), batch_size)
    ]
    return float(np.concatenate(errors).mean())
