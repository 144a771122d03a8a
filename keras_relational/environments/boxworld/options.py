"""Puzzles by the options of a command, or of the run that a preset's card has.

An option that is not given is that of the smallest puzzles: for `"box"` a
single box on 3 by 6 tiles, for `"bridge"` the paper's 7 by 9 tiles.
"""

from collections.abc import Mapping
from typing import Any

from keras_relational.environments.boxworld.puzzles import BoxWorld
from keras_relational.environments.boxworld.puzzles import BridgeBoxWorld
from keras_relational.validation import check_choice

SIZES = ("rows", "columns", "solution_length", "num_distractors")
WORLDS: dict[str, type] = {"box": BoxWorld, "bridge": BridgeBoxWorld}
_SMALLEST: dict[str, tuple] = {"box": (3, 6, (1, 1), (0, 0)), "bridge": ()}


def world_of_options(
    options: Mapping[str, Any], **changes: Any
) -> BoxWorld | BridgeBoxWorld:
    """Makes the world that options describe.

    Args:
        options: Mapping with `"world"`, `"box"` or `"bridge"`, and the
            arguments of `BoxWorld` or `BridgeBoxWorld` under their names:
            `"rows"`, `"columns"`, `"solution_length"`, `"num_distractors"` and
            `"max_episode_steps"`. `None` or 0 is as if the option was not
            given. Other keys have no effect.
        **changes: Arguments of the world that replace those of the options.

    Returns:
        `BoxWorld` or `BridgeBoxWorld`.

    Raises:
        KeyError: If there is no `"world"`.
        ValueError: If the kind of world is unknown, a number is out of its
            range, or there is a number of distractors for bridge puzzles.

    Example:

    >>> world_of_options({"world": "box", "columns": 18}).columns
    18
    """
    kind = options["world"]
    check_choice("world", kind, tuple(WORLDS))
    given = {k: options[k] for k in SIZES if options.get(k)}
    if kind == "bridge" and "num_distractors" in given:
        raise ValueError(
            "Bridge puzzles have no distractors: leave `num_distractors` out. "
            f"Received: num_distractors={given['num_distractors']}"
        )
    size = dict(zip(SIZES, _SMALLEST[kind], strict=False)) | given
    size["max_episode_steps"] = options.get("max_episode_steps") or None
    return WORLDS[kind](**{**size, **changes})
