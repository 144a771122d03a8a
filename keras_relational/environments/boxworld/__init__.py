"""BoxWorld and bridge BoxWorld: keys, locked boxes, and a gem behind them.

The rules of [Zambaldi et al., 2019](https://arxiv.org/abs/1806.01830) and of
[Clift et al., 2019](https://arxiv.org/abs/1909.00668), section 3, as pure
functions of tensors with one row an episode, the making of puzzles included.
All of them compile.

A board is a grid of tiles. The player walks on blank ones, picks up a loose key
by walking onto it, and opens a box, a key with a lock to its right, by walking
onto the lock while holding a key of the lock's colour: that key is used up, the
box's key taken in its place. The gem lies in the last box. Where that has two
locks, with a gem beside each, both keys are used up and both gems taken.

Rewards: +1 for a loose key and for a box on the way to the gem, +10 for the
gem, −1 for a distractor box or a bridge. The last two end the episode.
"""

import itertools

import numpy as np
from keras import ops

from keras_relational.counter_based_random import random_ranks
from keras_relational.counter_based_random import random_uniform
from keras_relational.environments.boxworld.pictures import Tiles
from keras_relational.environments.boxworld.pictures import read_picture
from keras_relational.environments.world import GREY
from keras_relational.environments.world import World
from keras_relational.environments.world import between
from keras_relational.environments.world import choose
from keras_relational.environments.world import packed
from keras_relational.environments.world import unpacked

ACTIONS = ("left", "up", "right", "down")

BLANK, EMPTY, PLAYER, GEM = (grey * GREY for grey in (199, 10, 127, 255))
GEM_REWARD = 10.0
NUM_HUES = 20
HUES = tuple(packed(hue / NUM_HUES, 0.7, 0.8) for hue in range(NUM_HUES))


