"""Batches from any number on: of arrays, and of new examples without end."""

import keras
import numpy as np

from keras_relational import training
from keras_relational.random_streams import stream


def shuffled(x, y, batch_size, seed):
    """A function from the number of a batch to the arrays' batches from it."""
    return lambda first: training.Minibatches(
        x,
        y,
        batch_size=batch_size,
        steps_per_execution=None,
        initial_batch=first,
        seed=seed,
    )


def generated(generate, batch_size=32, seed=0):
    """A function from the number of a batch to `GeneratedBatches` from it."""
    return lambda first: GeneratedBatches(generate, batch_size, first, seed)


def drawn(data, examples):
    """A function that makes examples of rows of an array, drawn at random.

    `examples(rows, rng)` returns x and y.
    """

    def generate(size, seed):
        rng = np.random.default_rng(seed)
        return examples(data[rng.integers(len(data), size=size)], rng)

    return generate


class GeneratedBatches(keras.utils.PyDataset):
    """New examples without end, made when they are needed.

    Batch `i` is made with `stream(seed, "batch", i)` alone, so a run that
    continues sees the batches of an unbroken run. Test examples need a stream
    for runs with batches, such as `"test_beside_batches"`. `fit` needs
    `steps_per_epoch`, and `shuffle=False`. `generate(n, seed)` returns `n`
    examples, x and y.
    """

    def __init__(self, generate, batch_size=32, initial_batch=0, seed=0):
        # Two threads, as in `training.Minibatches`.
        super().__init__(workers=2, max_queue_size=2)
        self.generate = generate
        self.batch_size = batch_size
        self.initial_batch = initial_batch
        self.seed = seed

    @property
    def num_batches(self):
        return None

    def __getitem__(self, index):
        number = self.initial_batch + index
        return self.generate(
            self.batch_size, stream(self.seed, "batch", number)
        )
