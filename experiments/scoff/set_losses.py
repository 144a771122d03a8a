"""Losses of objects that are predicted in no order."""

import itertools

import numpy as np
from keras import ops


def least_cost(costs):
    """The mean cost of rows in the best columns, each column taken once.

    `costs` is `(..., rows, columns)`, with no more rows than columns.
    """
    rows, columns = costs.shape[-2:]
    choices = np.array([*itertools.permutations(range(columns), rows)])
    shape = ops.shape(costs)[:-2]
    costs = ops.reshape(costs, (*shape, rows * columns))
    each = ops.take(costs, columns * np.arange(rows) + choices, axis=-1)
    return ops.min(ops.mean(each, axis=-1), axis=-1)


def squared_errors(true, predicted):
    """Of each object `(..., n, d)` by each prediction: `(..., n, m, d)`."""
    away = ops.expand_dims(true, -2) - ops.expand_dims(predicted, -3)
    return ops.square(away)


def set_error(true, predicted):
    """The mean squared error, with the predictions of a step in any order."""
    costs = ops.mean(squared_errors(true, predicted), axis=-1)
    return ops.mean(least_cost(costs))


def video_error(true, predicted):
    """The mean squared error, with one order for all steps of a sequence.

    Arrays are `(batch, time, objects, features)`.
    """
    costs = ops.mean(squared_errors(true, predicted), axis=(1, -1))
    return ops.mean(least_cost(costs))
