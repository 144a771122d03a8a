from keras_relational.training.minibatches import Minibatches
from keras_relational.training.minibatches import MinibatchModel
from keras_relational.training.supervised import accuracy
from keras_relational.training.supervised import train_classifier
from keras_relational.training.supervised import write_aside

__all__ = [
    "MinibatchModel",
    "Minibatches",
    "accuracy",
    "train_classifier",
    "write_aside",
]
