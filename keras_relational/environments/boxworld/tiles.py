"""The colours of tiles, as packed integers."""

from keras_relational.environments.colours import pack_hsv
from keras_relational.environments.colours import pack_rgb

# A blank tile of the board, an empty place of the inventory, and so on.
BLANK, EMPTY, PLAYER, GEM = (
    pack_rgb(grey, grey, grey) for grey in (199, 10, 127, 255)
)
NUM_HUES = 20
# The colours of keys and locks: the palette of Clift et al., 2019.
HUES = tuple(pack_hsv(hue / NUM_HUES, 0.7, 0.8) for hue in range(NUM_HUES))
