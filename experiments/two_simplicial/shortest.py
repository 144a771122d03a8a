"""The fewest moves that solve a puzzle, by breadth-first search."""

import keras
import numpy as np
from keras import ops

from keras_relational.environments.compilation import compiled


def shortest_lengths(world, seeds, max_steps=200):
    """The fewest moves that solve the first episode of each seed.

    The search visits every state within reach: use it for small puzzles.
    """
    seeds = np.asarray(seeds, dtype="uint32")
    lengths = np.zeros(len(seeds), int)
    frontier = _arrays(world.reset(seeds))
    puzzles = np.arange(len(seeds))
    step = compiled(world.step)
    seen = np.zeros(0, "uint64")
    for depth in range(1, max_steps + 1):
        # Make all moves from all states of the frontier.
        num_actions = len(world.actions)
        puzzles = np.repeat(puzzles, num_actions)
        frontier, rewards, over = _all_moves(step, num_actions, frontier)
        lengths[puzzles[rewards >= world.success_reward]] = depth
        if lengths.all():
            return lengths
        # Go on from new states, if their puzzle is not solved yet.
        open_ = np.flatnonzero(~over & (lengths[puzzles] == 0))
        keys, first = np.unique(_keys(puzzles, frontier)[open_], True)
        new = ~np.isin(keys, seen)
        seen = np.concatenate([seen, keys[new]])
        rows = open_[first[new]]
        frontier = {name: x[rows] for name, x in frontier.items()}
        puzzles = puzzles[rows]
    raise ValueError(
        f"{np.sum(lengths == 0)} of {len(seeds)} puzzles take more than "
        f"{max_steps} moves. Received: max_steps={max_steps}"
    )


def _all_moves(step, num_actions, frontier):
    """The result of every move from each state, in pieces of one size."""
    size = 4_096
    state = {k: np.repeat(v, num_actions, 0) for k, v in frontier.items()}
    count = len(state["steps"])
    actions = np.arange(count) % num_actions
    pieces = []
    for start in range(0, count, size):
        # Repeat the last row to complete the last piece.
        rows = np.minimum(np.arange(start, start + size), count - 1)
        piece = step({k: v[rows] for k, v in state.items()}, actions[rows])
        here = min(size, count - start)
        pieces.append(
            keras.tree.map_structure(
                lambda x, here=here: ops.convert_to_numpy(x)[:here], piece
            )
        )
    state, rewards, over, _ = keras.tree.map_structure(
        lambda *xs: np.concatenate(xs), *pieces
    )
    return state, rewards, over


def _keys(puzzles, state):
    """A hash of each state. Different states very likely have other hashes."""
    columns = [x for name, x in state.items() if name != "steps"]
    rows = np.column_stack([puzzles, *columns]).astype("uint64")
    rng = np.random.default_rng(0)
    factors = rng.integers(2**64, size=rows.shape[1], dtype="uint64")
    return np.sum(rows * factors, axis=1)


def _arrays(state):
    return keras.tree.map_structure(ops.convert_to_numpy, state)
