"""Which analogies a model solves, and how it lays out what varies in them.

Webb et al., 2020, *Learning Representations that Support Extrapolation*,
section 5.1.
"""

import numpy as np

from keras_relational.analysis.components import axis_labels
from keras_relational.analysis.components import principal_components
from keras_relational.analysis.components import project
from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure
from keras_relational.datasets import vaec
from keras_relational.training import embeddings


def accuracy_by_dimension(problems, solved):
    """The share of problems solved, of all and for each dimension.

    Args:
        problems: `vaec.Problems`.
        solved: Boolean array `(n,)`, as `training.solved_analogies` returns it.

    Returns:
        Dictionary of numbers between 0 and 1: `all` and each of
        `vaec.DIMENSIONS` of which there are problems.

    Example:

    >>> problems = vaec.generate(seed=0)
    >>> accuracy_by_dimension(problems, problems.dimension < 2)
    {'all': 0.5, 'x': 1.0, 'y': 1.0, 'size': 0.0, 'brightness': 0.0}
    """
    shares = {"all": float(np.mean(solved))}
    for number, name in enumerate(vaec.DIMENSIONS):
        mine = problems.dimension == number
        if mine.any():
            shares[name] = float(np.mean(solved[mine]))
    return shares


def level_embeddings(model, dimension):
    """The embeddings of images along one dimension, through all regions.

    In all other dimensions, images of a region have its middle level.

    Args:
        model: A model laid out as `models.analogy_scorer`.
        dimension: One of `vaec.DIMENSIONS`.

    Returns:
        float32 array `(42, features)`, one row a level.

    Raises:
        ValueError: If there is no such dimension.
    """
    if dimension not in vaec.DIMENSIONS:
        raise ValueError(
            f"Unknown dimension {dimension!r}. Expected one of: "
            f"{', '.join(vaec.DIMENSIONS)}"
        )
    level = np.arange(vaec.NUM_LEVELS)
    levels = np.repeat((level // 7 * 7 + 3)[:, None], 4, axis=1)
    levels[:, vaec.DIMENSIONS.index(dimension)] = level
    return embeddings(model, levels)


def plot_accuracy_by_region(accuracies):
    """Draws one line a model over the six regions: Tables 1 and 2.

    Args:
        accuracies: Dictionary from name to a list with one item a region, each
            a dictionary as `accuracy_by_dimension` returns it.

    Returns:
        `matplotlib.figure.Figure`: one panel for all problems, and one for each
        dimension.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    figure = new_figure(13, 3.4)
    panels = figure.subplots(1, 5, sharey=True)
    for panel, kind in zip(panels, ("all", *vaec.DIMENSIONS), strict=True):
        for number, regions in enumerate(accuracies.values()):
            shares = [100 * region[kind] for region in regions]
            panel.plot(vaec.REGIONS, shares, "o-", color=f"C{number}")
        panel.axhline(100 / 7, color="grey", linestyle=":")  # Chance.
        panel.set(title=kind, xlabel="region", ylim=(0, 102))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("problems solved (%)")
    legend_below(figure, dict(enumerate(accuracies)), entry_width=2.5)
    return figure


def plot_level_embeddings(model):
    """Draws the embeddings of all levels on their principal components.

    One panel a dimension, one line a region, coloured by level: the line is
    straight, and goes on where the last one ended, as far as the model lays
    levels out evenly beyond those that it was trained on. Components are those
    of all 42 embeddings of the panel.

    Args:
        model: A model laid out as `models.analogy_scorer`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    figure = new_figure(13, 3.6)
    panels = figure.subplots(1, 4)
    for panel, dimension in zip(panels, vaec.DIMENSIONS, strict=True):
        z = level_embeddings(model, dimension)
        components = principal_components(z)
        points = project(z, components)
        for region in np.split(points, len(vaec.REGIONS)):
            panel.plot(*region.T, color="grey", linewidth=0.8)
        marks = panel.scatter(
            *points.T, c=np.arange(len(points)), s=18, zorder=2
        )
        panel.set(title=dimension, **axis_labels(components))
    figure.colorbar(marks, ax=panels, label="level")
    return figure
