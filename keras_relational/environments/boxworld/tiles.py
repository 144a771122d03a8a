"""The colours of tiles, as packed integers, and which tiles match."""

import numpy as np

from keras_relational.environments.colours import pack_hsv
from keras_relational.environments.colours import pack_pixels
from keras_relational.environments.colours import pack_rgb

# A blank tile of the board, an empty place of the inventory, and so on.
BLANK, EMPTY, PLAYER, GEM = (
    pack_rgb(grey, grey, grey) for grey in (199, 10, 127, 255)
)
NUM_HUES = 20
# The colours of keys and locks: the palette of Clift et al., 2019.
HUES = tuple(pack_hsv(hue / NUM_HUES, 0.7, 0.8) for hue in range(NUM_HUES))


def same_colour(images: np.ndarray) -> np.ndarray:
    """Which entities of an agent have keys or locks of one colour.

    An entity of `models.boxworld_agent` sees 3 × 3 tiles. Its middle is one of
    the n tiles that are not on the edge of the image.

    Args:
        images: uint8 array `(batch, rows, columns + 1, 3)` of boards, as
            `render` returns them.

    Returns:
        Boolean array `(batch, 2, n, n)`. The first n × n mark, for each key or
        lock in the middle of an entity, the other entities with that colour in
        the middle. The second n × n mark, for each lock of a box with a key,
        the other entities with the colour of that key in the middle.

    Example:

    >>> from keras_relational.environments import boxworld
    >>> world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
    >>> images = np.asarray(world.render(world.reset([0])))
    >>> same_colour(images).shape  # A loose key and the lock of the gem.
    (1, 2, 5, 5)
    """
    tiles = pack_pixels(images[:, 1:-1])
    tiles = np.where(np.isin(tiles, HUES), tiles, -1)
    middle, left = tiles[:, :, 1:-1], tiles[:, :, :-2]
    left = np.where(middle >= 0, left, -1)
    middle, left = (x.reshape(len(images), -1) for x in (middle, left))
    n = middle.shape[1]
    asks = np.stack([middle, left], axis=1)[..., None]
    is_itself = np.stack([np.eye(n), np.eye(n, k=-1)]).astype(bool)
    return (asks >= 0) & (asks == middle[:, None, None]) & ~is_itself
