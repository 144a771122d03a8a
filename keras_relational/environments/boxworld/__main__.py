"""Draws a puzzle into a PNG file.

    python -m keras_relational.environments.boxworld --render puzzle.png

The column at the right is the inventory.
"""

import argparse
import io
import pathlib

import numpy as np
from keras import ops

from keras_relational.environments import boxworld
from keras_relational.file_io import write_atomically
from keras_relational.validation import needs_extra


def main() -> None:
    with needs_extra("plots", "Pictures of puzzles"):
        from PIL import Image
    parser = argparse.ArgumentParser(
        prog="python -m keras_relational.environments.boxworld",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    add("--render", type=pathlib.Path, required=True, help="PNG to write")
    add("--bridge", action="store_true", help="bridge BoxWorld")
    add("--seed", type=int, default=0, help="of the puzzle")
    add("--tile-size", type=int, default=16, help="in pixels")
    args = parser.parse_args()
    if not 0 <= args.seed < 2**32 or args.tile_size < 1:
        parser.error("--seed goes from 0 to 2**32 - 1, --tile-size from 1 on")
    world = boxworld.BridgeBoxWorld() if args.bridge else boxworld.BoxWorld()
    state = world.reset(np.array([args.seed], "uint32"))
    (image,) = ops.convert_to_numpy(world.render(state))
    tile = np.ones((args.tile_size, args.tile_size, 1), "uint8")
    picture = io.BytesIO()
    Image.fromarray(np.kron(image, tile)).save(picture, format="PNG")
    write_atomically(args.render, picture.getvalue())


if __name__ == "__main__":
    main()
