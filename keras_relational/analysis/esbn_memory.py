"""What an ESBN binds: which memories it reads, which keys it writes.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*, Figs. 8 and 12 to 14, and the keys of its Fig. 3.
"""

import typing

import keras
import numpy as np

from keras_relational import models
from keras_relational.analysis.attention import as_float32
from keras_relational.analysis.components import axis_labels
from keras_relational.analysis.components import principal_components
from keras_relational.analysis.components import project
from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure
from keras_relational.training import nearest_filler


class Bindings(typing.NamedTuple):
    """What happens in an ESBN's memory, problem by problem.

    `keys` `(n, time, key_dim)`, those written; `key_scores` `(n, steps, time)`,
    the weights of the keys read at each step, the extra one included; and
    `value_scores`, the same of values, None if none are retrieved.
    """

    keys: np.ndarray
    key_scores: np.ndarray
    value_scores: np.ndarray | None


def bindings(model, sequences):
    """What an ESBN binds and reads.

    Args:
        model: A model laid out as `models.rule_learner`, on `"esbn"`.
        sequences: Fillers `(n, time, ...)`, as the model takes them.

    Returns:
        `Bindings`.

    Raises:
        ValueError: If the model has no ESBN.
    """
    parts = models.roles(model).parts
    if "esbn" not in parts:
        raise ValueError(
            f"{model.name} has no ESBN. Its parts are {list(parts)}. Expected "
            "a model that models.rule_learner builds with sequential='esbn'"
        )
    reasoner, esbn = models.part(model, "reasoner"), models.part(model, "esbn")
    z = models.part(model, "encoder")(sequences)
    # The reasoner may normalize the embeddings first.
    z = keras.Model(reasoner.input, esbn.input)(z)
    _, scores = esbn(z, return_attention_scores=True)
    scores = scores if esbn.return_retrieved else (scores, None)
    return Bindings(
        as_float32(esbn.written_keys(z)),
        *(None if x is None else as_float32(x) for x in scores),
    )


def plot_retrieval(found, problem=0):
    """Draws which memory is read at each step of a problem.

    Args:
        found: `Bindings`.
        problem: Number of the problem.

    Returns:
        `matplotlib.figure.Figure`: one panel for keys and, if values are
        retrieved, one for those.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    panels = {"keys read": found.key_scores}
    if found.value_scores is not None:
        panels["values retrieved"] = found.value_scores
    figure = new_figure(3.4 * len(panels) + 0.6, 3.4)
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    for panel, (title, scores) in zip(row, panels.items(), strict=True):
        image = panel.imshow(scores[problem], vmin=0, vmax=1, cmap="Blues")
        _, steps, time = scores.shape
        panel.set(
            title=title,
            xlabel="written at step",
            ylabel="read at step",
            xticks=range(time),
            xticklabels=range(1, time + 1),
            yticks=range(steps),
            yticklabels=range(1, steps + 1),
        )
    figure.colorbar(image, ax=list(row), label="weight")
    return figure


def plot_keys(found):
    """Draws the keys written at each step, on their principal components.

    Keys of many problems, of different fillers: where those of a step lie
    together they have become symbols, the same whatever they are bound to.

    Args:
        found: `Bindings` of many problems.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    n, time, size = found.keys.shape
    keys = found.keys.reshape(n * time, size)
    components = principal_components(keys)
    points = project(keys, components).reshape(n, time, 2)
    figure = new_figure(5, 4.6)
    panel = figure.subplots()
    for step in range(time):
        panel.scatter(*points[:, step].T, s=6, color=f"C{step}", linewidths=0)
    panel.set(**axis_labels(components))
    names = {step: f"step {step + 1}" for step in range(time)}
    legend_below(figure, names, entry_width=1.2, linestyle="", marker="o")
    return figure


def plot_predictions(predicted, targets, fillers):
    """Draws predicted images, the filler nearest to each, and the right one.

    Figs. 8 and 12 to 14: one row a problem.

    Args:
        predicted: Array `(n, height, width)`, between 0 and 1.
        targets: Numbers of the right fillers, `(n,)`.
        fillers: uint8 array `(num_fillers, height, width)`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    nearest = nearest_filler(predicted, fillers / 255)
    columns = {
        "predicted": predicted,
        "nearest": fillers[nearest] / 255,
        "target": fillers[np.asarray(targets)] / 255,
    }
    figure = new_figure(3, 0.95 * len(predicted) + 0.4)
    grid = figure.subplots(len(predicted), 3, squeeze=False)
    for panels, images in zip(grid.T, columns.values(), strict=True):
        for panel, image in zip(panels, images, strict=True):
            panel.imshow(image, cmap="gray", vmin=0, vmax=1)
            panel.set(xticks=[], yticks=[])
    for panel, name in zip(grid[0], columns, strict=True):
        panel.set_title(name, fontsize="small")
    return figure
