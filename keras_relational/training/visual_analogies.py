"""Training on visual analogies, drawn or read when they are needed."""

import pathlib
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_relational import runs
from keras_relational.datasets import visual_analogies
from keras_relational.random_streams import stream
from keras_relational.training.minibatches import GeneratedBatches
from keras_relational.training.minibatches import Minibatches
from keras_relational.training.supervised import accuracy


class VisualAnalogyBatches(GeneratedBatches):
    """New problems without end, for `models.visual_analogy_scorer`.

    Batch `i` depends on the seed and on `i` alone. The batches have no end, so
    `fit` needs `steps_per_epoch`, and `shuffle=False`.

    Args:
        batch_size: Number of problems of a batch.
        regime: Which values the problems are made of, `"train"` or `"test"`, as
            `visual_analogies.generate` takes it.
        candidates: How the wrong candidates are chosen, `"contrasting"` or
            `"random"`, as `visual_analogies.generate` takes it.
        image_size: Height and width of the images, a multiple of 16.
        initial_batch: Number of the batch to begin with.
        seed: Non-negative integer. Batch `i` is made with `[seed, i]`, and for
            NumPy `[seed, 0]` is `seed`: take another seed for test problems.
        distraction: If `True`, rows vary in a second domain, too.

    Example:

    >>> x, y = VisualAnalogyBatches()[0]
    >>> x.shape, y.shape
    ((32, 9, 80, 80, 1), (32,))
    """

    def __init__(
        self,
        batch_size: int = 32,
        regime: str = "train",
        candidates: str = "contrasting",
        image_size: int = 80,
        initial_batch: int = 0,
        seed: int = 0,
        distraction: bool = True,
    ) -> None:
        super().__init__(batch_size, initial_batch, seed)
        self.arguments = (regime, candidates, image_size)
        self.distraction = distraction

    def generate(
        self, n: int, seed: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draws problems.

        Args:
            n: Number of problems.
            seed: Seed as `numpy.random.default_rng` takes it.

        Returns:
            Images `(n, 9, image_size, image_size, 1)` and labels `(n,)`.
        """
        problems = visual_analogies.generate(
            n, *self.arguments, seed, self.distraction
        )
        return problems.images, problems.labels


class VisualAnalogyFiles(Minibatches):
    """Published problems, shuffled without end and read when they are needed.

    Read at once they would take some 35 GB as images of 80 pixels. Batch `i`
    depends on the files, the seed and `i` alone. The batches have no end, so
    `fit` needs `steps_per_epoch`, and `shuffle=False`.

    Args:
        paths: Paths of the files, one a problem.
        batch_size: Number of problems of a batch.
        image_size: Height and width to which the images of 160 pixels are
            reduced, as `visual_analogies.load_npz` takes it.
        initial_batch: Number of the batch to begin with.
        seed: Non-negative integer.

    Raises:
        ValueError: If there are fewer files than a batch has problems. Reading
            a batch raises what `visual_analogies.load_npz` does.
    """

    def __init__(
        self,
        paths: Iterable[pathlib.Path | str],
        batch_size: int = 32,
        image_size: int = 80,
        initial_batch: int = 0,
        seed: int = 0,
    ) -> None:
        paths = np.array([str(path) for path in paths])
        super().__init__(paths, paths, batch_size, None, initial_batch, seed)
        self.image_size = image_size

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        paths, _ = super().__getitem__(index)
        return visual_analogies.load_npz(paths.tolist(), self.image_size)


def visual_analogy_tests(
    num_test: int,
    candidates: str = "contrasting",
    image_size: int = 80,
    seed: int = 0,
    distraction: bool = True,
) -> dict[str, visual_analogies.Problems]:
    """Draws test problems of values never seen, and of familiar ones.

    They differ from the batches that `VisualAnalogyBatches` draws of this seed.

    Args:
        num_test: Positive integer, the number of problems of each set.
        candidates: How the wrong candidates are chosen, `"contrasting"` or
            `"random"`, as `visual_analogies.generate` takes it.
        image_size: Height and width of the images, a multiple of 16.
        seed: Non-negative integer.
        distraction: If `True`, rows vary in a second domain, too.

    Returns:
        Dictionary of two `visual_analogies.Problems`: `"test"`, of values that
        no training problem has, and `"near"`, of the values of training.

    Example:

    >>> visual_analogy_tests(3)["near"].images.shape
    (3, 9, 80, 80, 1)
    """
    return {
        name: visual_analogies.generate(
            *(num_test, regime, candidates, image_size),
            *(stream(seed, values), distraction),
        )
        for name, regime, values in (
            ("test", "test", "unseen_values"),
            ("near", "train", "familiar_values"),
        )
    }


def visual_analogy_accuracies(
    model: keras.Model,
    tests: Mapping[str, Sequence[np.ndarray]],
    num_problems: int | None = None,
) -> dict[str, float]:
    """The accuracy on each test set, for learning curves.

    Problems are scored in batches of 32, as in training, because some
    normalizations depend on the batch.

    Args:
        model: `keras.Model`, as `models.visual_analogy_scorer` builds.
        tests: Dictionary from a name to problems: images, labels, and anything
            after these.
        num_problems: Number of problems of each set to measure on. By default
            all of them.

    Returns:
        Dictionary from `"NAME_accuracy"` to a number between 0 and 1.
    """
    return {
        f"{name}_accuracy": accuracy(
            model, images[:num_problems], labels[:num_problems], batch_size=32
        )
        for name, (images, labels, *_) in tests.items()
    }


def visual_analogy_digest(*sets: Sequence[pathlib.Path | str]) -> str:
    """A digest of published problems, to tell runs on other files apart.

    It depends on the names of all files, without their folders, and on the
    content of a hundred files or so of each set. A set may have a million.

    Args:
        *sets: Sequences of paths, each one the files of a set.

    Returns:
        String, as `runs.data_digest` returns it.

    Raises:
        ValueError: As for `visual_analogies.load_npz`.
    """
    parts: list[Any] = []
    for paths in sets:
        parts.append([pathlib.Path(path).name for path in paths])
        some = paths[:: len(paths) // 100 + 1]
        parts += visual_analogies.load_npz(some)
    return runs.data_digest(*parts)
