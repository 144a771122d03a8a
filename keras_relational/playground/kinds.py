"""The kinds of presets: each has a file that asks its models.

A class of such a file takes a model and the arguments of the run that trained
it. `experiments` are the names of the runs. `page` is the page of the
playground, which `static/PAGE.js` draws, or `None`. `question(seed)` asks one
question in words. A class with a page also has `describe` and `answer`, whose
dictionaries the page shows.
"""

from typing import Any

from keras_relational import models
from keras_relational.playground.analogies import Analogies
from keras_relational.playground.boxworld import BoxWorldPuzzles
from keras_relational.playground.few_examples import FewExamples
from keras_relational.playground.relations_game import RelationsGame
from keras_relational.playground.rules import Rules
from keras_relational.playground.video import Videos

# By the experiment that a preset's card names.
KINDS: dict[str, Any] = {
    experiment: kind
    for kind in (
        Analogies,
        BoxWorldPuzzles,
        FewExamples,
        RelationsGame,
        Rules,
        Videos,
    )
    for experiment in kind.experiments
}


def kind_of(card: dict[str, Any], preset: Any, page: bool = False) -> Any:
    """The class that asks the models of a preset's kind.

    Args:
        card: The preset's card, as `models.preset_metadata` returns it.
        preset: Name of the preset, or its folder, for the error.
        page: Whether the class must have a page.

    Raises:
        ValueError: If there is no such class.
    """
    experiment = card.get("run", {}).get("experiment")
    known = [name for name in KINDS if KINDS[name].page or not page]
    if experiment not in known:
        raise ValueError(
            f"There is no {'page' if page else 'question'} for the preset "
            f"{str(preset)!r}: its card should name one of {', '.join(known)} "
            f"as the run's experiment. Received: {experiment!r}"
        )
    return KINDS[experiment]


def load(card: dict[str, Any], preset: Any) -> Any:
    """An object of the preset's kind, with its model."""
    kind = kind_of(card, preset)
    return kind(models.from_preset(preset), card["run"]["arguments"])
