import keras


class GeneratedBatches(keras.utils.PyDataset):
    """New examples without end, made when they are needed.

    Batch `i` depends on the seed and on `i` alone, so that a run that continues
    at some batch sees what an unbroken one would have seen. Being endless, it
    needs `steps_per_epoch` in `fit`, and `shuffle=False`. A subclass has
    `generate(n, seed)`, which returns `n` examples: x and y.

    Args:
        batch_size: Number of examples of a batch.
        initial_batch: The batch to begin with.
        seed: Non-negative integer.
    """

    def __init__(self, batch_size, initial_batch=0, seed=0):
        # Two threads for the same reason as in `Minibatches`.
        super().__init__(workers=2, max_queue_size=2)
        self.batch_size = batch_size
        self.initial_batch = initial_batch
        self.seed = seed

    @property
    def num_batches(self):
        return None

    def __getitem__(self, index):
        return self.generate(
            self.batch_size, [self.seed, self.initial_batch + index]
        )
