"""Pictures of rule learners: their keys, and the fillers that they predict."""

import numpy as np

from experiments.esbn.evaluation import decoder_targets
from experiments.esbn.evaluation import nearest_filler
from experiments.principal_components import axis_labels
from experiments.principal_components import principal_components
from experiments.principal_components import project
from keras_relational import analysis
from keras_relational import models
from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_figure


def draw(model, problems, fillers, directory):
    """Draws the memory of an ESBN, and the images that a model generates."""
    shown = fillers[problems.fillers[:300]]
    parts = models.roles(model).parts
    if "esbn" in parts:
        found = analysis.bindings(model, shown)
        save_figure(analysis.plot_retrieval(found), directory / "retrieval.png")
        save_figure(plot_keys(found), directory / "keys.png")
    if "decoder" in parts and fillers.ndim > 2:
        predicted = model.predict(shown[:6], verbose=0)
        figure = plot_predictions(predicted, problems.labels[:6], fillers)
        save_figure(figure, directory / "predictions.png")


def plot_keys(found):
    """The keys that each step writes, on their principal components (Fig. 3).

    If the keys of a step lie close together, they are symbols: they do not
    depend on the filler that they are bound to.
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
    """A row a problem: predicted, nearest and right filler (Figs. 8, 12)."""
    fillers = decoder_targets(fillers)
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
