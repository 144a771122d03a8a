"""The attention of an agent's entities, as arrays, pictures and animations."""

import io
import pathlib
import typing

import keras
import numpy as np

from keras_relational import models
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.analysis.compiled_parts import once_for_each_model
from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_gif
from keras_relational.environments.boxworld import PLAYER
from keras_relational.environments.colours import pack_pixels
from keras_relational.layers import SimplicialTransformerBlock
from keras_relational.training.supervised import predictions


class BlockAttention(typing.NamedTuple):
    """Attention of a Transformer block: arrays `(batch, iterations, heads, …)`.

    Attributes:
        standard: Attention of each entity to each entity `(…, n, n)`.
        virtual: Attention of each virtual entity to all entities `(…, v, n +
            v)`, or `None` without virtual entities.
        pairs: Attention of each entity to each pair of virtual entities `(…, n,
            v, v)`, or `None` without them.
    """

    standard: np.ndarray
    virtual: np.ndarray | None
    pairs: np.ndarray | None


def block_attention(
    model: keras.Model, images: np.ndarray, batch_size: int = 250
) -> BlockAttention:
    """All attention of an agent's Transformer block.

    Entities are numbered row by row. With w entities in a row, entity i sees
    the 3 × 3 tiles around row 1 + i // w and column 1 + i % w of the image.

    Args:
        model: Relational or simplicial agent of `models.boxworld_agent`.
        images: uint8 array `(batch, rows, columns + 1, 3)`.
        batch_size: Number of images in a batch of the computation.

    Returns:
        `BlockAttention` of float32 arrays.

    Raises:
        ValueError: If the model has no Transformer block.

    Example:

    >>> from keras_relational import models
    >>> model = models.boxworld_agent("simplicial")
    >>> attention = block_attention(model, np.zeros((1, 7, 10, 3), "uint8"))
    >>> attention.pairs.shape
    (1, 2, 1, 40, 2, 2)
    """
    roles = models.roles(model)
    if "block" not in roles.parts:
        raise ValueError(
            "Attention needs a relational or a simplicial agent. Received: "
            f"{model.name} with the parts {', '.join(roles.parts)}"
        )
    if roles.states:  # A recurrent agent takes sequences of frames.
        images = images[:, None]
    scores = predictions(scores_part(model), images, batch_size)
    scores = [x.astype("float32") for x in keras.tree.flatten(scores)]
    return BlockAttention(*scores, *[None] * (3 - len(scores)))


@once_for_each_model
def scores_part(model):
    """A model from images to the fields of `BlockAttention`."""
    block = models.part(model, "block")
    before = models.part(model, "entities").output
    before = keras.Model(model.inputs[0], before)
    virtual = []
    if isinstance(block, SimplicialTransformerBlock):
        virtual = [models.part(model, "virtual_entities")]

    def read(images):
        entities = before(images)
        others = [layer(entities) for layer in virtual]
        return block(entities, *others, return_attention_scores=True)[1]

    return CompiledPart(model, read)


def plot_block_attention(
    image: np.ndarray, attention: BlockAttention
) -> Figure:
    """Draws the attention of the entities of one frame.

    Over the image stands the attention of the player's entity for each
    iteration and head. For a simplicial agent, further panels show the
    attention of each virtual entity in the first iteration. The last panel has
    the attention of every entity to each pair of virtual entities in the last
    iteration. Reference: Figs. 7 and 11 to 13 of [Clift et al., 2019](
    https://arxiv.org/abs/1909.00668), whose pictures are sharpened. The batch
    of `attention` is this image alone.
    """
    rows, columns = image.shape[0] - 2, image.shape[1] - 2
    (player,) = player_entities(image[None])
    standard = attention.standard[0, :, :, player]
    panels = [
        (f"player, {i + 1}:{head + 1}", standard[i, head])
        for i, head in np.ndindex(*standard.shape[:2])
    ]
    if attention.virtual is not None:
        virtual = attention.virtual[0, 0]
        panels += [
            (
                f"virtual {j + 1}, 1:{head + 1}",
                virtual[head, j, : rows * columns],
            )
            for j, head in np.ndindex(virtual.shape[1], virtual.shape[0])
        ]
    count = len(panels) + 1
    across = min(5, count)
    down = -(-count // across)
    with_pairs = attention.pairs is not None
    figure = new_figure(2 * across, 1.7 * down + 1.6 * with_pairs)
    grid = figure.add_gridspec(
        down + with_pairs, across, height_ratios=[1] * down + [0.8] * with_pairs
    )
    axes = [
        figure.add_subplot(grid[i // across, i % across]) for i in range(count)
    ]
    axes[0].imshow(image)
    axes[0].set_title("board", fontsize=8)
    for axis, (title, weights) in zip(axes[1:], panels, strict=True):
        axis.imshow(image // 3)
        heat = weights.reshape(rows, columns)
        axis.imshow(
            heat,
            cmap="inferno",
            vmin=0,
            alpha=np.clip(heat / max(heat.max(), 1e-9), 0.15, 0.9),
            extent=(0.5, columns + 0.5, rows + 0.5, 0.5),
        )
        axis.set(xlim=(-0.5, columns + 1.5), ylim=(rows + 1.5, -0.5))
        axis.set_title(title, fontsize=8)
    for axis in axes:
        axis.set(xticks=[], yticks=[])
    if attention.pairs is not None:
        pairs = attention.pairs[0, -1].mean(axis=0)
        v = pairs.shape[-1]
        axis = figure.add_subplot(grid[down, :])
        axis.imshow(
            pairs.reshape(-1, v * v).T, cmap="viridis", vmin=0, aspect="auto"
        )
        axis.axvline(player, color="white", linewidth=0.8)
        axis.set_xlabel("entity (line: the player's)", fontsize=8)
        axis.set_ylabel("pair", fontsize=8)
        axis.set_yticks(
            range(v * v),
            [f"({j + 1}, {k + 1})" for j, k in np.ndindex(v, v)],
            fontsize=6,
        )
        axis.tick_params(axis="x", labelsize=6)
    return figure


def animate_attention(
    model: keras.Model,
    images: np.ndarray,
    path: pathlib.Path | str,
    milliseconds: float = 400,
) -> None:
    """Writes an animated GIF of an episode, with the attention drawn over it.

    Args:
        model: Relational or simplicial agent of `models.boxworld_agent`.
        images: uint8 array `(steps, rows, columns + 1, 3)`, such as the images
            of `record`.
        path: Path of the file.
        milliseconds: Time that each frame is shown.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    attention = block_attention(model, images)
    files = []
    for number, image in enumerate(images):
        of_frame = BlockAttention._make(
            x if x is None else x[number : number + 1] for x in attention
        )
        file = io.BytesIO()
        plot_block_attention(image, of_frame).savefig(file, dpi=80)
        files.append(file)
    # matplotlib, which drew the pictures, depends on Pillow.
    from PIL import Image

    pictures = [np.asarray(Image.open(x).convert("RGB")) for x in files]
    save_gif(pictures, path, milliseconds)


def player_entities(images: np.ndarray) -> np.ndarray:
    """The numbers of the entities whose centre is nearest to the player."""
    _, rows, columns = np.nonzero(pack_pixels(images) == PLAYER)
    height, width = images.shape[1] - 2, images.shape[2] - 2
    row = np.clip(rows - 1, 0, height - 1)
    return row * width + np.clip(columns - 1, 0, width - 1)
