"""Which kinds of visual analogies a model solves."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_relational import training
from keras_relational.datasets import visual_analogies


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