class _Boards(World):
    """What both kinds of puzzle share: slots for boxes, and the rules.

    A slot is the place of a loose key or a box: keys stand on rows 1, 3, 5, …
    and columns 1, 4, 7, …, locks to their right, so that no three coloured
    tiles touch. The gem of a bridge board has a second key and lock below.

    A state has, beside what all have, `board` `(batch, rows * columns)` and
    `inventory` `(batch, 2)`, colours; `losing` `(batch, slots)`, whether the
    box there ends the episode; `player`, the cell it stands on. `level`
    is `(batch, 3)`.
    """

    actions = ACTIONS
    success_reward = GEM_REWARD

    def __init__(self, rows, columns, max_episode_steps):
        if rows < 3 or columns < 3:
            raise ValueError(
                "A board needs at least 3 rows and 3 columns. Received: "
                f"rows={rows}, columns={columns}"
            )
        super().__init__(max_episode_steps)
        self.rows = rows
        self.columns = columns
        self.image_shape = (rows, columns + 1, 3)
        self.slot_rows = len(range(1, rows, 2))
        self.slot_columns = len(range(1, columns - 1, 3))
        self.num_slots = self.slot_rows * self.slot_columns
        # Of each cell, its slot, or −1; of each slot, the cells of its key,
        # lock, and those of a second key and lock below.
        self._slot_of_cell = np.full(rows * columns, -1, "int32")
        self._cells_of_slot = np.zeros((self.num_slots, 4), "int32")
        for slot in range(self.num_slots):
            row, column = divmod(slot, self.slot_columns)
            first = (1 + 2 * row) * columns + 1 + 3 * column
            cells = [first, first + 1, first + columns, first + columns + 1]
            for part, cell in enumerate(cells):
                # A cell below the board is replaced by cell 0: always blank.
                if cell < rows * columns:
                    self._cells_of_slot[slot, part] = cell
                    self._slot_of_cell[cell] = slot

    def step(self, state, actions):
        """One move in every episode.

        Args:
            state: As returned by `reset`.
            actions: Integers `(batch,)`, places in `ACTIONS`.

        Returns:
            The new state, rewards float32 `(batch,)`, and two boolean tensors
            `(batch,)`: whether the episode is over by its own rules, and
            whether it was cut off after `max_episode_steps`.

        Raises:
            ValueError: If an action is not a place in `ACTIONS`, or there is
                not one for each row. A compiled function cannot see that: in
                it, actions are cut to the first or last one.
        """
        actions = self._checked(state, actions)
        board, inventory = state["board"], state["inventory"]
        row = state["player"] // self.columns
        column = state["player"] % self.columns
        row = row + choose(actions, (0, -1, 0, 1))
        column = column + choose(actions, (-1, 0, 1, 0))
        inside = (
            (row >= 0)
            & (row < self.rows)
            & (column >= 0)
            & (column < self.columns)
        )
        target = ops.where(inside, row * self.columns + column, state["player"])
        slot = ops.take(self._slot_of_cell, target)
        cells = ops.take(self._cells_of_slot, ops.maximum(slot, 0), axis=0)
        there = ops.take_along_axis(
            board, ops.concatenate([target[:, None], cells], axis=1), axis=1
        )
        tile, key, lock, second_key, second_lock = ops.unstack(there, 5, axis=1)
        on_key = target == cells[:, 0]
        on_lock = (target == cells[:, 1]) | (target == cells[:, 3])
        free = tile == BLANK
        loose = ~free & on_key & (lock == BLANK)
        # A loose key goes to the first empty place, another to that of the key
        # that its lock was opened with.
        has_one, after_one = _exchanged(
            inventory, ops.where(loose, EMPTY, lock), key
        )
        has_both, after_both = _exchanged(after_one, second_lock, second_key)
        one_lock = second_lock == BLANK
        opens = ~free & on_lock & has_one & (one_lock | has_both)
        takes = loose | opens
        after = ops.where(one_lock[:, None], after_one, after_both)
        inventory = ops.where(takes[:, None], after, inventory)
        cleared = takes[:, None] & (self._slot_of_cell == slot[:, None])
        lost = ops.take_along_axis(
            state["losing"], ops.maximum(slot, 0)[:, None], axis=1
        )
        lost, won = opens & lost[:, 0], opens & (key == GEM)
        reward = ops.where(won, GEM_REWARD, ops.where(lost, -1.0, 1.0))
        terminated = won | lost
        steps = state["steps"] + 1
        truncated = ops.zeros_like(terminated)
        if self.max_episode_steps is not None:
            truncated = ~terminated & (steps >= self.max_episode_steps)
        state = {
            **state,
            "board": ops.where(cleared, BLANK, board),
            "inventory": inventory,
            "player": ops.where(free | takes, target, state["player"]),
            "steps": steps,
        }
        return state, ops.where(takes, reward, 0.0), terminated, truncated

    def render(self, state):
        """What the agent sees.

        Args:
            state: As returned by `reset`.

        Returns:
            uint8 tensor `(batch, rows, columns + 1, 3)`. The last column is the
            inventory, from the top.
        """
        cells = np.arange(self.rows * self.columns, dtype="int32")
        board = ops.where(
            cells == state["player"][:, None], PLAYER, state["board"]
        )
        board = ops.reshape(board, (-1, self.rows, self.columns))
        inventory = ops.pad(
            state["inventory"],
            ((0, 0), (0, self.rows - 2)),
            constant_values=EMPTY,
        )
        return unpacked(ops.concatenate([board, inventory[:, :, None]], axis=2))

    def state_from_images(self, images):
        """Boards as they were drawn, or painted by hand, to be played on.

        The inverse of `render`: a position of a puzzle, its first or a later
        one, from its picture alone. Boxes that are not on the way to the gem
        end the episode. What a picture does not tell begins anew: `steps` at 0,
        the episodes that follow are those of the seeds 0, 1, 2, …, and
        `level` counts what is still on the board.

        Args:
            images: uint8 array `(batch, rows, columns + 1, 3)`, as `render`
                returns it: one pixel a tile.

        Returns:
            A state, as `reset` returns it.

        Raises:
            ValueError: If an array is of another shape or type, or a picture is
                none of a board: it has other colours, more or fewer than one
                player or gem, a key or lock where none can be, or no way to
                its gem. So has one on which the episode is over.

        Example:

        >>> world = BoxWorld()
        >>> images = world.render(world.reset([0, 1, 2]))
        >>> state = world.state_from_images(images)
        >>> bool(np.all(world.render(state) == images))
        True
        """
        images = np.asarray(ops.convert_to_numpy(images))
        fits = images.shape[1:] == self.image_shape and len(images)
        if not fits or images.dtype != "uint8":
            raise ValueError(
                "Images of boards are uint8, of shape (batch, rows, columns + "
                f"1, 3), here (batch, {', '.join(map(str, self.image_shape))})."
                f" Received: {images.dtype}, of shape {images.shape}"
            )
        tiles = Tiles(BLANK, EMPTY, PLAYER, GEM, HUES)
        read = []
        for number, picture in enumerate(images.astype("int32")):
            try:
                board = read_picture(
                    picture @ np.int32([1, 256, 65536]),
                    self._cells_of_slot,
                    self._num_gem_locks,
                    tiles,
                )
            except ValueError as error:
                raise ValueError(
                    f"Image {number} is no board of {type(self).__name__} "
                    f"with {self.rows} rows and {self.columns} columns that "
                    f"can be played: {error}."
                ) from error
            read.append({**board, "level": self._type_of(**board)})
        types = dict.fromkeys(("board", "inventory", "player"), "int32")
        types |= {"losing": "bool", "level": "int32"}
        state = {
            name: np.array([board[name] for board in read], dtype)
            for name, dtype in types.items()
        }
        state |= {
            "steps": np.zeros(len(read), "int32"),
            "seed": np.arange(len(read), dtype="uint32"),
            "episode": np.zeros(len(read), "int32"),
        }
        return {name: ops.convert_to_tensor(x) for name, x in state.items()}

    def _new(self, seed, episode):
        """A state with the puzzle that a seed and an episode stand for."""

        def uniform(draw, size=1):
            """Numbers `(batch, size)`, others for each of the draws."""
            counters = np.arange(size, dtype="uint32") + np.uint32(100 * draw)
            return random_uniform(seed[:, None], episode[:, None], counters)

        hues = random_ranks(uniform(0, NUM_HUES))

        def colour(number):
            """Of the puzzle's colour of that number: no two are alike."""
            is_it = ops.cast(hues == number, "int32")
            return ops.sum(is_it * np.int32(HUES), axis=1)

        items, ranks, level = self._puzzle(uniform, colour)
        blank = ops.full_like(ranks[:, 0], BLANK)
        # The item of rank r stands in the slot of rank r.
        parts = []
        for part in ("key", "lock", "second_key", "second_lock"):
            tiles = ops.full_like(ranks, BLANK)
            for rank, item in enumerate(items):
                tile = ops.where(item["there"], item.get(part, blank), BLANK)
                tiles = ops.where(ranks == rank, tile[:, None], tiles)
            parts.append(tiles)
        losing = ops.zeros_like(ranks, dtype="bool")
        for rank, item in enumerate(items):
            if item["losing"]:
                here = (ranks == rank) & item["there"][:, None]
                losing = losing | here
        zeros = ops.zeros_like(episode)
        return {
            "board": self._board(*parts),
            "inventory": ops.full_like(ranks[:, :2], EMPTY),
            "losing": losing,
            "player": zeros,
            "steps": zeros,
            "level": ops.stack(level, axis=1),
            "seed": seed,
            "episode": episode,
        }

    def _board(self, key, lock, second_key, second_lock):
        """From the tiles in each slot to those in each cell."""
        blank = ops.full_like(key, BLANK)
        # A slot is 2 × 3 cells: its key is in the middle of the upper row.
        slots = ops.stack(
            [blank, key, lock, blank, second_key, second_lock], axis=2
        )
        slots = ops.reshape(
            slots, (-1, self.slot_rows, self.slot_columns, 2, 3)
        )
        board = ops.reshape(
            ops.transpose(slots, (0, 1, 3, 2, 4)),
            (-1, 2 * self.slot_rows, 3 * self.slot_columns),
        )
        below = self.rows - 1 - 2 * self.slot_rows
        right = self.columns - 3 * self.slot_columns
        board = ops.pad(
            board,
            ((0, 0), (1, max(below, 0)), (0, right)),
            constant_values=BLANK,
        )[:, : self.rows]
        return ops.reshape(board, (-1, self.rows * self.columns))

    def _check_capacity(self, num_items, num_slots, num_colours, **arguments):
        given = ", ".join(f"{k}={v}" for k, v in arguments.items())
        if num_items > num_slots:
            raise ValueError(
                f"A board of {self.rows} by {self.columns} has room for "
                f"{num_slots} loose keys and boxes, and {num_items} may be "
                f"needed. Received: {given}. Make the board larger or the "
                "puzzles smaller."
            )
        if num_colours > NUM_HUES:
            raise ValueError(
                f"There are {NUM_HUES} colours, and {num_colours} may be "
                f"needed. Received: {given}."
            )


