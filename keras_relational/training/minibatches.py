"""Small batches at full speed: many training steps in one compiled call.

At batch 10 a training step takes about a millisecond, and Keras' own loop and
input pipeline take about as long again. Here `keras.Model.fit` is given blocks
of batches, and the compiled training function loops over each block.
"""

import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable(package="keras_relational")
class MinibatchModel(keras.Model):
    """A functional model whose `fit` takes blocks of batches: `Minibatches`.

    One step of its `fit` trains on every batch of a block in turn, within one
    compiled function; the data have an axis more in front, `(steps, batch, …)`.
    In all else it is a `keras.Model`, and its layers, hence its weights, are
    those of the model whose inputs and outputs it is built from.

    Before `fit`, once, let it see the shape of a single batch: call `evaluate`
    on a few examples. `fit` needs `shuffle=False`: the blocks are shuffled.

    Example:

    >>> inputs = keras.Input((3,))
    >>> model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    >>> model = MinibatchModel(model.inputs, model.outputs)
    >>> model.compile("sgd", "mse")
    >>> x, y = np.zeros((40, 3), "float32"), np.zeros((40, 2), "float32")
    >>> loss = model.evaluate(x[:1], y[:1], verbose=0)
    >>> blocks = Minibatches(x, y, batch_size=10, steps_per_execution=4)
    >>> history = model.fit(
    ...     blocks, steps_per_epoch=2, shuffle=False, verbose=0
    ... )
    >>> int(model.optimizer.iterations)
    8
    """

    def train_step(self, *args):
        # On JAX train_step(state, data) returns (logs, state); on the others
        # train_step(data) returns logs and assigns the variables.
        *state, block = args
        one_step = super().train_step
        last = ops.shape(keras.tree.flatten(block)[0])[0] - 1

        def batch(index):
            return keras.tree.map_structure(lambda x: x[index], block)

        def advance(index, state):
            result = one_step(*state, batch(index))
            return result[1:] if state else state

        state = ops.fori_loop(0, last, advance, tuple(state))
        return one_step(*state, batch(last))


class Minibatches(keras.utils.PyDataset):
    """Arrays in memory, shuffled without end, as blocks for `MinibatchModel`.

    Every example is used once before any is used again. Block `i` depends on
    the seed and on `i` alone, so that a run that continues at some block sees
    what an unbroken one would have seen. Being endless, it needs
    `steps_per_epoch`, in blocks, in `fit`.

    Args:
        x: Array, or a tuple of arrays, with one row an example.
        y: Array with one row an example.
        batch_size: Number of examples of a training step.
        steps_per_execution: Number of training steps of a block, or None for
            batches as any `keras.Model` takes them, without the axis in front.
        initial_block: The block to begin with.
        seed: Non-negative integer.

    Raises:
        ValueError: If there is less than one batch of examples.
    """

    def __init__(
        self,
        x,
        y,
        batch_size,
        steps_per_execution,
        initial_block=0,
        seed=0,
    ):
        # On TensorFlow, `fit` from a single thread goes on waiting after its
        # last step, for up to as long again or a minute.
        super().__init__(workers=2, max_queue_size=2)
        if len(y) < batch_size:
            raise ValueError(
                "There must be at least one batch of examples. Received: "
                f"len(y)={len(y)}, batch_size={batch_size}"
            )
        self.data = (x, y)
        self.num_examples = len(y)
        self.block_shape = (batch_size,)
        if steps_per_execution is not None:
            self.block_shape = (steps_per_execution, batch_size)
        self.initial_block = initial_block
        self.seed = seed
        self._passes = {}

    @property
    def num_batches(self):
        return None

    def __getitem__(self, index):
        size = np.prod(self.block_shape)
        start = (self.initial_block + index) * size
        rows = self._rows(start, start + size).reshape(self.block_shape)
        return keras.tree.map_structure(lambda array: array[rows], self.data)

    def _rows(self, start, stop):
        """Places `start` to `stop` of all passes, one after the other."""
        first, end = start // self.num_examples, -(-stop // self.num_examples)
        known = self._passes  # Another thread may exchange it meanwhile.
        passes = {
            number: known[number] if number in known else self._shuffled(number)
            for number in range(first, end)
        }
        self._passes = passes
        rows = np.concatenate(list(passes.values()))
        start -= first * self.num_examples
        return rows[start : start + np.prod(self.block_shape)]

    def _shuffled(self, number):
        rng = np.random.default_rng([self.seed, number])
        return rng.permutation(self.num_examples)
