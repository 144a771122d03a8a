"""New puzzles of BoxWorld and of bridge BoxWorld."""

import itertools
from collections.abc import Callable
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_relational.counter_based_random import random_ranks
from keras_relational.environments.batched_world import uniform_integers
from keras_relational.environments.boxworld.rules import Board
from keras_relational.environments.boxworld.rules import Hues
from keras_relational.environments.boxworld.tiles import GEM
from keras_relational.environments.boxworld.tiles import HUES
from keras_relational.environments.boxworld.tiles import NUM_HUES
from keras_relational.validation import check_choice

KEY_LOCK_PAIRS = ("all", "seen", "withheld")


class BoxWorld(Board):
    """BoxWorld: one path of boxes to the gem, and branches that lead nowhere.

    The loose key opens the first box of the path, each box holds the key of the
    next box, and the last box holds the gem. A branch of distractor boxes
    starts at a random key of the path. Opening its first box ends the episode.
    `level` is the solution length, the number of branches, and 0.

    Args:
        rows: Integer, at least 3. Number of rows.
        columns: Integer, at least 3. Number of columns without the inventory.
        solution_length: Two integers, the smallest and the largest number of
            boxes on the path, the box of the gem included. All lengths are
            equally likely.
        num_distractors: Two integers, the smallest and the largest number of
            branches.
        distractor_length: Two integers, the smallest and the largest number of
            boxes of a branch.
        max_episode_steps: Positive integer, the number of steps after which an
            episode is cut off. By default episodes are never cut off.
        key_lock_pairs: Which colours the lock of a box and the key in it may
            have, to test an agent on pairs that it has not seen. For each
            colour of a lock one colour of keys is withheld, seven hues further.
            `"all"`: any two colours. `"seen"`: no withheld pair. `"withheld"`:
            every box on the path to the gem is a withheld pair, and no box of a
            branch is.

    Raises:
        ValueError: If a number is out of its range, or the largest puzzle does
            not fit onto the board.

    Example:

    >>> world = BoxWorld(9, 9, solution_length=(1, 5), num_distractors=(0, 4))
    >>> state = world.reset([0, 1, 2])
    >>> state, reward, terminated, truncated = world.step(state, [2, 3, 3])
    >>> tuple(world.render(state).shape)
    (3, 9, 10, 3)
    """

    def __init__(
        self,
        rows: int = 9,
        columns: int = 9,
        solution_length: Sequence[int] = (1, 5),
        num_distractors: Sequence[int] = (0, 4),
        distractor_length: Sequence[int] = (1, 1),
        max_episode_steps: int | None = None,
        key_lock_pairs: str = "all",
    ):
        super().__init__(rows, columns, max_episode_steps)
        check_choice("key_lock_pairs", key_lock_pairs, KEY_LOCK_PAIRS)
        _check_range("solution_length", solution_length, 1)
        _check_range("num_distractors", num_distractors, 0)
        _check_range("distractor_length", distractor_length, 1)
        self.solution_length = tuple(solution_length)
        self.num_distractors = tuple(num_distractors)
        self.distractor_length = tuple(distractor_length)
        self.key_lock_pairs = key_lock_pairs
        num_boxes = self.num_distractors[1] * self.distractor_length[1]
        _check_capacity(
            self,
            self.solution_length[1] + 1 + num_boxes,
            self.num_slots,
            # One more, if the next hue may be one that must be left out.
            self.solution_length[1] + num_boxes + (key_lock_pairs != "all"),
            solution_length=self.solution_length,
            num_distractors=self.num_distractors,
            distractor_length=self.distractor_length,
        )

    def draw_puzzle(
        self, uniform: Callable, hues: Hues, difficulty: keras.KerasTensor
    ) -> tuple[list[dict], keras.KerasTensor, tuple]:
        """Draws a path and branches, as `Board.draw_puzzle` describes it."""
        size_draw, start_draw, length_draw, slot_draw = 1, 2, 3, 4
        branches, boxes = self.num_distractors[1], self.distractor_length[1]
        sizes = uniform(size_draw, 2) * difficulty[:, None]
        length = uniform_integers(sizes[:, 0], *self.solution_length)
        num_distractors = uniform_integers(sizes[:, 1], *self.num_distractors)
        path = self._draw_path(hues)
        items = _path(path, length)
        items[0]["key"] = ops.full_like(length, GEM)
        if branches:
            starts = uniform(start_draw, branches)
            lengths = uniform(length_draw, branches)
        for branch in range(branches):
            start = uniform_integers(starts[:, branch], 0, length - 1)
            last = uniform_integers(lengths[:, branch], *self.distractor_length)
            lock = _select(path, start)
            for box in range(boxes):
                key = hues.draw(self._avoided(lock))
                present = (branch < num_distractors) & (box < last)
                items.append(_box(key, lock, present, losing=True))
                lock = key
        ranks = random_ranks(uniform(slot_draw, self.num_slots))
        level = (length, num_distractors, ops.zeros_like(length))
        return items, ranks, level

    def _draw_path(self, hues):
        """The hues of the locks on the path, the lock of the gem last."""
        path = [hues.draw()]
        for _ in range(1, self.solution_length[1]):
            if self.key_lock_pairs == "withheld":
                path.append(hues.take(_withheld(path[-1])))
            else:
                path.append(hues.draw(self._avoided(path[-1])))
        return path

    def _avoided(self, lock):
        """The hue of keys that may not be in a box with this hue of lock."""
        return None if self.key_lock_pairs == "all" else _withheld(lock)


