"""Learning curves: the mean and the spread over several seeds.

The curves of a run are a dictionary from name to array, as `training.fit`
returns them, or a run's `curves.csv` read by
`np.genfromtxt(path, delimiter=",", names=True)`.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_relational.analysis.plotting import draw_line
from keras_relational.analysis.plotting import label_ends
from keras_relational.analysis.plotting import new_figure
from keras_relational.validation import check_choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

X_LABELS = {
    "batches": "thousand batches",
    "steps": "million steps",
    "minutes": "minutes",
    "examples": "training examples",
}
_UNITS = {"batches": 1e3, "steps": 1e6, "minutes": 1, "examples": 1}


def mean_and_spread(
    runs: Sequence, curve: str, x: str = "batches"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and standard deviation of one curve over the runs of several seeds.

    The squares are divided by the number of runs, and a single run has 0.
    Classifiers are measured after the same numbers of batches. Agents are
    measured after different numbers of steps, so their points are joined by
    straight lines, which are averaged where all runs have them. Points that are
    NaN are left out. A `ValueError` says if runs cannot be compared.

    >>> runs = [
    ...     {"batches": [5, 10], "accuracy": [0.5, 0.8]},
    ...     {"batches": [5, 10], "accuracy": [0.5, 1.0]},
    ... ]
    >>> [array.round(2).tolist() for array in mean_and_spread(runs, "accuracy")]
    [[5, 10], [0.5, 0.9], [0.0, 0.1]]
    """
    for run in runs:
        names = run.dtype.names if isinstance(run, np.ndarray) else list(run)
        for name in (x, curve):
            if name not in names:
                raise ValueError(
                    f"There is no curve {name!r}. Expected one of: "
                    f"{', '.join(names)}"
                )
    lines = [(np.atleast_1d(run[x]), np.atleast_1d(run[curve])) for run in runs]
    if x == "batches":
        points = lines[0][0]
        if any(own.tolist() != points.tolist() for own, _ in lines):
            raise ValueError(
                "Runs can be averaged only if they were measured after the "
                "same numbers of batches. Received runs that end after "
                f"{[own[-1].item() for own, _ in lines]} batches, with "
                f"{[len(own) for own, _ in lines]} points"
            )
        values = np.stack([y for _, y in lines])
    else:
        lines = [(own[~np.isnan(y)], y[~np.isnan(y)]) for own, y in lines]
        points = np.unique(np.concatenate([own for own, _ in lines]))
        ends = [own[[0, -1]] if len(own) else (np.inf, 0) for own, _ in lines]
        first, last = max(end[0] for end in ends), min(end[1] for end in ends)
        points = points[(points >= first) & (points <= last)]
        if not len(points):
            raise ValueError(
                f"The runs have no {x} in common at which {curve!r} was "
                f"measured. Received {[len(own) for own, _ in lines]} points"
            )
        values = np.stack([np.interp(points, own, y) for own, y in lines])
    return points, values.mean(axis=0), values.std(axis=0)


def plot_learning_curves(
    runs: Mapping[str, Sequence],
    curve: str = "stripes_accuracy",
    x: str = "batches",
) -> "Figure":
    """Draws one line an architecture, with its name at the line's end.

    Lines are means over the seeds. The first five have a colour, and a band
    that reaches one standard deviation to each side. The others are grey.

    Args:
        runs: Dictionary from architecture to a sequence of the curves of each
            run, one a seed.
        curve: Name of the curve to draw, a share between 0 and 1. For agents
            `"solved"`, or for one level of puzzles a name such as
            `"solved_1_1_2"`.
        x: Name of the curve on the horizontal axis: `"batches"`, or for agents
            `"steps"` or `"minutes"`. Where each point is a training of its own,
            `"examples"`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `x` is none of these, or as `mean_and_spread` raises it.
    """
    check_choice("axis", x, X_LABELS)
    figure = new_figure(6.4, max(3.2, 0.8 + 0.165 * len(runs)))
    panel = figure.subplots()
    draw_curves(panel, runs, curve, x)
    panel.set_ylabel(label_of(curve))
    label_ends(figure)
    return figure


def label_of(curve):
    """The label of the vertical axis."""
    return f"{curve.replace('_', ' ')} (%)"


def draw_curves(panel, runs, curve, x):
    """Draws the lines of one panel, and its horizontal axis.

    Without runs a name has no line, and those after it keep their colours.
    """
    points = ()
    for name, seeds in runs.items():
        if not seeds:
            panel.plot([], [])
            continue
        points, mean, spread = mean_and_spread(seeds, curve, x)
        draw_line(panel, name, points / _UNITS[x], 100 * mean, 100 * spread)
    if x == "examples":
        panel.set_xscale("log")
        panel.set_xticks(points, [f"{point:,}" for point in points])
        panel.minorticks_off()
    panel.set_xlabel(X_LABELS[x])
