"""Parts of a model, compiled once for each model."""

import functools
import weakref
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_relational.models.image_model import reads_pixels
from keras_relational.models.image_model import to_pixels


class CompiledPart(keras.Model):
    """A function of a model's inputs, as a model that computes in batches.

    Keras cannot build a functional model of a layer that was first called for
    one output and later for several. This model only calls the layer.

    Args:
        model: The `keras.Model`. Its weights may change later.
        function: Function of a batch of inputs that calls layers of the model,
            and does not refer to the model itself. It returns nested tensors,
            batch first.
    """

    def __init__(self, model: keras.Model, function: Callable) -> None:
        super().__init__()
        self.function, self.parts = function, list(model.layers)
        # On TensorFlow, XLA takes longer to compile than most parts run.
        self.jit_compile = keras.backend.backend() != "tensorflow"

    def call(self, inputs: Any) -> Any:
        return self.function(inputs)


def once_for_each_model(make: Callable) -> Callable:
    """Decorates a function of a model: it is called once for each model.

    The result is kept as long as the model. It must not refer to the model, or
    both are kept forever.

    Args:
        make: Function of a `keras.Model`.

    Returns:
        Function of a `keras.Model`.
    """
    made: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    @functools.wraps(make)
    def make_once(model):
        if model not in made:
            made[model] = make(model)
            made[model].reads_pixels = reads_pixels(model)
        return made[model]

    return make_once


def predict(part: keras.Model, inputs: Any, batch_size: int) -> Any:
    """The same as `part.predict`, without the setup of each of its calls.

    Args:
        part: `keras.Model`, made by a function that `once_for_each_model`
            decorates.
        inputs: Array, or sequence of arrays, of the model's inputs.
        batch_size: Largest number of examples in a batch.

    Returns:
        Nested arrays.
    """
    if part.reads_pixels:
        inputs = keras.tree.map_structure(to_pixels, inputs)
    (length,) = {len(x) for x in keras.tree.flatten(inputs)}

    def batch(start):
        stop = start + batch_size
        return keras.tree.map_structure(lambda x: x[start:stop], inputs)

    parts = [
        part.predict_on_batch(batch(start))
        for start in range(0, length, batch_size)
    ]
    return keras.tree.map_structure(lambda *x: np.concatenate(x), *parts)