class BoxWorld(_Boards):
    """BoxWorld: one path of boxes to the gem, and branches that lead nowhere.

    The loose key opens the first box of the path, each box holds the key of the
    next, and the last one holds the gem. A branch of distractor boxes starts at
    a random key of the path, and opening its first box ends the episode.
    `level` is the solution length, the number of branches, and 0.

    Args:
        rows: Number of rows, at least 3.
        columns: Number of columns, at least 3, without the inventory.
        solution_length: Smallest and largest number of boxes on the path, that
            of the gem included; each is as likely.
        num_distractors: Smallest and largest number of branches.
        distractor_length: Smallest and largest number of boxes of a branch.
        max_episode_steps: Number of steps after which an episode is cut off;
            by default never.

    Raises:
        ValueError: If the largest puzzle does not fit onto the board.

    Example:

    >>> world = BoxWorld(9, 9, solution_length=(1, 5), num_distractors=(0, 4))
    >>> state = world.reset([0, 1, 2])
    >>> state, reward, terminated, truncated = world.step(state, [2, 3, 3])
    >>> tuple(world.render(state).shape)
    (3, 9, 10, 3)
    """

    _num_gem_locks = 1

    def __init__(
        self,
        rows=9,
        columns=9,
        solution_length=(1, 5),
        num_distractors=(0, 4),
        distractor_length=(1, 1),
        max_episode_steps=None,
    ):
        super().__init__(rows, columns, max_episode_steps)
        _check_range("solution_length", solution_length, 1)
        _check_range("num_distractors", num_distractors, 0)
        _check_range("distractor_length", distractor_length, 1)
        self.solution_length = tuple(solution_length)
        self.num_distractors = tuple(num_distractors)
        self.distractor_length = tuple(distractor_length)
        num_boxes = self.num_distractors[1] * self.distractor_length[1]
        self._check_capacity(
            self.solution_length[1] + 1 + num_boxes,
            self.num_slots,
            self.solution_length[1] + num_boxes,
            solution_length=self.solution_length,
            num_distractors=self.num_distractors,
            distractor_length=self.distractor_length,
        )

    def _puzzle(self, uniform, colour):
        branches, boxes = self.num_distractors[1], self.distractor_length[1]
        sizes = uniform(1, 2)
        length = between(sizes[:, 0], *self.solution_length)
        num_distractors = between(sizes[:, 1], *self.num_distractors)
        path = [colour(i) for i in range(self.solution_length[1])]
        items = _path(path, length)
        items[0]["key"] = ops.full_like(length, GEM)
        if branches:
            starts = uniform(2, branches)
            lengths = uniform(3, branches)
        for branch in range(branches):
            start = between(starts[:, branch], 0, length - 1)
            last = between(lengths[:, branch], *self.distractor_length)
            lock = _select(path, start)
            for box in range(boxes):
                key = colour(len(path) + branch * boxes + box)
                there = (branch < num_distractors) & (box < last)
                items.append(_box(key, lock, there, losing=True))
                lock = key
        ranks = random_ranks(uniform(4, self.num_slots))
        level = (length, num_distractors, ops.zeros_like(length))
        return items, ranks, level

    def _type_of(self, ways, others, **_):
        """A branch begins at a key that is in none of the other boxes."""
        keys = [key for key, _ in others]
        return len(ways[0]), sum(lock not in keys for _, lock in others), 0


