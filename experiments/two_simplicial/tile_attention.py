"""What heads of an agent attend to on average: the roles of Appendix F.1.

Clift et al., 2019, *Logic and the 2-Simplicial Transformer*, tell the roles of
heads from single frames. This module averages over many.
"""

import typing

import numpy as np
from keras import ops

from experiments.two_simplicial.pictures import state_from_images
from keras_relational.analysis import block_attention
from keras_relational.analysis.block_attention import player_entities
from keras_relational.analysis.plotting import new_figure
from keras_relational.environments.boxworld import BLANK
from keras_relational.environments.boxworld import same_colour
from keras_relational.environments.colours import pack_pixels

KINDS = ("inventory", "player", "useful", "other", "blank")


class TileAttention(typing.NamedTuple):
    """Mean attention between kinds of entities, the five of `KINDS`."""

    # (5,): what attention to all entities alike would give to each kind.
    uniform: np.ndarray
    # (iterations, heads, 5, 5): from an entity of the first kind to the second.
    standard: np.ndarray
    # (iterations, heads): from a key or lock to the others of its colour.
    same_colour: np.ndarray
    same_colour_uniform: float
    # (iterations, heads, v, 5): from virtual entities, if there are any.
    virtual: np.ndarray | None
    # (iterations, heads, 5, v, v): to pairs of virtual entities.
    pairs: np.ndarray | None


def tile_attention(model, world, images):
    """What kinds of tiles the heads of an agent attend to, over all images.

    Entities are of five kinds, by the tile in their middle:

    - `"inventory"`: the last entity of the first row, which sees the inventory;
    - `"player"`: the entity nearest to the player;
    - `"useful"`: a loose key, or a lock that the player can open now without
      losing;
    - `"other"`: every other key, lock or gem;
    - `"blank"`: all others. What no image has is NaN.
    """
    attention = block_attention(model, images)
    kinds = _kinds(world, images)
    n = kinds.shape[1]
    is_kind = (kinds[..., None] == np.arange(len(KINDS))).astype(float)

    def ratio(total, count):
        """NaN where nothing was counted."""
        with np.errstate(invalid="ignore"):
            return total / count

    def of_kinds(values):
        """Mean over all entities of a kind: `(b, n, …)` to `(5, …)`."""
        total = np.einsum("bnk,bn...->k...", is_kind, values)
        count = is_kind.sum((0, 1))
        return ratio(total, count.reshape(-1, *[1] * (total.ndim - 1)))

    def to_kinds(weights):
        """Attention to all entities of a kind: `(b, i, h, q, n)`."""
        return weights[..., :n] @ is_kind[:, None, None]

    standard = of_kinds(np.moveaxis(to_kinds(attention.standard), 3, 1))
    same = same_colour(images)[:, 0]
    has_same = same.any(-1)
    to_same = (attention.standard * same[:, None, None]).sum(-1)
    to_same = np.moveaxis(to_same, 3, 1)[has_same]
    virtual = pairs = None
    if attention.pairs is not None:
        virtual = to_kinds(attention.virtual).mean(0)
        pairs = of_kinds(np.moveaxis(attention.pairs, 3, 1))
        pairs = np.moveaxis(pairs, 0, 2)
    return TileAttention(
        is_kind.mean((0, 1)),
        np.moveaxis(standard, 0, 2),
        ratio(to_same.sum(0), has_same.sum()),
        float(ratio(same.sum(), n * has_same.sum())),
        virtual,
        pairs,
    )


def plot_tile_attention(found):
    """Draws the attention of each head to kinds of tiles, as coloured tables.

    Rows attend to columns. In brackets is what attention to all entities alike
    would give. Red is more than that, blue less, at most 8 times.
    """
    iterations, heads = found.standard.shape[:2]
    names, tables = list(KINDS), found.standard
    if found.virtual is not None:
        names += [f"virtual {v + 1}" for v in range(found.virtual.shape[2])]
        tables = np.concatenate([tables, found.virtual], axis=2)
    figure = new_figure(3.6 * heads, (0.7 + 0.3 * len(names)) * iterations)
    axes = figure.subplots(iterations, heads, squeeze=False)
    columns = [
        f"{kind}\n({share:.0%})"
        for kind, share in zip(KINDS, found.uniform, strict=True)
    ]
    for (i, head), axis in np.ndenumerate(axes):
        table = tables[i, head]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log2(table / found.uniform)
        axis.imshow(ratio, cmap="RdBu_r", vmin=-3, vmax=3, aspect="auto")
        for (row, column), share in np.ndenumerate(table):
            axis.text(
                column,
                row,
                f"{share:.0%}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if abs(ratio[row, column]) > 2 else "black",
            )
        axis.set_title(f"iteration {i + 1}, head {head + 1}", fontsize=8)
        axis.set_xticks(range(len(KINDS)), columns, fontsize=6)
        rows = names if head == 0 else []
        axis.set_yticks(range(len(rows)), rows, fontsize=7)
    return figure


def _kinds(world, images):
    """Kinds of entities, as indices into `KINDS`."""
    rows, columns = images.shape[1] - 2, images.shape[2] - 2
    useful = world.useful_tiles(state_from_images(world, images))
    useful = ops.convert_to_numpy(useful)
    useful = useful.reshape(-1, world.rows, world.columns)
    tiles = pack_pixels(images[:, 1:-1, 1:-1]).reshape(-1, rows * columns)
    useful = useful[:, 1:-1, 1:].reshape(tiles.shape)
    kinds = np.where(useful, 2, np.where(tiles == BLANK, 4, 3))
    kinds[np.arange(len(images)), player_entities(images)] = 1
    kinds[:, columns - 1] = 0
    return kinds
