"""Training on visual analogies, which are drawn when they are needed."""

from keras_relational.datasets import visual_analogies
from keras_relational.training.generated_batches import GeneratedBatches


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
    ):
        super().__init__(batch_size, initial_batch, seed)
        self.arguments = (regime, candidates, image_size)

    def generate(self, n, seed):
        problems = visual_analogies.generate(n, *self.arguments, seed=seed)
        return problems.images, problems.labels
