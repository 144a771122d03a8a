"""Which analogies a model solves, and how its embeddings vary with the images.

Webb et al., 2020, *Learning Representations that Support Extrapolation*,
section 5.1 for VAEC and section 5.2 for visual analogies.
"""

import pathlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_relational import training
from keras_relational.analysis.components import axis_labels
from keras_relational.analysis.components import principal_components
from keras_relational.analysis.components import project
from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_figure
from keras_relational.datasets import vaec
from keras_relational.datasets import visual_analogies
from keras_relational.training import embeddings
from keras_relational.validation import check_choice


def accuracy_by_dimension(
    problems: vaec.Problems, solved: np.ndarray
) -> dict[str, float]:
    """The share of solved problems, in total and for each dimension.

    Args:
        problems: `vaec.Problems`.
        solved: Boolean array `(n,)` of `training.solved_analogies`.

    Returns:
        Dictionary of numbers between 0 and 1: `all`, and each of
        `vaec.DIMENSIONS` that occurs in the problems.

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


def level_embeddings(model: keras.Model, dimension: str) -> np.ndarray:
    """The embeddings of images that vary along one dimension.

    In the other dimensions, an image has the middle level of its region.

    Args:
        model: Model of `models.analogy_scorer`.
        dimension: One of `vaec.DIMENSIONS`.

    Returns:
        float32 array `(42, features)`, one row for each level.

    Raises:
        ValueError: If `dimension` is unknown.
    """
    check_choice("dimension", dimension, vaec.DIMENSIONS)
    level = np.arange(vaec.NUM_LEVELS)
    levels = np.repeat((level // 7 * 7 + 3)[:, None], 4, axis=1)
    levels[:, vaec.DIMENSIONS.index(dimension)] = level
    return embeddings(model, levels)


def plot_accuracy_by_region(
    accuracies: Mapping[str, Sequence[Mapping[str, float]]],
) -> Figure:
    """Draws a line over the six regions for each model: Tables 1 and 2.

    Args:
        accuracies: Dictionary from the name of a model to a list with an item
            for each region: a dictionary of `accuracy_by_dimension`.

    Returns:
        `matplotlib.figure.Figure` with a panel for all problems, and a panel
        for each dimension.

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


def plot_level_embeddings(model: keras.Model) -> Figure:
    """Draws the embeddings of all levels on their principal components.

    The figure has a panel for each dimension, with a line for each region.
    Colours are levels. If the model arranges levels evenly, also outside of the
    training region, then the lines are straight and each continues the one
    before. The components are computed from all 42 embeddings of a panel.

    Args:
        model: Model of `models.analogy_scorer`.

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


def draw_analogies(
    model: keras.Model,
    accuracies: Sequence[Mapping[str, float]],
    directory: pathlib.Path,
) -> None:
    """Draws a model's accuracies and embeddings into a folder.

    Writes `accuracy.png`, the figure of `plot_accuracy_by_region`, and
    `embeddings.png`, the figure of `plot_level_embeddings`.

    Args:
        model: Model of `models.analogy_scorer`.
        accuracies: Sequence with an item for each region: a dictionary of
            `accuracy_by_dimension`.
        directory: Folder to write to.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If a file cannot be written; the error names it.
    """
    figure = plot_accuracy_by_region({model.name: accuracies})
    save_figure(figure, directory / "accuracy.png")
    save_figure(plot_level_embeddings(model), directory / "embeddings.png")


def solved_by_kind(
    model: keras.Model, problems: visual_analogies.Problems
) -> dict[str, float]:
    """The share of problems solved, for each relation and domain.

    Problems are scored in batches of 32, as in training, because some
    normalizations depend on the batch.

    Args:
        model: `keras.Model`, as `models.visual_analogy_scorer` builds.
        problems: `visual_analogies.Problems`.

    Returns:
        Dictionary from names of `visual_analogies.RELATIONS`, and of
        `visual_analogies.DOMAINS` for the domain of the target row, to the
        share solved. Names that no problem has are left out.
    """
    scores = model.predict(problems.images, batch_size=32, verbose=0)
    solved = scores.argmax(axis=1) == problems.labels
    return {
        name: float(np.mean(solved[kinds == number]))
        for names, kinds in (
            (visual_analogies.RELATIONS, problems.relations),
            (visual_analogies.DOMAINS, problems.domains[:, 1]),
        )
        for number, name in enumerate(names)
        if (kinds == number).any()
    }


def visual_analogy_figures(
    model: keras.Model, tests: Mapping[str, tuple[np.ndarray, ...]]
) -> dict[str, Any]:
    """The figures of a run: the share of problems solved, in all and by kind.

    Args:
        model: `keras.Model`, as `models.visual_analogy_scorer` builds.
        tests: Dictionary from a name to `visual_analogies.Problems`, or to a
            pair of images and labels, whose kinds are not known.

    Returns:
        Dictionary from each name to a number between 0 and 1, and from
        `"NAME_shares"` to what `solved_by_kind` returns, where the kinds of
        problems are known.
    """
    figures: dict[str, Any] = {}
    for name, problems in tests.items():
        images, labels, *_ = problems
        figures[name] = training.accuracy(model, images, labels, batch_size=32)
        if isinstance(problems, visual_analogies.Problems):
            figures[f"{name}_shares"] = solved_by_kind(model, problems)
    return figures
