from keras_relational.training.minibatches import Minibatches
from keras_relational.training.minibatches import MinibatchModel
from keras_relational.training.supervised import accuracy
from keras_relational.training.supervised import save_result
from keras_relational.training.supervised import train_classifier
from keras_relational.training.supervised import write_aside
from keras_relational.training.transfer import STAGES
from keras_relational.training.transfer import four_stage_transfer
from keras_relational.training.vtrace import vtrace

__all__ = [
    "STAGES",
    "MinibatchModel",
    "Minibatches",
    "accuracy",
    "four_stage_transfer",
    "save_result",
    "train_classifier",
    "vtrace",
    "write_aside",
]
