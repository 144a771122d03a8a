"""The kinds of presets: each has a file that asks its models.

A class of such a file takes a model and the arguments of the run that trained
it.

- `runs`: the experiments of these runs, with the task where it decides.
- `page`: `static/PAGE.js` draws the page.
- `describe()`: what the page needs beside the model, for JSON.
- `network()`: the `Network` that the page runs.
- `question(seed)`: one question in words, with the model's answer.
"""

from typing import Any

from keras_relational import models
from keras_relational.playground.analogies import Analogies
from keras_relational.playground.boxworld import BoxWorldPuzzles
from keras_relational.playground.relations_game import RelationsGame
from keras_relational.playground.rules import Rules
from keras_relational.playground.set_game import SetGame
from keras_relational.playground.sorting import Sorting
from keras_relational.playground.video import Videos

KINDS: dict[str, Any] = {
    run: kind
    for kind in (
        RelationsGame,
        BoxWorldPuzzles,
        SetGame,
        Rules,
        Sorting,
        Videos,
        Analogies,
    )
    for run in kind.runs
}


def kind_of(card: dict[str, Any], preset: Any) -> Any:
    """The class that asks the models of a preset's kind.

    Args:
        card: The preset's card, as `models.preset_metadata` returns it.
        preset: Name of the preset, or its folder, for the error.

    Raises:
        ValueError: If there is no such class.
    """
    run = card.get("run", {})
    experiment = run.get("experiment")
    with_task = f"{experiment} {run.get('arguments', {}).get('task')}"
    for name in (with_task, experiment):
        if name in KINDS:
            return KINDS[name]
    named = f"names {with_task!r}" if run else "names no run"
    raise ValueError(
        f"There is no page and no question for the preset {str(preset)!r}: "
        "they are for the questions of the library's experiments. Its card "
        f"{named}, where a page needs one of: {', '.join(KINDS)}. Ask a model "
        "of your own in Python, or serve it by keras_relational.serving."
    )


def load(card: dict[str, Any], preset: Any) -> Any:
    """An object of the preset's kind, with its model."""
    kind = kind_of(card, preset)
    return kind(models.from_preset(preset), card["run"]["arguments"])
