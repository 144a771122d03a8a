"""Tests an agent on puzzles that training never draws, and draws one."""

import numpy as np

from experiments import agents
from experiments.two_simplicial.shortest import shortest_lengths
from experiments.two_simplicial.tile_attention import plot_tile_attention
from experiments.two_simplicial.tile_attention import tile_attention
from keras_relational import analysis
from keras_relational import models
from keras_relational.environments import boxworld
from keras_relational.environments.boxworld.rules import Board
from keras_relational.random_streams import unseen_world_seeds


def evaluate(
    world,
    model,
    num_test,
    directory,
    shortest=False,
    players=agents.PLAYERS,
    others=None,
):
    """The means of each player, with levels, and pictures of the agent.

    `attention.gif` is the first episode that the agent solves by its likeliest
    actions. `tile_attention.png` is for boards of BoxWorld. The means in
    `others`, further worlds by name, stand under their names.
    """
    seeds = unseen_world_seeds(num_test)
    played = agents.play_each(world, seeds, model, players)
    if "block" in models.roles(model).parts:
        solved = played["greedy"]["solved"]
        if solved.any():
            episode = analysis.record(world, seeds[np.argmax(solved)], model)
            path = directory / "attention.gif"
            analysis.animate_attention(model, episode["images"], path)
        if isinstance(world, Board):
            # Actions are drawn from the policy, and every fifth frame counts.
            images = analysis.frames(world, seeds[:100], model)
            found = tile_attention(model, world, images)
            path = directory / "tile_attention.png"
            analysis.save_figure(plot_tile_attention(found), path, dpi=110)
    metrics = agents.player_means(played, levels=True)
    for name, other in (others or {}).items():
        elsewhere = agents.play_each(other, seeds, model, players)
        metrics[name] = agents.player_means(elsewhere, levels=True)
    if shortest:
        lengths = shortest_lengths(world, seeds)
        metrics["shortest_length"] = float(lengths.mean())
    return metrics


def preset_metrics(model, arguments):
    """The share of new puzzles solved, by the likeliest and by drawn moves."""
    pairs = {"key_lock_pairs": "seen"} if arguments["withhold_pairs"] else {}
    world = boxworld.world_of_options(arguments, **pairs)
    seeds = unseen_world_seeds(arguments["num_test"])
    played = agents.play_each(world, seeds, model, ("greedy", "sampled"))
    means = agents.player_means(played)
    return {player: {"solved": x["solved"]} for player, x in means.items()}


def preset_headline(arguments, metrics):
    return (
        f"solves {metrics['sampled']['solved']:.1%} of new puzzles by drawn "
        f"moves, {metrics['greedy']['solved']:.1%} by the likeliest"
    )
