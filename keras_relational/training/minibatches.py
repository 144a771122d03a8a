"""Blocks of small batches for `keras.Model.fit`.

With 10 examples a training step takes about a millisecond, and Keras' own loop
and input pipeline take about as long again. Here `fit` gets blocks of batches,
and the compiled training function loops over each block.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_relational.models.image_model import ImageModel
from keras_relational.random_streams import stream
from keras_relational.runs.processes import this_process


@keras.saving.register_keras_serializable(package="keras_relational")
class MinibatchModel(ImageModel):
    """A functional model whose `fit` takes blocks of batches: `Minibatches`.

    One step of `fit` trains on every batch of a block in turn, within one
    compiled function. The data have one more axis in front: `(steps, batch,
    …)`. Under a `keras.distribution` it is the second one, `(batch, steps, …)`:
    Keras shares the first one among the devices. In everything else this is a
    `keras.Model`. It shares its layers, and so its weights, with the model
    whose inputs and outputs it is built from.

    Call `evaluate` on a few examples before `fit`, so that the loss and the
    metrics see the shape of a single batch. Call `fit` with `shuffle=False`:
    the blocks are shuffled already.

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

    def train_step(self, *args: Any) -> Any:
        # On JAX train_step(state, data) returns (logs, state); on the others
        # train_step(data) returns logs and assigns the variables.
        *state, block = args
        one_step = super().train_step
        before = (slice(None),) if _is_distributed() else ()
        last = ops.shape(keras.tree.flatten(block)[0])[len(before)] - 1

        def batch(index):
            place = *before, index
            return keras.tree.map_structure(lambda x: x[place], block)

        def advance(index, state):
            result = one_step(*state, batch(index))
            return result[1:] if state else state

        state = ops.fori_loop(0, last, advance, tuple(state))
        return one_step(*state, batch(last))


class Minibatches(keras.utils.PyDataset):
    """Arrays in memory, shuffled without end, as blocks for `MinibatchModel`.

    Every example is used once before any is used again. Batch `i` depends on
    the seed and on `i` alone, so a run that continues at some batch sees the
    same batches as an unbroken run. Block `n` holds the batches from
    `n * steps_per_execution` on, so a block is shorter where the data begin or
    end within it. There is no end by default, so `fit` needs
    `steps_per_epoch`, a number of blocks.

    If several processes train a model together (`keras.distribution`), each
    gets its own part of every batch.

    Args:
        x: Array, or a tuple of arrays, with one row an example.
        y: Array with one row an example.
        batch_size: Number of examples of a training step.
        steps_per_execution: Number of training steps of a block, or `None` for
            batches as any `keras.Model` takes them, without that axis.
        initial_batch: Number of the batch to begin with.
        seed: Non-negative integer.
        final_batch: Number of the batch to end before. By default there is no
            end.

    Raises:
        ValueError: If there are fewer examples than a batch has, or if the
            devices of a `keras.distribution` cannot share a batch equally.
    """

    def __init__(
        self,
        x: Any,
        y: np.ndarray,
        batch_size: int,
        steps_per_execution: int | None,
        initial_batch: int = 0,
        seed: int = 0,
        final_batch: int | None = None,
    ) -> None:
        # On TensorFlow, `fit` from a single thread goes on waiting after its
        # last step, for up to as long again or a minute. From two threads it
        # waits a tenth of a second at the end of each epoch.
        workers = 2 if keras.backend.backend() == "tensorflow" else 1
        super().__init__(workers=workers, max_queue_size=2)
        if len(y) < batch_size:
            raise ValueError(
                "There must be at least one batch of examples. Received: "
                f"len(y)={len(y)}, batch_size={batch_size}"
            )
        # Asked here, because other threads do not know Keras' distribution.
        self._process, self._num_processes = this_process()
        self._is_distributed = _is_distributed()
        if self._is_distributed:
            _check_shares(batch_size)
        self.data = (x, y)
        self.num_examples = len(y)
        self.batch_size = batch_size
        self.steps_per_execution = steps_per_execution
        self.initial_batch = initial_batch
        self.final_batch = final_batch
        self.seed = seed
        self._passes: dict[int, np.ndarray] = {}

    @property
    def num_batches(self) -> None:
        return None

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        size = self.steps_per_execution or 1
        block = self.initial_batch // size + index
        first = max(self.initial_batch, block * size)
        last = (block + 1) * size
        if self.final_batch is not None:
            last = max(first, min(last, self.final_batch))
        rows = self._rows(first * self.batch_size, last * self.batch_size)
        rows = rows.reshape(-1, self.batch_size)
        rows = np.split(rows, self._num_processes, axis=1)[self._process]
        if self.steps_per_execution is None:
            rows = rows.reshape(-1)
        elif self._is_distributed:
            rows = rows.T
        return keras.tree.map_structure(lambda array: array[rows], self.data)

    def _rows(self, start, stop):
        """The examples at places `start` to `stop`, counted over all passes."""
        first, end = start // self.num_examples, -(-stop // self.num_examples)
        known = self._passes  # Another thread may replace it meanwhile.
        passes = {
            number: known[number] if number in known else self._shuffled(number)
            for number in range(first, max(end, first + 1))
        }
        self._passes = passes
        rows = np.concatenate(list(passes.values()))
        before = first * self.num_examples
        return rows[start - before : stop - before]

    def _shuffled(self, number):
        rng = np.random.default_rng(stream(self.seed, "pass", number))
        return rng.permutation(self.num_examples)


def _check_shares(batch_size):
    distribution = keras.distribution.distribution()
    mesh = distribution.device_mesh
    number = mesh.shape[mesh.axis_names.index(distribution.batch_dim_name)]
    if batch_size % number:
        raise ValueError(
            f"The devices share each batch in {number} equal parts, so "
            f"`batch_size` must be a multiple of {number}. Received: "
            f"batch_size={batch_size}"
        )


def _is_distributed():
    return keras.distribution.distribution() is not None
