"""What is learned over time, mean and spread of several seeds.

Figs. 4 and S11 of Shanahan et al., 2020, *An Explicitly Relational Neural
Network Architecture*; Figs. 6, 8, 14 and 15 of Clift et al., 2019, *Logic and
the 2-Simplicial Transformer*. Curves are dictionaries of arrays, as
`training.train_classifier` and `agent_runs.train_agent` return them, or their
`curves.csv`, as `np.genfromtxt(path, delimiter=",", names=True)` reads it.
"""

import numpy as np

from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure

_STAGE_NAMES = {
    1: "1: target from scratch",
    2: "2: pre-training",
    3: "3: target, encoder and central module frozen",
    4: "4: target, encoder frozen",
}

_X_LABELS = {
    "batches": "thousand batches",
    "steps": "million steps",
    "minutes": "minutes",
}
_UNITS = {"batches": 1e3, "steps": 1e6, "minutes": 1}


def mean_and_spread(runs, curve, x="batches"):
    """Mean and standard deviation of one curve over the runs of several seeds.

    The standard deviation is that of the runs themselves, divided by their
    number; 0 for a single run. Classifiers are measured after the same numbers
    of batches. Agents are not, so that their curves are joined by straight
    lines, and averaged as far as all of them go; points that are NaN are left
    out.

    Args:
        runs: Sequence of curves, one a seed.
        curve: Name of the curve, as `"stripes_accuracy"` or `"solved"`.
        x: Name of the curve that it is a function of, as `"batches"`, or
            `"steps"` or `"minutes"` of agents.

    Returns:
        `(x, mean, spread)`, arrays of one length.

    Raises:
        ValueError: If a run lacks one of both curves, if runs were not all
            measured after the same numbers of batches, or if there is nothing
            that all runs have.

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
                "Runs that are averaged must be measured after the same "
                "numbers of batches. Received runs that end after "
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
            _draw(panel, of_stage, curve, "batches", f"C{stage - 1}")
        panel.set(title=architecture, xlabel=_X_LABELS["batches"])
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(_label(curve))
    names = {stage - 1: name for stage, name in _STAGE_NAMES.items()}
    legend_below(figure, names, entry_width=3.5)
    return figure


def plot_learning_curves(runs, curve="stripes_accuracy", x="batches"):
    """Draws one line an architecture: Fig. S11, and Figs. 6, 8, 14 and 15.

    Lines are means over the seeds, bands one standard deviation to each side.

    Args:
        runs: Dictionary from architecture to a list with one item a seed,
            each the curves that `training.train_classifier` or
            `agent_runs.train_agent` returns.
        curve: Name of the curve to draw, a share between 0 and 1: of agents
            `"solved"`, or `"solved_1_1_2"` for one level.
        x: `"batches"`; of agents `"steps"` (Fig. 6) or `"minutes"` (Fig. 8).

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: As for `mean_and_spread`, or if `x` is another.
    """
    if x not in _X_LABELS:
        raise ValueError(
            f"`x` must be one of {', '.join(_X_LABELS)}. Received: x={x!r}"
        )
    figure = new_figure(6, 4)
    panel = figure.subplots()
    for number, seeds in enumerate(runs.values()):
        _draw(panel, seeds, curve, x, f"C{number}")
    panel.set(xlabel=_X_LABELS[x], ylabel=_label(curve))
    panel.grid(alpha=0.3)
    legend_below(figure, dict(enumerate(runs)), entry_width=1.8)
    return figure


def _label(curve):
    return f"{curve.replace('_', ' ')} (%)"


def _draw(panel, runs, curve, x, colour):
    points, mean, spread = mean_and_spread(runs, curve, x)
    points = points / _UNITS[x]
    panel.plot(points, 100 * mean, color=colour)
    panel.fill_between(
        points,
        100 * (mean - spread),
        100 * (mean + spread),
        color=colour,
        alpha=0.2,
        linewidth=0,
    )
