"""Boards of the Relations Game for a terminal."""

import numpy as np

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
    '· · · · · · · · ·'
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
