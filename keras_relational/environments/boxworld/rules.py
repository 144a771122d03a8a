"""The rules of BoxWorld, which both kinds of puzzle share."""

from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from keras_relational.counter_based_random import random_ranks
from keras_relational.counter_based_random import random_uniform
from keras_relational.environments.array_functions import functions_for
from keras_relational.environments.batched_world import State
from keras_relational.environments.batched_world import World
from keras_relational.environments.boxworld.tiles import BLANK
from keras_relational.environments.boxworld.tiles import EMPTY
from keras_relational.environments.boxworld.tiles import GEM
from keras_relational.environments.boxworld.tiles import NUM_HUES
from keras_relational.environments.boxworld.tiles import PLAYER
from keras_relational.environments.colours import unpack_rgb
from keras_relational.validation import check_positive_integers

ACTIONS = ("left", "up", "right", "down")
GEM_REWARD = 10.0

# Change of row and column for each action.
_DOWN, _RIGHT = np.array([(0, -1, 0, 1), (-1, 0, 1, 0)], "int32")
_COLOUR_DRAW = 0
# Number of counters that each draw may use.
_COUNTERS_PER_DRAW = 100


class Hues:
    """Hues, indices into `HUES`, in the order `ranks` `(batch, NUM_HUES)`."""

    def __init__(self, ranks: keras.KerasTensor):
        self.ranks = ranks
        self.taken = ops.zeros_like(ranks, dtype="bool")

    def draw(
        self, other_than: keras.KerasTensor | None = None
    ) -> keras.KerasTensor:
        """Draws the next hue in the order, int32 `(batch,)`.

        `other_than` holds hues `(batch,)` that are left for later.
        """
        out = self.taken
        if other_than is not None:
            out = out | self._is(other_than)
        hue = ops.argmin(ops.where(out, NUM_HUES, self.ranks), axis=1)
        return self.take(ops.cast(hue, "int32"))

    def take(self, hue: keras.KerasTensor) -> keras.KerasTensor:
        """Draws hues `(batch,)` of one's choice, and returns them."""
        self.taken = self.taken | self._is(hue)
        return hue

    def _is(self, hue):
        return np.arange(NUM_HUES, dtype="int32") == hue[:, None]


