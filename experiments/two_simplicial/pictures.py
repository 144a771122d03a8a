"""Reads a board from its picture.

A picture does not show which boxes end the episode. They are the boxes that are
not on the way to the gem. This module finds the way backwards from the gem. A
lock needs a key of its colour. The player holds this key, or it lies loose, or
it is in a box, whose lock needs another key.
"""

import collections
from typing import NamedTuple

import numpy as np
from keras import ops

from keras_relational.environments.boxworld import BLANK
from keras_relational.environments.boxworld import EMPTY
from keras_relational.environments.boxworld import GEM
from keras_relational.environments.boxworld import HUES
from keras_relational.environments.boxworld import PLAYER
from keras_relational.environments.colours import SHIFTS
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
    fits = images.shape[1:] == world.image_shape and len(images)
    if not fits or images.dtype != "uint8":
        raise ValueError(
            "Images of boards must be uint8, of shape (batch, rows, columns + "
            f"1, 3), here (batch, {world.rows}, {world.columns + 1}, 3). "
            f"Received: {images.dtype}, of shape {images.shape}"
        )
    pictures = []
    for number, image in enumerate(images):
        try:
            picture = read_picture(
                pack_pixels(image), world.cells_of_slot, world.num_gem_locks
            )
        except ValueError as error:
            raise ValueError(
                f"Image {number} is no board of {type(world).__name__} with "
                f"{world.rows} rows and {world.columns} columns that can be "
                f"played: {error}."
            ) from error
        pictures.append(picture)
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


def read_picture(
    picture: np.ndarray, cells_of_slot: np.ndarray, num_gem_locks: int
) -> Picture:
    """Reads a board, its inventory included, or raises a `ValueError`.

    `cells_of_slot` `(slots, 4)` are the cells of a slot's key and lock, and of
    the second key and lock below.
    """
    board, inventory = picture[:, :-1].ravel(), picture[:2, -1]
    (players,) = np.nonzero(board == PLAYER)
    if len(players) != 1:
        raise ValueError(f"it has {len(players)} players, and should have one")
    board = np.where(board == PLAYER, BLANK, board)
    _check_colours(board, inventory)
    if (picture[2:, -1] != EMPTY).any():
        raise ValueError("its inventory has more than two places")
    items = _items(board, cells_of_slot, picture.shape[1] - 1)
    gem, items = _gem_and_others(items, num_gem_locks)
    held = inventory[inventory != EMPTY].tolist()
    _check_keys(items, held, num_gem_locks)
    ways: list[list[tuple[int, int]]] = []
    for lock in gem.locks:
        taken = {lock for way in ways for _, lock in way}
        found = _ways(lock, items, held, taken)
        if len(found) != 1:
            raise ValueError(
                f"there are {len(found)} ways to the gem's lock in slot "
                f"{gem.slot}, and there should be one: the picture shows no "
                "puzzle, or the puzzle is lost"
            )
        ways.append([(gem.slot, lock), *found[0]])
    on_the_way = {slot for way in ways for slot, _ in way}
    others = [x for x in items if x.locks and x.slot not in on_the_way]
    losing = np.zeros(len(cells_of_slot), bool)
    losing[[item.slot for item in others]] = True
    return Picture(
        board,
        inventory,
        losing,
        players[0],
        ways,
        [(item.key, item.locks[0]) for item in others],
    )


def _check_colours(board, inventory):
    if GEM in inventory:
        raise ValueError("its gem has been taken, so the episode is over")
    for name, found, allowed in (
        ("board", board, (BLANK, GEM)),
        ("inventory", inventory, (EMPTY,)),
    ):
        wrong = np.setdiff1d(found, (*allowed, *HUES))
        if wrong.size:
            colour = [int(wrong[0]) >> shift & 255 for shift in SHIFTS]
            raise ValueError(f"no tile of its {name} has the colour {colour}")


def _gem_and_others(items, num_gem_locks):
    gems = [item for item in items if item.key == GEM]
    if [len(gem.locks) for gem in gems] != [num_gem_locks]:
        raise ValueError(
            f"it has {len(gems)} gems, with {[len(x.locks) for x in gems]} "
            f"locks, and should have one with {num_gem_locks}"
        )
    return gems[0], [item for item in items if item.key != GEM]


def _check_keys(items, held, num_gem_locks):
    """Checks that the number of keys fits the number of paths."""
    num_free = len(held) + sum(not item.locks for item in items)
    if num_free != num_gem_locks:
        raise ValueError(
            f"{num_free} keys are held or lie loose, and should be "
            f"{num_gem_locks}: one for each lock of the gem"
        )
    keys = collections.Counter([*held, *(item.key for item in items)])
    # A bridge has the same key as one box, which may be open by now.
    if sum(keys.values()) - len(keys) >= num_gem_locks:
        raise ValueError("it has too many keys of one colour")


def _items(board, cells_of_slot, columns):
    """Reads the loose keys and boxes of all slots."""
    # Cell 0 stands for cells below the board.
    inside = np.isin(np.arange(len(board)), cells_of_slot[cells_of_slot > 0])
    (wrong,) = np.nonzero((board != BLANK) & ~inside)
    if wrong.size:
        row, column = divmod(int(wrong[0]), columns)
        raise ValueError(f"no key or lock can be in row {row}, column {column}")
    items = []
    for slot, cells in enumerate(cells_of_slot):
        key, lock, second_key, second_lock = board[cells].tolist()
        row, column = divmod(int(cells[0]), columns)
        where = f"in row {row}, column {column}"
        if key == lock == second_key == second_lock == BLANK:
            continue
        if key == BLANK or GEM in (lock, second_lock):
            raise ValueError(f"the key {where} is missing, or a lock is a gem")
        if key == GEM and lock == BLANK:
            raise ValueError(f"the gem {where} has no lock")
        locks = tuple(x for x in (lock, second_lock) if x != BLANK)
        is_second = key == second_key == GEM and len(locks) == 2
        if not (is_second or second_key == second_lock == BLANK):
            raise ValueError(f"the tile below the key {where} is no second gem")
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
