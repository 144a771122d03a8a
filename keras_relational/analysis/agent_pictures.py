"""Pictures of an agent: how it learned, and an episode that it plays."""

import pathlib
import typing
from collections.abc import Mapping
from collections.abc import Sequence

import keras
import numpy as np

from keras_relational import models
from keras_relational.analysis.block_attention import animate_attention
from keras_relational.analysis.episodes import PLAYERS
from keras_relational.analysis.episodes import frames
from keras_relational.analysis.episodes import play_each
from keras_relational.analysis.episodes import player_means
from keras_relational.analysis.episodes import record
from keras_relational.analysis.episodes import shortest_lengths
from keras_relational.analysis.learning_curves import plot_learning_curves
from keras_relational.analysis.plotting import save_figure
from keras_relational.analysis.schemata import episode_object_files
from keras_relational.analysis.schemata import plot_schemata
from keras_relational.analysis.tile_attention import plot_tile_attention
from keras_relational.analysis.tile_attention import tile_attention
from keras_relational.environments.batched_world import World
from keras_relational.environments.boxworld.rules import Board
from keras_relational.random_streams import unseen_world_seeds


def draw_solved_share(
    curves: Mapping[str, np.ndarray],
    name: str,
    directory: pathlib.Path,
    quantity: str = "solved",
) -> None:
    """Draws the share of episodes solved over steps: `curves.png`.

    A run so short that no episode has ended yet is not drawn.

    Args:
        curves: Curves, as `training.train_agent` returns them.
        name: What the agent is called in the legend.
        directory: Folder to write to.
        quantity: Name of the curve.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If the file cannot be written; the error names it.
    """
    if np.isnan(curves[quantity]).all():
        return
    figure = plot_learning_curves({name: [curves]}, quantity, "steps")
    save_figure(figure, directory / "curves.png")


def draw_solved_episode(
    world: World,
    seeds: Sequence[int],
    model: keras.Model,
    solved: np.ndarray,
    directory: pathlib.Path,
) -> None:
    """Animates the first episode that an agent solves: `attention.gif`.

    The agent makes its likeliest moves, and its attention is drawn over the
    frames. Nothing is written if it solves no episode, or has no attention.

    Args:
        world: `environments.batched_world.World`, such as `BoxWorld`.
        seeds: Seeds of the episodes.
        model: Agent of `models.boxworld_agent`.
        solved: Booleans, one for each seed, as `play` returns them.
        directory: Folder to write to.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If the file cannot be written; the error names it.
    """
    if not np.any(solved) or "block" not in models.roles(model).parts:
        return
    episode = record(world, seeds[int(np.argmax(solved))], model)
    animate_attention(model, episode["images"], directory / "attention.gif")


def draw_tile_attention(
    world: Board,
    seeds: Sequence[int],
    model: keras.Model,
    directory: pathlib.Path,
) -> None:
    """Draws what kinds of tiles each head attends to: `tile_attention.png`.

    Every fifth frame of the episodes counts, with moves drawn from the policy.

    Args:
        world: `BoxWorld` or `BridgeBoxWorld`.
        seeds: Seeds of the episodes.
        model: Relational or simplicial agent of `models.boxworld_agent`.
        directory: Folder to write to.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If the file cannot be written; the error names it.
        ValueError: If the model has no Transformer block.
    """
    found = tile_attention(model, world, frames(world, seeds, model))
    path = directory / "tile_attention.png"
    save_figure(plot_tile_attention(found), path, dpi=110)


def agent_figures(
    world: World,
    model: keras.Model,
    num_test: int,
    directory: pathlib.Path,
    shortest: bool = False,
    players: Sequence[str] = PLAYERS,
    others: Mapping[str, World] | None = None,
) -> dict[str, typing.Any]:
    """Tests an agent on puzzles that training never draws.

    The first one that it solves by its likeliest moves is drawn, with its
    attention: `attention.gif`. On boards of BoxWorld, what a relational or
    simplicial agent attends to in the first 100 puzzles is drawn, too:
    `tile_attention.png`.

    Args:
        world: `environments.batched_world.World`, such as `BoxWorld`.
        model: Agent of `models.boxworld_agent`.
        num_test: Positive integer, the number of puzzles.
        directory: Folder to draw in.
        shortest: Whether to search for the fewest moves, too. This takes long.
        players: As for `play_each`; `"greedy"` must be among them.
        others: Further worlds to test in, by name, such as one of longer
            solutions.

    Returns:
        Dictionary from each player to its means, as `player_means` returns
        them, with levels; the same under the name of each further world; and
        the mean `shortest_length`, if it was asked for.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If a file cannot be written; the error names it.
        ValueError: If `shortest`, and a puzzle takes more than 200 moves.
    """
    seeds = unseen_world_seeds(num_test)
    played = play_each(world, seeds, model, players)
    solved = played["greedy"]["solved"]
    draw_solved_episode(world, seeds, model, solved, directory)
    if isinstance(world, Board) and "block" in models.roles(model).parts:
        draw_tile_attention(world, seeds[:100], model, directory)
    figures: dict[str, typing.Any] = dict(player_means(played, levels=True))
    for name, other in (others or {}).items():
        elsewhere = play_each(other, seeds, model, players)
        figures[name] = player_means(elsewhere, levels=True)
    if shortest:
        lengths = shortest_lengths(world, seeds)
        figures["shortest_length"] = float(lengths.mean())
    return figures


def draw_agent_schemata(
    world: World, seed: int, model: keras.Model, directory: pathlib.Path
) -> None:
    """Draws which schemata an agent uses in one episode: `schemata.png`.

    The agent draws its moves from its policy.

    Args:
        world: `environments.batched_world.World`, such as `GotoObjectMaze`.
        seed: Seed of the episode.
        model: Agent of `models.boxworld_agent` with a `SCOFFCell`.
        directory: Folder to write to.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If the file cannot be written; the error names it.
        ValueError: If the agent's cell is not a `SCOFFCell`.
    """
    episode = record(world, seed, model, greedy=False)
    found = episode_object_files(model, episode["images"])
    save_figure(plot_schemata(found), directory / "schemata.png")
