"""Boards, puzzles and the propositions of a PrediNet, as text."""

from collections.abc import Mapping

import numpy as np

from keras_relational.environments.boxworld import BLANK
from keras_relational.environments.boxworld import EMPTY
from keras_relational.environments.boxworld import GEM
from keras_relational.environments.boxworld import PLAYER
from keras_relational.environments.colours import pack_pixels

_NAMES = "ABCDEF"


def board_as_text(image: np.ndarray) -> str:
    """The blocks of a board as characters: `·` for black, a letter a colour.

    Args:
        image: uint8 array `(36, 36, 3)`, an image of `datasets.relations_game`.

    Returns:
        Nine lines of nine characters, with spaces between them.

    Example:

    >>> from keras_relational.datasets import relations_game
    >>> images, _, _ = relations_game.generate("same", 1, seed=0)
    >>> board_as_text(images[0]).splitlines()[0]
    'A · · · · · · · ·'
    """
    # An object fills a cell of 12 by 12 pixels but for its edge: 3 by 3 blocks.
    blocks = image.reshape(3, 12, 3, 12, 3)[:, 2:10:3, :, 2:10:3]
    colours = blocks.reshape(9, 9, 3)
    characters = {(0, 0, 0): "·"}
    for colour in map(tuple, colours.reshape(-1, 3).tolist()):
        characters.setdefault(colour, _NAMES[len(characters) - 1])
    return "\n".join(
        " ".join(characters[tuple(colour)] for colour in row)
        for row in colours.tolist()
    )


def puzzle_as_text(image: np.ndarray) -> str:
    """The tiles of a BoxWorld puzzle as characters.

    `·` is a blank tile, `@` the player, `*` a gem, and a letter a key or a
    lock: equal letters are equal colours. In the last column, the inventory, a
    space is an empty place.

    Args:
        image: uint8 array `(rows, columns + 1, 3)`, as `BoxWorld.render` draws
            it.

    Returns:
        A line for each row, with spaces between the characters.

    Example:

    >>> import keras
    >>> from keras_relational.environments import boxworld
    >>> world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
    >>> image = keras.ops.convert_to_numpy(world.render(world.reset([0])))[0]
    >>> print(puzzle_as_text(image))
    @ · · · · ·
    · A · · * A
    · · · · · ·
    """
    characters = {BLANK: "·", EMPTY: " ", PLAYER: "@", GEM: "*"}
    num_others = len(characters)
    tiles = pack_pixels(image).tolist()
    for tile in (tile for row in tiles for tile in row):
        letter = chr(ord("A") + len(characters) - num_others)
        characters.setdefault(tile, letter)
    lines = (" ".join(characters[tile] for tile in row) for row in tiles)
    return "\n".join(line.rstrip() for line in lines)


def proposition_as_text(
    propositions: Mapping[str, np.ndarray], heads: np.ndarray
) -> str:
    """The proposition of one head of a PrediNet about an image, a sentence.

    Of the heads, this is the one whose two entities lie farthest apart.

    Args:
        propositions: Dictionary of `positions_1` and `positions_2`, each
            `(num_heads, 2)`, and `distances` `(num_heads, num_relations)`, as
            `layers.PrediNet.propositions` returns them for one image.
        heads: Integer array of the heads to choose from.

    Returns:
        String.

    Example:

    >>> propositions = {
    ...     "positions_1": np.array([[0.25, 0.5]]),
    ...     "positions_2": np.array([[1.0, 0.5]]),
    ...     "distances": np.array([[0.5, -2.0]]),
    ... }
    >>> proposition_as_text(propositions, np.array([0])).split(" differ ")[1]
    'by 2.00 in relation 1, and by less in its other 1.'
    """
    places = propositions["positions_1"], propositions["positions_2"]
    apart = np.linalg.norm(places[0] - places[1], axis=-1)
    head = heads[apart[heads].argmax()]
    (x1, y1), (x2, y2) = (positions[head] for positions in places)
    distances = np.abs(propositions["distances"][head])
    return (
        f"Head {head} says: the entities at (x, y) = ({x1:.2f}, {y1:.2f}) and "
        f"({x2:.2f}, {y2:.2f}) differ by {distances.max():.2f} in relation "
        f"{distances.argmax()}, and by less in its other {len(distances) - 1}."
    )
