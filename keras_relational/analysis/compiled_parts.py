"""Parts of a model, compiled once for each model."""

import functools
import weakref
from collections.abc import Callable
from typing import Any

import keras

from keras_relational.models.image_model import reads_pixels
from keras_relational.models.image_model import to_pixels


class CompiledPart(keras.Model):
    """A function of a model's inputs, as a model that computes in batches.

    Keras cannot build a functional model of a layer that was first called for
    one output and later for several. This model only calls the layer. The
    function returns nested tensors, batch first. It does not refer to the model
    itself, whose weights may change later.
    """

    def __init__(self, model: keras.Model, function: Callable) -> None:
        super().__init__()
        self.function, self.parts = function, list(model.layers)
        # On TensorFlow, XLA takes longer to compile than most parts run.
        self.jit_compile = keras.backend.backend() != "tensorflow"
        self.reads_pixels = False

    def call(self, inputs: Any) -> Any:
        return self.function(inputs)

    def predict_on_batch(self, x: Any) -> Any:
        if self.reads_pixels:
            x = keras.tree.map_structure(to_pixels, x)
        return super().predict_on_batch(x)


def once_for_each_model(make: Callable) -> Callable:
    """Decorates a function that makes a `CompiledPart` of a model, once.

    The part takes images as the model does, and is kept as long as the model.
    It must not refer to the model, or both are kept forever.
    """
    made: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    @functools.wraps(make)
    def make_once(model):
        if model not in made:
            made[model] = make(model)
            made[model].reads_pixels = reads_pixels(model)
        return made[model]

    return make_once