class BridgeBoxWorld(Board):
    """Bridge BoxWorld: two paths of boxes to a gem with two locks.

    Both paths have the same length and begin with a loose key. The last keys of
    both paths open the box of the gem. A bridge is a box between the paths: its
    lock has the colour of a key of the upper path, and its key has the colour
    of a lock of the lower path. Opening it ends the episode. The gem is never
    in the last row or the last column of slots.

    The player may hold a key of each path. The key of a box takes the place of
    the key that opened it. In the authors' program it becomes the last one of
    the inventory.

    `level` is (a, b, c) as in appendix F of Clift et al., 2019: the solution
    length a; the place of the bridge's lock, 1 ≤ b ≤ a, counted from the gem;
    and the place of its key, a + 1 ≤ c ≤ 2a, also counted from the gem. Without
    a bridge b and c are 0.

    Args:
        rows: Integer, at least 4. Number of rows.
        columns: Integer, at least 6. Number of columns without the inventory.
        solution_length: Two integers, the smallest and the largest number of
            boxes on each path, the box of the gem included. All lengths are
            equally likely.
        bridge_probability: Number from 0 to 1, the share of the episodes with a
            bridge.
        max_episode_steps: Positive integer, the number of steps after which an
            episode is cut off. By default episodes are never cut off.

    Raises:
        ValueError: If a number is out of its range, or the largest puzzle does
            not fit onto the board.

    Example:

    >>> world = BridgeBoxWorld(max_episode_steps=120)
    >>> state = world.reset([0, 1, 2])
    >>> state, reward, terminated, truncated = world.step(state, [2, 3, 3])
    >>> tuple(world.render(state).shape)
    (3, 7, 10, 3)
    """

    def __init__(
        self,
        rows: int = 7,
        columns: int = 9,
        solution_length: Sequence[int] = (1, 3),
        bridge_probability: float = 0.5,
        max_episode_steps: int | None = None,
    ):
        super().__init__(rows, columns, max_episode_steps)
        _check_range("solution_length", solution_length, 1)
        if not 0 <= bridge_probability <= 1:
            raise ValueError(
                "`bridge_probability` must be from 0 to 1. Received: "
                f"bridge_probability={bridge_probability}"
            )
        self.solution_length = tuple(solution_length)
        self.bridge_probability = bridge_probability
        if self.slot_rows < 2 or self.slot_columns < 2:
            raise ValueError(
                "A bridge board needs at least 4 rows and 6 columns. Received: "
                f"rows={rows}, columns={columns}"
            )
        longest = self.solution_length[1]
        _check_capacity(
            self,
            2 * longest + 1 + (bridge_probability > 0),
            # The slot below the gem stays empty.
            self.num_slots - 1,
            2 * longest,
            solution_length=self.solution_length,
            bridge_probability=bridge_probability,
        )

    def draw_puzzle(
        self, uniform: Callable, hues: Hues, difficulty: keras.KerasTensor
    ) -> tuple[list[dict], keras.KerasTensor, tuple]:
        """Draws two paths and a bridge, as `Board.draw_puzzle` describes it."""
        size_draw, slot_draw = 1, 2
        longest = self.solution_length[1]
        sizes = uniform(size_draw, 5)
        length = uniform_integers(
            sizes[:, 0] * difficulty, *self.solution_length
        )
        upper = [hues.draw() for _ in range(longest)]
        lower = [hues.draw() for _ in range(longest)]
        gem, *items = _path(upper, length)
        last, *others = _path(lower, length)
        gem |= {"key": ops.full_like(length, GEM)}
        gem |= {"second_key": gem["key"], "second_lock": last["lock"]}
        items = [gem, *items, *others]
        start = uniform_integers(sizes[:, 1], 0, length - 1)
        end = uniform_integers(sizes[:, 2], 0, length - 1)
        bridge = sizes[:, 3] < self.bridge_probability
        if self.bridge_probability:
            key, lock = _select(lower, end), _select(upper, start)
            items.append(_box(key, lock, bridge, losing=True))
        # The slot of the gem gets rank 0, and the slot below it the last rank.
        inner = np.arange(self.num_slots).reshape(self.slot_rows, -1)[:-1, :-1]
        place = uniform_integers(sizes[:, 4], 0, inner.size - 1)
        place = ops.take(inner.ravel().astype("int32"), place)[:, None]
        slots = np.arange(self.num_slots, dtype="int32")
        numbers = uniform(slot_draw, self.num_slots)
        numbers = ops.where(slots == place, -1.0, numbers)
        numbers = ops.where(slots == place + self.slot_columns, 1.0, numbers)
        zeros = ops.zeros_like(length)
        level = (
            length,
            ops.where(bridge, length - start, zeros),
            ops.where(bridge, 2 * length - end, zeros),
        )
        return items, random_ranks(numbers), level


