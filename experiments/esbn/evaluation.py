"""How many problems a rule learner solves."""

import numpy as np

from keras_relational import training
from keras_relational.models.image_model import to_pixels


def rule_accuracy(model, problems, fillers=None, batch_size=250):
    """The share of problems whose answer is right.

    `model` is one of `models.over_fillers`. If it predicts a filler, `fillers`
    are the `decoder_targets` of all: the answer is the nearest of them.
    """
    outputs = training.predictions(model, problems.fillers, batch_size)
    if fillers is None:
        answers = outputs.argmax(axis=1)
    else:
        answers = nearest_filler(outputs, fillers)
    return float(np.mean(answers == problems.labels))


def nearest_filler(predicted, fillers):
    """The filler that each prediction is nearest to, by mean squared error.

    Section 3.3.2 of Sinha et al., 2020.
    """
    predicted, fillers = (
        np.reshape(x, (len(x), -1)).astype("float32")
        for x in (predicted, fillers)
    )
    # |p − f|² without |p|², which is the same for all fillers.
    distances = (fillers**2).sum(1) - 2 * predicted @ fillers.T
    return distances.argmin(axis=1)


def decoder_targets(fillers):
    """Fillers as decoders put them out: in float32, pixels from 0 to 1."""
    if fillers.ndim > 2:
        fillers = to_pixels(fillers) / 255
    return fillers.astype("float32")
