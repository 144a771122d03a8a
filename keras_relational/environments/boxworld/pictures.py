"""Reads a board from its picture.

A picture does not show which boxes end the episode. They are the boxes that are
not on the way to the gem. This module finds the way backwards from the gem. A
lock needs a key of its colour. The player holds this key, or it lies loose, or
it is in a box, whose lock needs another key.
"""

import collections
from typing import NamedTuple

import numpy as np

from keras_relational.environments.boxworld.tiles import BLANK
from keras_relational.environments.boxworld.tiles import EMPTY
from keras_relational.environments.boxworld.tiles import GEM
from keras_relational.environments.boxworld.tiles import HUES
from keras_relational.environments.boxworld.tiles import PLAYER
from keras_relational.environments.colours import SHIFTS
from keras_relational.environments.colours import pack_pixels


class Picture(NamedTuple):
    """What a picture shows.

    Attributes:
        board: Colours `(rows * columns,)`, without the player.
        inventory: Colours `(2,)`.
        losing: Booleans `(slots,)`. `True` marks a slot whose box ends the
            episode.
        player: The cell on which the player stands.
        ways: A list for each lock of the gem: the slots and locks of the boxes
            on the way, from the gem backwards.
        others: The keys and locks of all other boxes.
    """

    board: np.ndarray
    inventory: np.ndarray
    losing: np.ndarray
    player: int
    ways: list
    others: list


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


class _Item(NamedTuple):
    """A box, or a loose key, which has no locks."""

    slot: int
    key: int
    locks: tuple


def read_picture(
    picture: np.ndarray, cells_of_slot: np.ndarray, num_gem_locks: int
) -> Picture:
    """Reads a board, its inventory included, or raises a `ValueError`.

    Args:
        picture: Colours `(rows, columns + 1)`.
        cells_of_slot: Integers `(slots, 4)`: the cells of a slot's key and
            lock, and of the second key and lock below.
        num_gem_locks: 1, or 2 for a gem with two locks.
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

    No way may lead through the locks that were `taken` on the other way, since
    that would be a bridge. `seen` holds the slots of the boxes so far.
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