def _path(hues, length):
    """The boxes of a path, backwards from the gem, and its loose key.

    The first box has no key yet: the caller puts the gem into it.
    """
    present = length > 0
    items = [
        _box(None, _select(hues, length - 1), present),
        {"key": _colour(hues[0]), "present": present, "losing": False},
    ]
    for i, (lock, key) in enumerate(itertools.pairwise(hues)):
        items.append(_box(key, lock, i + 1 < length))
    return items


def _box(key, lock, present, losing=False):
    colours = {"key": None if key is None else _colour(key)}
    colours["lock"] = _colour(lock)
    return {**colours, "present": present, "losing": losing}


def _withheld(hue):
    return (hue + 7) % NUM_HUES


def _colour(hue):
    return ops.take(np.array(HUES, "int32"), hue)


def _select(tensors, index):
    """Selects in each row the tensor `(batch,)` with that index."""
    return sum(
        ops.where(index == i, tensor, 0) for i, tensor in enumerate(tensors)
    )


def _check_range(name, value, least):
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    if (
        not is_pair
        or not all(isinstance(x, int | np.integer) for x in value)
        or not least <= value[0] <= value[1]
    ):
        raise ValueError(
            f"`{name}` must be a smallest and a largest number, from {least} "
            f"on. Received: {name}={value}"
        )


def _check_capacity(board, num_items, num_slots, num_colours, **arguments):
    given = ", ".join(f"{k}={v}" for k, v in arguments.items())
    if num_items > num_slots:
        raise ValueError(
            f"A board of {board.rows} by {board.columns} has room for "
            f"{num_slots} loose keys and boxes, and {num_items} may be needed. "
            f"Received: {given}. Make the board larger or the puzzles smaller."
        )
    if num_colours > NUM_HUES:
        raise ValueError(
            f"There are {NUM_HUES} colours, and {num_colours} may be needed. "
            f"Received: {given}. Make the puzzles smaller."
        )
