"""The memory of an ESBN: the keys it writes and the memories it reads.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*, Figs. 8 and 12 to 14, and the keys of its Fig. 3.
"""

import pathlib
import typing

import keras
import numpy as np

from keras_relational import models
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.analysis.compiled_parts import once_for_each_model
from keras_relational.analysis.components import axis_labels
from keras_relational.analysis.components import principal_components
from keras_relational.analysis.components import project
from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_figure
from keras_relational.analysis.single_layer import call_arguments
from keras_relational.analysis.single_layer import only_layer
from keras_relational.datasets import distribution_of_three
from keras_relational.layers import ESBN
from keras_relational.models.image_model import to_pixels
from keras_relational.training import nearest_filler
from keras_relational.training.supervised import predictions


class Bindings(typing.NamedTuple):
    """The keys and the attention of an ESBN's memory, for each problem.

    Attributes:
        keys: Array `(n, time, key_dim)`, key that each step writes.
        key_scores: Array `(n, steps, time)`, weight of each memory when a step
            reads a key. The extra step is one of the steps.
        value_scores: Array `(n, steps, time)`, weight of each memory when a
            step retrieves a value. `None` if the ESBN retrieves no values.
        confidence: Array `(n, steps)`, from 0 to 1: how well the value of a
            step matched those in memory. The weights of a step add up to 1 even
            if no memory is like the value, and this number tells. `None` for an
            ESBN without `confidence`.
    """

    keys: np.ndarray
    key_scores: np.ndarray
    value_scores: np.ndarray | None
    confidence: np.ndarray | None = None


def bindings(
    model: keras.Model, sequences: np.ndarray, batch_size: int = 250
) -> Bindings:
    """The keys that an ESBN writes and the memories that it reads.

    Args:
        model: Functional or sequential `keras.Model` with exactly one layer
            `ESBN`, or model of `models.rule_learner` with `sequential="esbn"`.
        sequences: Array of the model's inputs.
        batch_size: Number of sequences in a batch of the computation.

    Returns:
        `Bindings`.

    Raises:
        ValueError: If the model is none of these.

    Example:

    >>> from keras_relational.layers import ESBN
    >>> model = keras.Sequential([keras.Input((5, 8)), ESBN(16, key_dim=4)])
    >>> bindings(model, np.zeros((2, 5, 8))).key_scores.shape
    (2, 6, 5)
    """
    found = predictions(_memory(model), sequences, batch_size)
    found = {name: values.astype("float32") for name, values in found.items()}
    return Bindings(**({"value_scores": None} | found))


@once_for_each_model
def _memory(model):
    """A model from sequences to the fields of `Bindings`."""
    if {"encoder", "reasoner", "esbn"} <= set(models.roles(model).parts):
        encoder, reasoner, esbn = (
            models.part(model, role) for role in ("encoder", "reasoner", "esbn")
        )
        # The reasoner may normalize the embeddings first.
        before = keras.Model(reasoner.input, esbn.input)

        def arguments_for(sequences):
            return before(encoder(sequences)), {}
    else:
        esbn = only_layer(model, ESBN)
        arguments_for = call_arguments(model, esbn)

    def read(sequences):
        z, kwargs = arguments_for(sequences)
        _, scores = esbn(z, return_attention_scores=True, **kwargs)
        found = {"keys": esbn.written_keys(z, **kwargs), "key_scores": scores}
        if esbn.return_retrieved:
            found["key_scores"], found["value_scores"] = scores
        if esbn.confidence:
            found["confidence"] = esbn.read_confidence(z, **kwargs)
        return found

    return CompiledPart(model, read)


def plot_retrieval(found: Bindings, problem: int = 0) -> Figure:
    """Draws which memory each step of a problem reads.

    If the ESBN has a confidence, it multiplies the weights of the keys. A step
    whose value is not in memory is then pale.

    Args:
        found: `Bindings`.
        problem: Number of the problem.

    Returns:
        `matplotlib.figure.Figure` with a panel for keys and, if the ESBN
        retrieves values, a panel for values.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    panels = {"keys read": found.key_scores}
    if found.confidence is not None:
        panels = {
            "keys read, times confidence": found.key_scores
            * found.confidence[..., None]
        }
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


def plot_keys(found: Bindings) -> Figure:
    """Draws the keys that each step writes, on their principal components.

    Pass many problems with different fillers. If the keys of a step lie close
    together, they are symbols: they do not depend on the filler that they are
    bound to.

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


def plot_predictions(
    predicted: np.ndarray, targets: np.ndarray, fillers: np.ndarray
) -> Figure:
    """Draws predicted images, the nearest filler, and the right filler.

    Each row is one problem, as in Figs. 8 and 12 to 14.

    Args:
        predicted: Array `(n, height, width)` of pixels between 0 and 1.
        targets: Integer array `(n,)`, numbers of the right fillers.
        fillers: uint8 array `(num_fillers, height, width)`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    fillers = to_pixels(fillers) / 255
    nearest = nearest_filler(predicted, fillers)
    columns = {
        "predicted": predicted,
        "nearest": fillers[nearest],
        "target": fillers[np.asarray(targets)],
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


def draw_rule_learner(
    model: keras.Model,
    problems: distribution_of_three.Problems,
    fillers: np.ndarray,
    directory: pathlib.Path,
) -> None:
    """Draws what a learner of rules binds, and what it predicts.

    Writes `retrieval.png` and `keys.png` if the model has an ESBN, and
    `predictions.png` if it generates images.

    Args:
        model: Model of `models.rule_learner`.
        problems: Problems to solve, of which the first 300 are used.
        fillers: Array of all fillers.
        directory: Folder to write to.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If a file cannot be written; the error names it.
    """
    shown = fillers[problems.fillers[:300]]
    parts = models.roles(model).parts
    if "esbn" in parts:
        found = bindings(model, shown)
        save_figure(plot_retrieval(found), directory / "retrieval.png")
        save_figure(plot_keys(found), directory / "keys.png")
    if "decoder" in parts and fillers.ndim > 2:
        predicted = model.predict(shown[:6], verbose=0)
        figure = plot_predictions(predicted, problems.labels[:6], fillers)
        save_figure(figure, directory / "predictions.png")
