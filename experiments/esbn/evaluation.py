"""How many problems a rule learner solves."""

import numpy as np

from keras_relational import training
from keras_relational.models.image_model import to_pixels


def rule_accuracy(model, problems, fillers=None, batch_size=250):
    """The share of problems whose answer is right.

    A model that predicts a filler answers with the nearest of `fillers`, the
    `decoder_targets` of all.
    """
    outputs = training.predictions(model, problems.fillers, batch_size)
    if fillers is None:
        answers = outputs.argmax(axis=1)
    else:
        answers = nearest_filler(outputs, fillers)
    return float(np.mean(answers == problems.labels))


def nearest_filler(predicted, fillers):
    """The nearest filler by mean squared error (Sinha et al., 2020, 3.3.2)."""
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