class Board(World):
    """A board with slots, and the rules of play.

    A slot is the place of one loose key or one box. Keys stand on rows 1, 3, 5,
    … and columns 1, 4, 7, …, and locks stand to their right, so no three
    coloured tiles touch. The gem of a bridge board has a second key and lock
    below the first ones, in the slot below.

    In addition to the arrays of every world, a state has

    - `board` `(batch, rows * columns)` and `inventory` `(batch, 2)`: colours;
    - `losing` `(batch, num_slots)`: `True` if the box in the slot ends the
      episode;
    - `player` `(batch,)`: the cell on which the player stands.

    `level` is `(batch, 3)`.

    `cells_of_slot` `(slots, 4)` holds the cells of a slot: those of its key and
    lock, and of the second key and lock below. A subclass defines the method
    `draw_puzzle`.
    """

    actions = ACTIONS
    success_reward = GEM_REWARD

    def __init__(self, rows: int, columns: int, max_episode_steps: int | None):
        check_positive_integers(rows=rows, columns=columns)
        if rows < 3 or columns < 3:
            raise ValueError(
                "A board needs at least 3 rows and 3 columns. Received: "
                f"rows={rows}, columns={columns}"
            )
        super().__init__(max_episode_steps)
        self.rows = int(rows)
        self.columns = int(columns)
        self.image_shape = (self.rows, self.columns + 1, 3)
        self.slot_rows = len(range(1, rows, 2))
        self.slot_columns = len(range(1, columns - 1, 3))
        self.num_slots = self.slot_rows * self.slot_columns
        self._cells = np.arange(rows * columns, dtype="int32")
        # The cell that an action leads to from each cell, action by action. At
        # the edge the player stays.
        here = self._cells[:, None]
        row, column = here // columns + _DOWN, here % columns + _RIGHT
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        targets = np.where(inside, row * columns + column, here)
        self._targets = targets.astype("int32").ravel()
        # The slot of each cell, or −1. The cells of each slot: of its key and
        # lock, and of the second key and lock below.
        self._slot_of_cell = np.full(rows * columns, -1, "int32")
        self.cells_of_slot = np.zeros((self.num_slots, 4), "int32")
        for slot in range(self.num_slots):
            row, column = divmod(slot, self.slot_columns)
            first = (1 + 2 * row) * columns + 1 + 3 * column
            cells = [first, first + 1, first + columns, first + columns + 1]
            for part, cell in enumerate(cells):
                # Cell 0, which is always blank, replaces a cell below the
                # board.
                if cell < rows * columns:
                    self.cells_of_slot[slot, part] = cell
                    self._slot_of_cell[cell] = slot

    def draw_puzzle(
        self, uniform: Callable, hues: "Hues", difficulty: keras.KerasTensor
    ) -> tuple[list[dict], keras.KerasTensor, tuple]:
        """Draws a puzzle in each row. A subclass defines it.

        `uniform` takes the number of a draw, 1 or more, and a size, and returns
        random numbers `(batch, size)`. Those that decide how many boxes there
        are are multiplied by the difficulty, from 0 to 1, `(batch,)`.

        Returns `(items, ranks, level)`. `items` is a list of dictionaries, one
        for each loose key or box. A dictionary has `present`, boolean
        `(batch,)`, and `losing`, a boolean that is `True` if the item ends the
        episode. It also has colours `(batch,)` under some of the names `key`,
        `lock`, `second_key` and `second_lock`. `ranks` `(batch, num_slots)`
        holds the index into `items` of the item in each slot. `level` holds
        three integer tensors `(batch,)`.
        """
        raise NotImplementedError

    def move(
        self, state: State, actions: keras.KerasTensor
    ) -> tuple[State, keras.KerasTensor, keras.KerasTensor]:
        """Moves the player, who may take a key, open a box, or do neither."""
        board, inventory = state["board"], state["inventory"]
        xp = functions_for(board)
        target = self._target(state["player"], actions)
        tile = xp.take_along_axis(board, target[:, None], axis=1)[:, 0]
        blank = tile == BLANK
        if isinstance(blank, np.ndarray) and blank.all():
            # Most moves of one player meet nothing.
            none = np.zeros_like(blank)
            return {**state, "player": target}, none.astype("float32"), none
        slot = xp.take(self._slot_of_cell, target)
        # Where there is no slot, the first is read, and not used.
        some_slot = xp.maximum(slot, 0)
        cells = xp.take(self.cells_of_slot, some_slot, axis=0)
        tiles = xp.take_along_axis(board, cells, axis=1)
        key, lock, second_key, second_lock = (tiles[:, i] for i in range(4))
        on_key = target == cells[:, 0]
        on_lock = (target == cells[:, 1]) | (target == cells[:, 3])
        loose = ~blank & on_key & (lock == BLANK)
        # A loose key goes to the first empty place of the inventory.
        fits, after = _opened(
            *(inventory, key, xp.where(loose, EMPTY, lock)),
            *(second_key, second_lock),
        )
        opens = ~blank & on_lock & fits
        takes = loose | opens
        inventory = xp.where(takes[:, None], after, inventory)
        cleared = takes[:, None] & (self._slot_of_cell == slot[:, None])
        losing = xp.take_along_axis(state["losing"], some_slot[:, None], axis=1)
        lost, won = opens & losing[:, 0], opens & (key == GEM)
        reward = xp.where(won, GEM_REWARD, xp.where(lost, -1.0, 1.0))
        state = {
            **state,
            "board": xp.where(cleared, BLANK, board),
            "inventory": inventory,
            "player": xp.where(blank | takes, target, state["player"]),
        }
        reward = xp.cast(xp.where(takes, reward, 0.0), "float32")
        return state, reward, won | lost

    def expert_moves(self, state: State) -> keras.KerasTensor:
        """The moves that shorten the way to the nearest of the `useful_tiles`.

        With d(c) for the number of moves over blank tiles from cell c to the
        nearest useful tile, a move from cell p to cell c is right if d(c) =
        d(p) − 1. A player that makes right moves only solves every puzzle,
        though not always in the fewest moves: the nearest key need not be the
        best first. In an episode that is over no move is right.

        The distances grow from all useful tiles at once. A row of the board,
        of at most 30 columns, is an integer with one bit a cell, so a step of
        the growth takes a few operations on integers. It stops where it meets
        the player. Returns booleans `(batch, 4)`, a column for each of
        `ACTIONS`.
        """
        if self.columns > 30:
            raise ValueError(
                "The expert plays on boards of at most 30 columns. Received: "
                f"columns={self.columns}"
            )
        board, player = state["board"], state["player"]
        free = self._bits(board == BLANK)
        actions = np.arange(len(ACTIONS), dtype="int32")
        targets = self._target(player[:, None], actions)
        moves = targets != player[:, None]
        here = self._cells == ops.where(moves, targets, -1)[..., None]
        beside = self._bits(ops.any(here, axis=1))

        def met(reached):
            return ops.any((reached & beside) != 0, axis=1, keepdims=True)

        def grow(step, reached):
            above = ops.pad(reached[:, 1:], ((0, 0), (0, 1)))
            below = ops.pad(reached[:, :-1], ((0, 0), (1, 0)))
            left, right = (
                ops.right_shift(reached, 1),
                ops.left_shift(reached, 1),
            )
            wider = reached | ((above | below | left | right) & free)
            return step + 1, ops.where(met(reached), reached, wider)

        def goes_on(step, reached):
            return (step < len(self._cells)) & ~ops.all(met(reached))

        first = self._bits(self.useful_tiles(state))
        _, reached = ops.while_loop(goes_on, grow, (np.int32(0), first))
        rows = ops.take_along_axis(reached, targets // self.columns, axis=1)
        bits = ops.right_shift(rows, targets % self.columns)
        return moves & (bits % 2 == 1)

    def useful_tiles(self, state: State) -> keras.KerasTensor:
        """The tiles that the player can take at once and does not lose by.

        They are the loose keys, and the locks of boxes that open and are on the
        way to the gem. Returns booleans `(batch, rows * columns)`.
        """
        key, lock, second_key, second_lock = self._parts_of_slots(state)
        fits, _ = _opened(
            state["inventory"][:, None], key, lock, second_key, second_lock
        )
        loose = (key != BLANK) & (lock == BLANK)
        opens = (lock != BLANK) & ~state["losing"] & fits
        none = ops.zeros_like(opens)
        second = opens & (second_lock != BLANK)
        return self._tiles_of_slots(loose, opens, none, second)

    def losing_tiles(self, state: State) -> keras.KerasTensor:
        """The locks that end the episode, `(batch, rows * columns)`."""
        _, lock, *_ = self._parts_of_slots(state)
        none = ops.zeros_like(state["losing"])
        locks = state["losing"] & (lock != BLANK)
        return self._tiles_of_slots(none, locks, none, none)

    def _parts_of_slots(self, state):
        """Colours of the keys, locks, second keys, and second locks."""
        parts = ops.take(state["board"], self.cells_of_slot.ravel(), axis=1)
        parts = ops.reshape(parts, (-1, self.num_slots, 4))
        return ops.unstack(parts, 4, axis=2)

    def _tiles_of_slots(self, *parts):
        """Booleans `(batch, slots)` of four parts as tiles of the board."""
        here = ops.stack(parts, axis=2)
        cells = self.cells_of_slot.ravel()
        is_cell = cells[:, None] == self._cells
        here = ops.reshape(ops.cast(here, "float32"), (-1, len(cells)))
        return ops.matmul(here, is_cell.astype("float32")) > 0

    def _bits(self, cells):
        """Booleans `(batch, cells)` as integers `(batch, rows)`."""
        cells = ops.reshape(cells, (-1, self.rows, self.columns))
        powers = np.int32(1) << np.arange(self.columns, dtype="int32")
        return ops.sum(ops.where(cells, powers, 0), axis=2)

    def render(self, state: State) -> keras.KerasTensor:
        """Draws a pixel a tile; the last column is the inventory."""
        xp = functions_for(state["board"])
        board = xp.where(
            self._cells == state["player"][:, None], PLAYER, state["board"]
        )
        board = xp.reshape(board, (-1, self.rows, self.columns))
        empty = xp.full_like(board[:, 2:, 0], EMPTY)
        inventory = xp.concatenate([state["inventory"], empty], axis=1)
        return unpack_rgb(
            xp.concatenate([board, inventory[:, :, None]], axis=2)
        )

    def new_episode(
        self,
        seed: keras.KerasTensor,
        episode: keras.KerasTensor,
        difficulty: keras.KerasTensor | float = 1.0,
    ) -> State:
        """Makes the puzzles of episodes.

        With a difficulty of 1 the numbers of boxes come from all of their
        ranges, and with 0 they are the smallest ones. In between they come from
        the lower part of the ranges. It is a number, or float32 `(batch,)`.
        """

        def uniform(draw, size=1):
            """Random numbers `(batch, size)`, different for each draw."""
            first = np.uint32(_COUNTERS_PER_DRAW * draw)
            counters = np.arange(size, dtype="uint32") + first
            return random_uniform(seed[:, None], episode[:, None], counters)

        hues = Hues(random_ranks(uniform(_COLOUR_DRAW, NUM_HUES)))
        difficulty = ops.broadcast_to(difficulty, ops.shape(episode))
        items, ranks, level = self.draw_puzzle(uniform, hues, difficulty)
        blank = ops.full_like(ranks[:, 0], BLANK)
        # The item with number r stands in the slot of rank r.
        parts = []
        for part in ("key", "lock", "second_key", "second_lock"):
            tiles = ops.full_like(ranks, BLANK)
            for rank, item in enumerate(items):
                tile = ops.where(item["present"], item.get(part, blank), BLANK)
                tiles = ops.where(ranks == rank, tile[:, None], tiles)
            parts.append(tiles)
        losing = ops.zeros_like(ranks, dtype="bool")
        for rank, item in enumerate(items):
            if item["losing"]:
                here = (ranks == rank) & item["present"][:, None]
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

    def _target(self, player, actions):
        """The cell that the player walks onto. At the edge the player stays."""
        place = player * len(ACTIONS) + actions
        return functions_for(place).take(self._targets, place)

    def _board(self, key, lock, second_key, second_lock):
        """Puts the tiles of each slot into cells `(batch, rows * columns)`."""
        blank = ops.full_like(key, BLANK)
        # A slot has 2 × 3 cells. Its key is in the middle of the upper row.
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


def _opened(inventory, key, lock, second_key, second_lock):
    """Tells whether all locks of a box open, and the inventory after it.

    The key of the box takes the place of the key that opened it.
    """
    xp = functions_for(inventory)
    has_first, after_first = _exchanged(inventory, lock, key)
    has_both, after_both = _exchanged(after_first, second_lock, second_key)
    one_lock = second_lock == BLANK
    after = xp.where(one_lock[..., None], after_first, after_both)
    return has_first & (one_lock | has_both), after


def _exchanged(inventory, old, new):
    """Tells whether a key is held, and replaces it in the inventory."""
    xp = functions_for(inventory)
    fits = inventory == old[..., None]
    first, second = fits[..., 0], fits[..., 1]
    place = xp.stack([first, second & ~first], axis=-1)
    return first | second, xp.where(place, new[..., None], inventory)
