"""An agent beside other players, on episodes that training never draws."""

import numpy as np

from keras_relational import analysis
from keras_relational.random_streams import unseen_world_seeds

PLAYERS = ("greedy", "sampled", "random")


def play_each(world, seeds, model, players=PLAYERS):
    """The result of `analysis.play` for each player.

    The agent is `"greedy"`, with its likeliest actions, or `"sampled"` from its
    policy. `"teacher"` takes the first of the world's `expert_moves`.
    """
    return {
        player: analysis.play(
            world,
            seeds,
            None if player == "random" else model,
            greedy=player == "greedy",
            teacher=player == "teacher",
        )
        for player in players
    }


def player_means(played, levels=False):
    """The share `solved` and the mean `length` of each player of `play_each`.

    With `levels` there are also `types`, the same for each level, as text.
    """
    means = {}
    for player, episodes in played.items():
        means[player] = {
            "solved": float(episodes["solved"].mean()),
            "length": float(episodes["lengths"].mean()),
        }
        if levels:
            of_levels = {str(k): v for k, v in by_level(episodes).items()}
            means[player]["types"] = of_levels
    return means


def by_level(episodes):
    """Share solved and mean length for each level, a tuple of integers."""
    levels, members = np.unique(episodes["levels"], axis=0, return_inverse=True)
    members = members.reshape(-1)
    return {
        tuple(int(x) for x in level): {
            "episodes": int(np.sum(members == number)),
            "solved": float(episodes["solved"][members == number].mean()),
            "length": float(episodes["lengths"][members == number].mean()),
        }
        for number, level in enumerate(levels)
    }


def solved_share(world, model, name="solved_alone"):
    """A measure of an agent in training: what it solves by drawn moves."""

    def measure():
        seeds = unseen_world_seeds(100)
        played = analysis.play(world, seeds, model, greedy=False)
        return {name: float(played["solved"].mean())}

    return measure


def draw_solved_share(curves, name, directory, quantity="solved"):
    """Draws the share solved over steps, `curves.png`, if episodes ended."""
    if np.isnan(curves[quantity]).all():
        return
    figure = analysis.plot_learning_curves({name: [curves]}, quantity, "steps")
    analysis.save_figure(figure, directory / "curves.png")
