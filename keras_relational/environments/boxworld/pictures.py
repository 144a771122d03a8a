"""What a picture of a board says, and what it leaves out.

A picture does not say which boxes end the episode. Those are the ones that are
not on the way to the gem, which is found from its end: a lock needs the key of
its colour, which lies loose, is held, or is in a box, whose lock needs another.
"""

import collections
from typing import NamedTuple

import numpy as np


class Tiles(NamedTuple):
    """Colours that have a meaning of their own, and those of keys."""

    blank: int
    empty: int
    player: int
    gem: int
    hues: tuple


class _Item(NamedTuple):
    """A loose key, without a lock, or a box."""

    slot: int
    key: int
    locks: tuple


def read_picture(picture, cells_of_slot, num_gem_locks, tiles):
    """Reads a board, its inventory included.

    Args:
        picture: Colours `(rows, columns + 1)`.
        cells_of_slot: Integers `(slots, 4)`: the cells of a slot's key and
            lock, and of the second ones below.
        num_gem_locks: 1, or 2 for a gem with two locks.
        tiles: `Tiles`.

    Returns:
        Arrays `board` `(rows * columns,)`, `inventory` `(2,)`, `losing`
        `(slots,)`, the integer `player`, and `ways`: a list, for each lock of
        the gem, of the slots and locks of the boxes from the gem's on back; and
        `others`, a list of the keys and locks of all other boxes.

    Raises:
        ValueError: If it is no board, or one whose gem cannot be reached.
    """
    board, inventory = picture[:, :-1].ravel(), picture[:2, -1]
    (players,) = np.nonzero(board == tiles.player)
    if len(players) != 1:
        raise ValueError(f"it has {len(players)} players, and should have one")
    board = np.where(board == tiles.player, tiles.blank, board)
    if tiles.gem in inventory:
        raise ValueError("its gem has been taken, so the episode is over")
    for name, found, allowed in (
        ("board", board, (tiles.blank, tiles.gem)),
        ("inventory", inventory, (tiles.empty,)),
    ):
        wrong = np.setdiff1d(found, (*allowed, *tiles.hues))
        if wrong.size:
            colour = [int(wrong[0]) >> shift & 255 for shift in (0, 8, 16)]
            raise ValueError(f"no tile of its {name} has the colour {colour}")
    if (picture[2:, -1] != tiles.empty).any():
        raise ValueError("its inventory has more than two places")
    items = _items(board, cells_of_slot, picture.shape[1] - 1, tiles)
    gems = [item for item in items if item.key == tiles.gem]
    if [len(gem.locks) for gem in gems] != [num_gem_locks]:
        raise ValueError(
            f"it has {len(gems)} gems, with {[len(x.locks) for x in gems]} "
            f"locks, and should have one with {num_gem_locks}"
        )
    (gem,) = gems
    items.remove(gem)
    held = inventory[inventory != tiles.empty].tolist()
    num_free = len(held) + sum(not item.locks for item in items)
    if num_free != num_gem_locks:
        raise ValueError(
            f"{num_free} keys are held or lie loose, and should be "
            f"{num_gem_locks}: one for each lock of the gem"
        )
    keys = collections.Counter([*held, *(item.key for item in items)])
    # A bridge has the key of a box, or of what was a box, too.
    if sum(keys.values()) - len(keys) >= num_gem_locks:
        raise ValueError("it has too many keys of one colour")
    ways = []
    for lock in gem.locks:
        taken = {lock for way in ways for _, lock in way}
        found = _ways(lock, items, held, taken)
        if len(found) != 1:
            raise ValueError(
                f"there are {len(found)} ways to the gem's lock in slot "
                f"{gem.slot}, and should be one: it is no puzzle, or it is lost"
            )
        ways.append([(gem.slot, lock), *found[0]])
    on_the_way = {slot for way in ways for slot, _ in way}
    others = [x for x in items if x.locks and x.slot not in on_the_way]
    losing = np.zeros(len(cells_of_slot), bool)
    losing[[item.slot for item in others]] = True
    return {
        "board": board,
        "inventory": inventory,
        "losing": losing,
        "player": players[0],
        "ways": ways,
        "others": [(item.key, item.locks[0]) for item in others],
    }


def _items(board, cells_of_slot, columns, tiles):
    """The loose keys and boxes of all slots, if all that is there is one."""
    blank = tiles.blank
    # Cell 0 stands for those that would be below the board.
    inside = np.isin(np.arange(len(board)), cells_of_slot[cells_of_slot > 0])
    (wrong,) = np.nonzero((board != blank) & ~inside)
    if wrong.size:
        row, column = divmod(int(wrong[0]), columns)
        raise ValueError(f"no key or lock can be in row {row}, column {column}")
    items = []
    for slot, cells in enumerate(cells_of_slot):
        key, lock, second_key, second_lock = board[cells].tolist()
        row, column = divmod(int(cells[0]), columns)
        where = f"in row {row}, column {column}"
        if key == lock == second_key == second_lock == blank:
            continue
        if key == blank or tiles.gem in (lock, second_lock):
            raise ValueError(f"the key {where} is missing, or a lock is a gem")
        if key == tiles.gem and lock == blank:
            raise ValueError(f"the gem {where} has no lock")
        locks = tuple(x for x in (lock, second_lock) if x != blank)
        is_second = key == second_key == tiles.gem and len(locks) == 2
        if not (is_second or second_key == second_lock == blank):
            raise ValueError(f"what is below the key {where} is no second gem")
        items.append(_Item(slot, key, locks))
    return items


def _ways(colour, items, held, taken, seen=()):
    """All ways to a key: the boxes to be opened, the last one first.

    Args:
        colour: Of the key.
        items: All but the gem.
        held: Colours of the keys that are held.
        taken: Colours of the locks of the other way, which none may lead
            through: that would be a bridge.
        seen: Slots of the boxes so far.
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
