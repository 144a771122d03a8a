"""The figures of a transfer run whose stages may come one after the other."""

from collections.abc import Mapping

import numpy as np


def transfer_figures(
    curves: Mapping[int, Mapping[str, np.ndarray]],
    before: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, dict[str, float]]:
    """What each stage has come to, and how long it took.

    Args:
        curves: Dictionary from stage to curves, as `four_stage_transfer`
            returns.
        before: What this function returned for the same run before, with other
            stages. Figures of stages that were not trained this time are kept.

    Returns:
        Dictionary of `minutes` and `stripes`, the accuracy on held-out stripes.
        Both are dictionaries from stage, as text, to a number.

    Example:

    >>> curves = {3: {"minutes": np.array([2.0]),
    ...               "stripes_accuracy": np.array([0.9])}}
    >>> transfer_figures(curves, {"minutes": {"1": 5.0}, "stripes": {"1": 0.6}})
    {'minutes': {'1': 5.0, '3': 2.0}, 'stripes': {'1': 0.6, '3': 0.9}}
    """
    before = before or {}
    figures = {}
    for name, curve, digits in (
        ("minutes", "minutes", 1),
        ("stripes", "stripes_accuracy", None),
    ):
        figures[name] = dict(before.get(name, {}))
        for stage, of_stage in curves.items():
            last = float(of_stage[curve][-1])
            figures[name][str(stage)] = round(last, digits) if digits else last
    return figures
