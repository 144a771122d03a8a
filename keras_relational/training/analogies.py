"""Training and testing on VAEC, whose images are drawn when they are needed."""

import numpy as np

from keras_relational import models
from keras_relational.datasets import vaec
from keras_relational.training.minibatches import Minibatches


class AnalogyBatches(Minibatches):
    """VAEC problems, shuffled without end, as batches for `fit`.

    Batch `i` depends on the seed and on `i` alone. Being endless, it needs
    `steps_per_epoch` in `fit`, and `shuffle=False`.

    Args:
        problems: `vaec.Problems`.
        batch_size: Number of problems of a batch.
        image_size: As for `vaec.render`.
        initial_batch: The batch to begin with.
        seed: Non-negative integer.

    Raises:
        ValueError: If there is less than one batch of problems.

    Example:

    >>> batches = AnalogyBatches(vaec.generate(seed=0), 32, image_size=64)
    >>> x, y = batches[0]
    >>> x["images"].shape, x["candidates"].shape, y.shape
    ((32, 7, 64, 64, 3), (32, 7), (32,))
    """

    def __init__(
        self,
        problems,
        batch_size=32,
        image_size=vaec.IMAGE_SIZE,
        initial_batch=0,
        seed=0,
    ):
        answers = np.zeros(len(problems.levels), "uint8")
        super().__init__(
            problems, answers, batch_size, None, initial_batch, seed
        )
        self.image_size = image_size

    def __getitem__(self, index):
        problems, answers = super().__getitem__(index)
        return analogy_inputs(problems, self.image_size), answers


def analogy_inputs(problems, image_size=vaec.IMAGE_SIZE):
    """Problems as `models.analogy_scorer` takes them, their images drawn.

    Args:
        problems: `vaec.Problems`.
        image_size: As for `vaec.render`.

    Returns:
        Dictionary of the arrays `images`, `context` and `candidates`.
    """
    return {
        "images": vaec.render(problems.levels, image_size),
        **_terms(problems),
    }


def solved_analogies(model, problems, batch_size=32):
    """Which problems a model of `models.analogy_scorer` solves.

    A problem is solved if its answer has a higher score than any other
    candidate, and not if another has the same. Each different image is encoded
    once. Where a normalization uses the statistics of the batch at hand, it is
    that of `batch_size` problems, in the order in which they come.

    Args:
        model: A `keras.Model` as `models.analogy_scorer` builds.
        problems: `vaec.Problems`.
        batch_size: Number of problems of a batch; what is left at the end is
            one of its own.

    Returns:
        Boolean array `(n,)`; its mean is the accuracy.
    """
    z = embeddings(model, problems.levels)
    scores = models.part(model, "scorer").predict(
        {"embeddings": z, **_terms(problems)}, batch_size=batch_size, verbose=0
    )
    return (scores[:, :1] > scores[:, 1:]).all(axis=1)


def adapt_normalization(model, problems, batch_size=1_000):
    """Takes the statistics of all training problems, for use in inference.

    Does nothing where the model's normalization has none. Reference: "batch
    norm. (train stats)" in Tables 1 and 2 of Webb et al., 2020.

    Args:
        model: A `keras.Model` as `models.analogy_scorer` builds, trained.
        problems: `vaec.Problems` that it was trained on.
        batch_size: Number of problems taken at once.
    """
    normalization = models.part(model, "normalization")
    if getattr(normalization, "statistics", "batch") != "training":
        return
    sequences = models.part(model, "sequences")
    z = embeddings(model, problems.levels)
    terms = _terms(problems)

    def batches():
        for i in range(0, len(z), batch_size):
            rows = slice(i, i + batch_size)
            yield sequences(z[rows], *(x[rows] for x in terms.values()))

    normalization.adapt(batches())


def embeddings(model, levels, batch_size=250):
    """The embeddings of VAEC images, each different one encoded once.

    Args:
        model: A `keras.Model` as `models.analogy_scorer` builds.
        levels: Levels `(..., 4)` of the images.
        batch_size: Number of images encoded at once.

    Returns:
        float32 array `(..., features)`.
    """
    encoder = models.part(model, "encoder").layer
    image_size = encoder.input_shape[1]
    codes = np.ravel_multi_index(
        np.moveaxis(levels, -1, 0), 4 * (vaec.NUM_LEVELS,)
    )
    codes, place = np.unique(codes, return_inverse=True)
    different = np.stack(np.unravel_index(codes, 4 * (vaec.NUM_LEVELS,)), -1)
    z = np.concatenate(
        [
            encoder.predict_on_batch(
                vaec.render(different[i : i + batch_size], image_size)
            )
            for i in range(0, len(different), batch_size)
        ]
    )
    return z[place].reshape(*levels.shape[:-1], -1)


def _terms(problems):
    return {
        "context": problems.context.astype("int32"),
        "candidates": problems.candidates.astype("int32"),
    }
