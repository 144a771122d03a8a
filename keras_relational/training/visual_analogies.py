"""Training on visual analogies, drawn or read when they are needed."""

import numpy as np

from keras_relational.datasets import visual_analogies
from keras_relational.training.generated_batches import GeneratedBatches
from keras_relational.training.minibatches import Minibatches


class VisualAnalogyBatches(GeneratedBatches):
    """New problems without end, for `models.visual_analogy_scorer`.

    Batch `i` depends on the seed and on `i` alone. Being endless, it needs
    `steps_per_epoch` in `fit`, and `shuffle=False`.

    Args:
        batch_size: Number of problems of a batch.
        regime: As for `visual_analogies.generate`, and those below.
        candidates: See above.
        image_size: See above.
        initial_batch: The batch to begin with.
        seed: Non-negative integer.
        distraction: See above.

    Example:

    >>> x, y = VisualAnalogyBatches()[0]
    >>> x.shape, y.shape
    ((32, 9, 80, 80, 1), (32,))
    """

    def __init__(
        self,
        batch_size=32,
        regime="train",
        candidates="contrasting",
        image_size=80,
        initial_batch=0,
        seed=0,
        distraction=True,
    ):
        super().__init__(batch_size, initial_batch, seed)
        self.arguments = (regime, candidates, image_size)
        self.distraction = distraction

    def generate(self, n, seed):
        problems = visual_analogies.generate(
            n, *self.arguments, seed, self.distraction
        )
        return problems.images, problems.labels


class VisualAnalogyFiles(Minibatches):
    """Published problems, shuffled without end and read when they are needed.

    All of them at once would be some 35 GB of images of 80 pixels. Batch `i`
    depends on the files, the seed and `i` alone. Being endless, it needs
    `steps_per_epoch` in `fit`, and `shuffle=False`.

    Args:
        paths: Paths of the files, one a problem.
        batch_size: Number of problems of a batch.
        image_size: As for `visual_analogies.load_npz`.
        initial_batch: The batch to begin with.
        seed: Non-negative integer.

    Raises:
        ValueError: If there is less than one batch of files; in reading, as for
            `visual_analogies.load_npz`.
    """

    def __init__(
        self, paths, batch_size=32, image_size=80, initial_batch=0, seed=0
    ):
        paths = np.array([str(path) for path in paths])
        super().__init__(paths, paths, batch_size, None, initial_batch, seed)
        self.image_size = image_size

    def __getitem__(self, index):
        paths, _ = super().__getitem__(index)
        return visual_analogies.load_npz(paths.tolist(), self.image_size)
