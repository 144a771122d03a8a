"""Training and testing on VAEC, whose images are drawn when they are needed."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_relational import models
from keras_relational.datasets import vaec
from keras_relational.training.minibatches import Minibatches
from keras_relational.training.supervised import predictions


class AnalogyBatches(Minibatches):
    """VAEC problems, shuffled without end, as batches for `fit`.

    Batch `i` depends on the seed and on `i` alone. The batches have no end, so
    `fit` needs `steps_per_epoch`, and `shuffle=False`.

    Args:
        problems: `vaec.Problems`.
        batch_size: Number of problems of a batch.
        image_size: Height and width of the images: 32, 64 or 128 pixels.
        initial_batch: Number of the batch to begin with.
        seed: Non-negative integer.

    Raises:
        ValueError: If there are fewer problems than a batch has.

    Example:

    >>> batches = AnalogyBatches(vaec.generate(seed=0), 32, image_size=64)
    >>> x, y = batches[0]
    >>> x["images"].shape, x["candidates"].shape, y.shape
    ((32, 7, 64, 64, 3), (32, 7), (32,))
    """

    def __init__(
        self,
        problems: vaec.Problems,
        batch_size: int = 32,
        image_size: int = vaec.IMAGE_SIZE,
        initial_batch: int = 0,
        seed: int = 0,
    ) -> None:
        answers = np.zeros(len(problems.levels), "uint8")
        super().__init__(
            problems, answers, batch_size, None, initial_batch, seed
        )
        self.image_size = image_size

    def __getitem__(self, index: int) -> tuple[Any, np.ndarray]:
        problems, answers = super().__getitem__(index)
        return analogy_inputs(problems, self.image_size), answers


def analogy_inputs(
    problems: vaec.Problems, image_size: int = vaec.IMAGE_SIZE
) -> dict[str, np.ndarray]:
    """Problems as `models.analogy_scorer` takes them, with images drawn.

    Args:
        problems: `vaec.Problems`.
        image_size: Height and width of the images: 32, 64 or 128 pixels.

    Returns:
        Dictionary of the arrays `images`, `context` and `candidates`.
    """
    return {
        "images": vaec.render(problems.levels, image_size),
        **_terms(problems),
    }


def solved_analogies(
    model: keras.Model, problems: vaec.Problems, batch_size: int = 32
) -> np.ndarray:
    """Which problems a model of `models.analogy_scorer` solves.

    A problem is solved if its answer has a higher score than every other
    candidate; an equal score is not enough. Each different image is encoded
    once. Some normalizations use the statistics of the batch: a batch has
    `batch_size` problems, in their order.

    Args:
        model: A `keras.Model` as `models.analogy_scorer` builds.
        problems: `vaec.Problems`.
        batch_size: Number of problems of a batch; the last one may be smaller.

    Returns:
        Boolean array `(n,)`; its mean is the accuracy.
    """
    z = embeddings(model, problems.levels)
    inputs = {"embeddings": z, **_terms(problems)}
    scores = predictions(models.part(model, "scorer"), inputs, batch_size)
    return (scores[:, :1] > scores[:, 1:]).all(axis=1)


def region_accuracies(
    model: keras.Model,
    regions: Sequence[vaec.Problems],
    measured: Sequence[int] = (1, 2, 6),
    num_problems: int = 2_048,
) -> dict[str, float]:
    """The accuracy in some regions, for learning curves.

    First `adapt_normalization` takes the statistics of the first region, which
    the model is trained on.

    Args:
        model: A `keras.Model` as `models.analogy_scorer` builds.
        regions: Sequence of `vaec.Problems`, one item a region.
        measured: Numbers of the regions to measure, counted from 1.
        num_problems: Number of problems of each region to measure on.

    Returns:
        Dictionary from `"region_1_accuracy"` and so on to a number between 0
        and 1.
    """
    adapt_normalization(model, regions[0])
    accuracies = {}
    for region in measured:
        some = vaec.Problems(*(x[:num_problems] for x in regions[region - 1]))
        solved = solved_analogies(model, some)
        accuracies[f"region_{region}_accuracy"] = float(solved.mean())
    return accuracies


def adapt_normalization(
    model: keras.Model, problems: vaec.Problems, batch_size: int = 1_000
) -> None:
    """Takes the statistics of all training problems, for use in inference.

    It does nothing if the model's normalization uses no such statistics.
    Reference: Webb et al., 2020, "batch norm. (train stats)" in Tables 1 and 2.

    Args:
        model: A trained `keras.Model`, as `models.analogy_scorer` builds.
        problems: `vaec.Problems` that it was trained on.
        batch_size: Number of problems encoded at once.
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


def embeddings(
    model: keras.Model, levels: np.ndarray, batch_size: int = 250
) -> np.ndarray:
    """The embeddings of VAEC images. Each different image is encoded once.

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
