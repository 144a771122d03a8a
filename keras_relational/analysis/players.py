"""An agent beside a random player, in figures."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_relational.analysis.episodes import by_level
from keras_relational.analysis.episodes import play

PLAYERS = ("greedy", "sampled", "random")


def play_each(
    world: Any,
    seeds: Sequence[int],
    model: keras.Model,
    players: Sequence[str] = PLAYERS,
) -> dict[str, dict[str, np.ndarray]]:
    """Plays the first episode of each seed, by each of several players.

    Args:
        world: A world, such as `environments.boxworld.BoxWorld`.
        seeds: Seeds of the episodes, the same for every player.
        model: `keras.Model` of an agent, as `models.boxworld_agent` builds.
        players: Some of `"greedy"`, the agent with its likeliest moves,
            `"sampled"`, the agent with moves drawn from its policy, and
            `"random"`, random moves without the agent.

    Returns:
        Dictionary from each player to its episodes, as `play` returns them.

    Example:

    >>> from keras_relational.environments import boxworld
    >>> world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0), max_episode_steps=9)
    >>> played = play_each(world, range(4), None, ["random"])
    >>> player_means(played)["random"]["length"] <= 9
    True
    """
    return {
        player: play(
            world,
            seeds,
            None if player == "random" else model,
            greedy=player == "greedy",
        )
        for player in players
    }


def player_means(
    played: Mapping[str, Mapping[str, np.ndarray]], levels: bool = False
) -> dict[str, dict[str, Any]]:
    """The share of episodes that each player solves, and their mean length.

    Args:
        played: Dictionary from each player to its episodes, as `play_each`
            returns it.
        levels: If `True`, the same for each level, too.

    Returns:
        Dictionary from each player to a dictionary of `solved`, `length` and,
        with `levels`, `types`: a dictionary from each level, as text, to what
        `by_level` has of it.
    """
    means: dict[str, dict[str, Any]] = {}
    for player, episodes in played.items():
        means[player] = {
            "solved": float(episodes["solved"].mean()),
            "length": float(episodes["lengths"].mean()),
        }
        if levels:
            of_levels = {str(k): v for k, v in by_level(episodes).items()}
            means[player]["types"] = of_levels
    return means
