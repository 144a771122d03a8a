"""Reads a board from its picture.

A picture does not show which boxes end the episode. They are the boxes that are
not on the way to the gem. This module finds the way backwards from the gem. A
lock needs a key of its colour. The player holds this key, or it lies loose, or
it is in a box, whose lock needs another key.
"""

from typing import NamedTuple

import numpy as np
from keras import ops

from keras_relational.environments.boxworld import BLANK
from keras_relational.environments.boxworld import EMPTY
from keras_relational.environments.boxworld import GEM
from keras_relational.environments.boxworld import PLAYER
from keras_relational.environments.colours import pack_pixels


class Picture(NamedTuple):
    """What a picture shows."""

    board: np.ndarray  # Colours (rows * columns,), without the player.
    inventory: np.ndarray  # Colours (2,).
    losing: np.ndarray  # Whether the box of a slot ends the episode.
    player: int  # The cell on which the player stands.
    # For each lock of the gem the slots and locks on the way, backwards.
    ways: list
    others: list  # The keys and locks of all other boxes.


def state_from_images(world, images):
    """Reads boards from pictures, so that they can be played on.

    This is the inverse of `render`. A picture, uint8 `(batch, rows, columns +
    1, 3)`, may show any position of a puzzle, drawn or painted by hand. A box
    that is not on the way to the gem ends the episode. The history of an
    episode is not shown: `steps` is 0, the seeds of the next episodes are 0, 1,
    2, …, and `level` counts what is still on the board.
    """
    images = np.asarray(ops.convert_to_numpy(images))
    pictures = [
        read_picture(pack_pixels(image), world.cells_of_slot)
        for image in images
    ]
    read = Picture(*zip(*pictures, strict=True))
    state = {
        "board": np.array(read.board, "int32"),
        "inventory": np.array(read.inventory, "int32"),
        "losing": np.array(read.losing, bool),
        "player": np.array(read.player, "int32"),
        "level": np.array([level_of(picture) for picture in pictures], "int32"),
        "steps": np.zeros(len(pictures), "int32"),
        "seed": np.arange(len(pictures), dtype="uint32"),
        "episode": np.zeros(len(pictures), "int32"),
    }
    return {name: ops.convert_to_tensor(x) for name, x in state.items()}


def level_of(picture):
    """The level of a board, in which a bridge counts if it still connects."""
    if len(picture.ways) == 1:
        # A branch begins at a key that is in no other distractor box.
        keys = [key for key, _ in picture.others]
        num_branches = sum(lock not in keys for _, lock in picture.others)
        return len(picture.ways[0]), num_branches, 0
    upper, lower = ([lock for _, lock in way] for way in picture.ways)
    length = max(len(upper), len(lower))
    for key, lock in picture.others:
        if lock in upper and key in lower:
            place = upper.index(lock) + 1, length + lower.index(key) + 1
            return length, *place
    return length, 0, 0


class _Item(NamedTuple):
    """A box, or a loose key, which has no locks."""

    slot: int
    key: int
    locks: tuple


def read_picture(picture, cells_of_slot):
    """Reads a board, its inventory included.

    `cells_of_slot` `(slots, 4)` are the cells of a slot's key and lock, and of
    the second key and lock below.
    """
    board, inventory = picture[:, :-1].ravel(), picture[:2, -1]
    (player,) = np.flatnonzero(board == PLAYER)
    board = np.where(board == PLAYER, BLANK, board)
    items = _items(board, cells_of_slot)
    (gem,) = [item for item in items if item.key == GEM]
    items = [item for item in items if item.key != GEM]
    held = inventory[inventory != EMPTY].tolist()
    ways: list[list[tuple[int, int]]] = []
    for lock in gem.locks:
        taken = {lock for way in ways for _, lock in way}
        (way,) = _ways(lock, items, held, taken)
        ways.append([(gem.slot, lock), *way])
    on_the_way = {slot for way in ways for slot, _ in way}
    others = [x for x in items if x.locks and x.slot not in on_the_way]
    losing = np.zeros(len(cells_of_slot), bool)
    losing[[item.slot for item in others]] = True
    return Picture(
        board,
        inventory,
        losing,
        player,
        ways,
        [(item.key, item.locks[0]) for item in others],
    )


def _items(board, cells_of_slot):
    """Reads the loose keys and boxes of all slots."""
    items = []
    for slot, cells in enumerate(cells_of_slot):
        # Cell 0, which is blank, stands for cells below the board.
        key, lock, _, second_lock = board[cells].tolist()
        if key != BLANK:
            locks = tuple(x for x in (lock, second_lock) if x != BLANK)
            items.append(_Item(slot, key, locks))
    return items


def _ways(colour, items, held, taken, seen=()):
    """Finds all ways to a key, each as the boxes to open, the last one first.

    A way through locks that were `taken` on the other way would be a bridge.
    """
    ways = [[] for held_colour in held if held_colour == colour]
    for item in items:
        if item.key != colour or item.slot in seen:
            continue
        if not item.locks:
            ways.append([])
        elif item.locks[0] not in taken:
            lock, seen_now = item.locks[0], (*seen, item.slot)
            ways += [
                [(item.slot, lock), *way]
                for way in _ways(lock, items, held, taken, seen_now)
            ]
    return ways