class BridgeBoxWorld(_Boards):
    """Bridge BoxWorld: two paths of boxes to a gem with two locks.

    Both paths, of one length, begin with a loose key, and the gem is taken with
    the last keys of both. A bridge is a box whose lock is of the colour of a
    key of the upper path, its key of that of a lock of the lower one; opening
    it ends the episode. `level` is (a, b, c) as in appendix F of Clift et
    al., 2019: the solution length a, and the bridge's lock 1 ≤ b ≤ a and key
    a + 1 ≤ c ≤ 2a, counted from the gem; b and c are 0 without a bridge. The
    gem is in none of the last row and column of slots.

    Args:
        rows: Number of rows, at least 4.
        columns: Number of columns, at least 6, without the inventory.
        solution_length: Smallest and largest number of boxes on each path, that
            of the gem included; each is as likely.
        bridge_probability: Share of the episodes with a bridge.
        max_episode_steps: Number of steps after which an episode is cut off;
            by default never.

    Raises:
        ValueError: If the largest puzzle does not fit onto the board.

    Example:

    >>> world = BridgeBoxWorld(max_episode_steps=120)
    >>> state = world.reset([0, 1, 2])
    >>> state, reward, terminated, truncated = world.step(state, [2, 3, 3])
    >>> tuple(world.render(state).shape)
    (3, 7, 10, 3)
    """

    _num_gem_locks = 2

    def __init__(
        self,
        rows=7,
        columns=9,
        solution_length=(1, 3),
        bridge_probability=0.5,
        max_episode_steps=None,
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
        self._check_capacity(
            2 * longest + 1 + (bridge_probability > 0),
            # The slot below the gem stays empty.
            self.num_slots - 1,
            2 * longest,
            solution_length=self.solution_length,
            bridge_probability=bridge_probability,
        )

    def _puzzle(self, uniform, colour):
        longest = self.solution_length[1]
        sizes = uniform(1, 5)
        length = between(sizes[:, 0], *self.solution_length)
        upper = [colour(i) for i in range(longest)]
        lower = [colour(longest + i) for i in range(longest)]
        gem, *items = _path(upper, length)
        last, *others = _path(lower, length)
        gem |= {"key": ops.full_like(length, GEM)}
        gem |= {"second_key": gem["key"], "second_lock": last["lock"]}
        items = [gem, *items, *others]
        start = between(sizes[:, 1], 0, length - 1)
        end = between(sizes[:, 2], 0, length - 1)
        bridge = sizes[:, 3] < self.bridge_probability
        if self.bridge_probability:
            key, lock = _select(lower, end), _select(upper, start)
            items.append(_box(key, lock, bridge, losing=True))
        # The gem is of rank 0, the slot below it of the last.
        inner = np.arange(self.num_slots).reshape(self.slot_rows, -1)[:-1, :-1]
        place = between(sizes[:, 4], 0, inner.size - 1)
        place = ops.take(inner.ravel().astype("int32"), place)[:, None]
        slots = np.arange(self.num_slots, dtype="int32")
        numbers = uniform(2, self.num_slots)
        numbers = ops.where(slots == place, -1.0, numbers)
        numbers = ops.where(slots == place + self.slot_columns, 1.0, numbers)
        zeros = ops.zeros_like(length)
        level = (
            length,
            ops.where(bridge, length - start, zeros),
            ops.where(bridge, 2 * length - end, zeros),
        )
        return items, random_ranks(numbers), level

    def _type_of(self, ways, others, **_):
        """A bridge that still leads from one path to the other counts."""
        upper, lower = ([lock for _, lock in way] for way in ways)
        length = max(len(upper), len(lower))
        for key, lock in others:
            if lock in upper and key in lower:
                bridge = upper.index(lock), length + lower.index(key)
                return length, bridge[0] + 1, bridge[1] + 1
        return length, 0, 0


def _exchanged(inventory, old, new):
    """Whether a key is held, and the inventory with another in its place."""
    fits = inventory == old[:, None]
    first = ops.stack([fits[:, 0], fits[:, 1] & ~fits[:, 0]], axis=1)
    return ops.any(fits, axis=1), ops.where(first, new[:, None], inventory)


def _path(colours, length):
    """The box with no key yet, at the end of a path, and what leads to it."""
    there = length > 0
    items = [
        _box(None, _select(colours, length - 1), there),
        {"key": colours[0], "there": there, "losing": False},
    ]
    for i, (lock, key) in enumerate(itertools.pairwise(colours)):
        items.append(_box(key, lock, i + 1 < length))
    return items


def _box(key, lock, there, losing=False):
    return {"key": key, "lock": lock, "there": there, "losing": losing}


def _select(tensors, index):
    """Of tensors `(batch,)`, in each row the one with that index."""
    return sum(
        ops.where(index == i, tensor, 0) for i, tensor in enumerate(tensors)
    )


def _check_range(name, value, least):
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    if (
        not is_pair
        or not all(isinstance(x, int) for x in value)
        or not least <= value[0] <= value[1]
    ):
        raise ValueError(
            f"`{name}` must be a smallest and a largest number, from {least} "
            f"on. Received: {name}={value}"
        )
