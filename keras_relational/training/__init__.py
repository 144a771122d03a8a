"""Trains Keras models in runs that can be killed and continued.

- `fit` trains any model on endless batches. `Minibatches` draws them from
  arrays.
- `train_classifier` trains a classifier on arrays. `accuracy_after_few` does so
  with a few examples, and returns the accuracy at the best point.
- `compile_model` compiles a model with Adam, and with XLA where that is faster.
- `accuracy` is the share of right answers, `predictions` are all outputs.

Agents are trained by `keras_relational.agents`.
"""

from keras_relational.training.minibatches import Minibatches
from keras_relational.training.sample_efficiency import accuracy_after_few
from keras_relational.training.supervised import accuracy
from keras_relational.training.supervised import compile_model
from keras_relational.training.supervised import fit
from keras_relational.training.supervised import predictions
from keras_relational.training.supervised import train_classifier

__all__ = [
    "Minibatches",
    "accuracy",
    "accuracy_after_few",
    "compile_model",
    "fit",
    "predictions",
    "train_classifier",
]
