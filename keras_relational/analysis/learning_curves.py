"""Accuracy over batches, mean and spread of several seeds: Figs. 4 and S11.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*.
Curves are dictionaries of arrays, as `training.train_classifier` returns them,
or its `curves.csv`, as `np.genfromtxt(path, delimiter=",", names=True)` reads
it.
"""

import numpy as np

from keras_relational.analysis.figure import legend_below
from keras_relational.analysis.figure import new_figure

_STAGE_NAMES = {
    1: "1: target from scratch",
    2: "2: pre-training",
    3: "3: target, encoder and central module frozen",
    4: "4: target, encoder frozen",
}


def mean_and_spread(runs, curve):
    """Mean and standard deviation of one curve over the runs of several seeds.

    The standard deviation is that of the runs themselves, divided by their
    number; 0 for a single run.

    Args:
        runs: Sequence of curves, one a seed.
        curve: Name of the curve, as `"stripes_accuracy"`.

    Returns:
        `(batches, mean, spread)`, arrays of one length.

    Raises:
        ValueError: If a run lacks the curve, or they were not all measured
            after the same numbers of batches.

    Example:

    >>> runs = [
    ...     {"batches": [5, 10], "accuracy": [0.5, 0.8]},
    ...     {"batches": [5, 10], "accuracy": [0.5, 1.0]},
    ... ]
    >>> [array.round(2).tolist() for array in mean_and_spread(runs, "accuracy")]
    [[5, 10], [0.5, 0.9], [0.0, 0.1]]
    """
    for run in runs:
        names = run.dtype.names if isinstance(run, np.ndarray) else list(run)
        if curve not in names:
            raise ValueError(
                f"There is no curve {curve!r}. Expected one of: "
                f"{', '.join(names)}"
            )
    batches = [np.atleast_1d(run["batches"]).tolist() for run in runs]
    if any(points != batches[0] for points in batches):
        raise ValueError(
            "Runs that are averaged must be measured after the same numbers of "
            "batches. Received runs that end after "
            f"{[points[-1] for points in batches]} batches, with "
            f"{[len(points) for points in batches]} points"
        )
    values = np.stack([np.atleast_1d(run[curve]) for run in runs])
    return np.array(batches[0]), values.mean(axis=0), values.std(axis=0)


def plot_transfer_curves(runs, curve="stripes_accuracy"):
    """Draws the four stages, one panel an architecture: Fig. 4.

    Lines are means over the seeds, bands one standard deviation to each side.

    Args:
        runs: Dictionary from architecture to a list with one item a seed,
            each a dictionary from stage to curves, as
            `training.four_stage_transfer` returns it. Stages and seeds may
            differ between architectures.
        curve: Name of the curve to draw, a share between 0 and 1.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: As for `mean_and_spread`.
    """
    figure = new_figure(max(2.9 * len(runs) + 0.4, 4.5), 3.6)
    panels = figure.subplots(1, len(runs), sharey=True, squeeze=False)[0]
    for panel, (architecture, seeds) in zip(panels, runs.items(), strict=True):
        for stage in set().union(*seeds):
            of_stage = [stages[stage] for stages in seeds if stage in stages]
            _draw(panel, of_stage, curve, f"C{stage - 1}")
        panel.set(title=architecture, xlabel="thousand batches")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(_label(curve))
    names = {stage - 1: name for stage, name in _STAGE_NAMES.items()}
    legend_below(figure, names, entry_width=3.5)
    return figure


def plot_learning_curves(runs, curve="stripes_accuracy"):
    """Draws one line an architecture for a single task: Fig. S11.

    Lines are means over the seeds, bands one standard deviation to each side.

    Args:
        runs: Dictionary from architecture to a list with one item a seed,
            each the curves that `training.train_classifier` returns.
        curve: Name of the curve to draw, a share between 0 and 1.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: As for `mean_and_spread`.
    """
    figure = new_figure(6, 4)
    panel = figure.subplots()
    for number, seeds in enumerate(runs.values()):
        _draw(panel, seeds, curve, f"C{number}")
    panel.set(xlabel="thousand batches", ylabel=_label(curve))
    panel.grid(alpha=0.3)
    legend_below(figure, dict(enumerate(runs)), entry_width=1.8)
    return figure


def _label(curve):
    return f"{curve.replace('_', ' ')} (%)"


def _draw(panel, runs, curve, colour):
    batches, mean, spread = mean_and_spread(runs, curve)
    panel.plot(batches / 1000, 100 * mean, color=colour)
    panel.fill_between(
        batches / 1000,
        100 * (mean - spread),
        100 * (mean + spread),
        color=colour,
        alpha=0.2,
        linewidth=0,
    )
