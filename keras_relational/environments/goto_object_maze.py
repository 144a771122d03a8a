"""A maze of rooms with an object to find, seen in part: BabyAI's GoToObjMaze.

The level GoToObjMaze of [Chevalier-Boisvert et al.,
2018](https://arxiv.org/abs/1810.08272), as [Goyal et al.,
2020](https://arxiv.org/abs/2006.16225), section 5 and appendix D, use it: rooms
of 6 by 6 cells, rooms of 10 by 10 cells to test transfer, and an image of 5 by
5 cells. The rules are pure functions of tensors with one row for each episode.
Functions of the same kind make new mazes. All of them compile.

Three by three rooms share their walls. Random walls get a door at a random
place until all rooms are connected. Doors are shut at first and never locked.
The agent starts on a random cell in a random direction. It has found the object
when it stands next to it and faces it. The reward is then 1 − 0.9 steps /
`max_episode_steps`, and 0 at all other steps. If several objects look like the
sought one, any of them counts.

The image is turned so that the agent looks up from the middle of the lowest
row. The agent cannot see through walls and shut doors. Visibility follows the
rule of MiniGrid.

Some details are our choice, because BabyAI differs or the paper is silent:

- A cell is one pixel. The maze is grey: unseen cells are black, and floor,
  wall, shut door and open door are lighter in this order. Doors have no colours
  here. An object has one of six hues: a pure one for a key, a pale one for a
  ball, a dark one for a box.
- There is no text. The agent's own cell shows the object that it seeks. In
  MiniGrid it shows what the agent carries.
- The actions are those of BabyAI without pick up, drop and done, which have no
  use here. Only doors can be toggled.
- No object is in front of a door, and no two objects touch, so no object blocks
  the way. Where one does, BabyAI draws a new maze. All remaining cells are
  equally likely.
"""

import functools

import keras
import numpy as np
from keras import ops

from keras_relational.counter_based_random import random_ranks
from keras_relational.counter_based_random import random_uniform
from keras_relational.environments.array_functions import functions_for
from keras_relational.environments.batched_world import State
from keras_relational.environments.batched_world import World
from keras_relational.environments.batched_world import uniform_integers
from keras_relational.environments.colours import pack_hsv
from keras_relational.environments.colours import pack_rgb
from keras_relational.environments.colours import unpack_rgb
from keras_relational.validation import check_positive_integers

ACTIONS = ("left", "right", "forward", "toggle")
DIRECTIONS = ("right", "down", "left", "up")
KINDS = ("key", "ball", "box")

UNSEEN, FLOOR, WALL, SHUT_DOOR, OPEN_DOOR = (
    pack_rgb(grey, grey, grey) for grey in (0, 64, 128, 192, 255)
)
NUM_HUES = 6
# The colours of keys in all hues, then of balls, then of boxes.
OBJECTS = tuple(
    pack_hsv(hue / NUM_HUES, saturation, value)
    for saturation, value in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.5))
    for hue in range(NUM_HUES)
)
SIDE = 3  # Rooms along one side of the maze.
NUM_ROOMS = SIDE**2
# Pairs of rooms with a wall between them: first those in one row, then those in
# one column.
WALLS = np.array(
    [(r, r + 1) for r in range(NUM_ROOMS) if (r + 1) % SIDE]
    + [(r, r + SIDE) for r in range(NUM_ROOMS - SIDE)]
)
VIEW = 5  # Cells along one side of the image.

# The number of each random draw of a new maze.
_WALL_DRAW, _PLACE_DRAW, _POSE_DRAW, _OBJECT_DRAW, _CELL_DRAW = range(5)
# Row and column of each cell of the image relative to the agent, for each
# direction. A cell farther ahead is higher in the image. The direction to the
# right is a quarter turn from the direction ahead.
_AHEAD = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)], "int32")
_IN_VIEW = (
    np.arange(VIEW - 1, -1, -1)[:, None, None] * _AHEAD[:, None, None]
    + np.arange(-(VIEW // 2), VIEW // 2 + 1)[:, None]
    * np.roll(_AHEAD, -1, axis=0)[:, None, None]
).astype("int32")
# The agent's own cell of the image.
_OWN = np.arange(VIEW**2).reshape(VIEW, VIEW) == VIEW**2 - 1 - VIEW // 2
_BITS = 2 ** np.arange(VIEW, dtype="int32")
# The number of quarter turns to the right that each action makes.
_TURNS = np.array((3, 1, 0, 0), "int32")


@functools.cache
def _num_doors():
    """The fewest doors between two rooms by set of doors, `(2**12, 9, 9)`.

    It is `NUM_ROOMS` for rooms that are not connected.
    """
    sets = np.arange(2 ** len(WALLS))
    doors = np.full((len(sets), NUM_ROOMS, NUM_ROOMS), NUM_ROOMS, "int32")
    doors[:, range(NUM_ROOMS), range(NUM_ROOMS)] = 0
    for wall, (a, b) in enumerate(WALLS):
        doors[sets >> wall & 1 == 1, a, b] = 1
        doors[sets >> wall & 1 == 1, b, a] = 1
    for room in range(NUM_ROOMS):
        through_room = doors[:, :, [room]] + doors[:, [room], :]
        doors = np.minimum(doors, through_room)
    return doors


class GotoObjectMaze(World):
    """A maze of three by three rooms, and an object to go to.

    In addition to the arrays of every world, a state has

    - `board` `(batch, side²)`: colours;
    - `agent` `(batch,)`: the cell on which the agent stands;
    - `direction` `(batch,)`: the direction that it faces, an index into
      `DIRECTIONS`;
    - `sought` `(batch,)`: the colour of the object.

    `level` `(batch, 1)` is the number of doors between the agent and the
    nearest such object.

    Args:
        room_size: Integer, at least 4. Cells along one side of a room, both
            walls included: 6 in the paper, 10 in its test of transfer, 8 in
            BabyAI.
        num_objects: Positive integer, the number of objects, one of which is
            sought: 1 in GoToObjMaze, 18 in BabyAI's GoTo.
        max_episode_steps: Positive integer, the number of steps after which an
            episode is cut off. The default is the number of cells of all rooms,
            `9 * room_size**2`, as in BabyAI.

    Raises:
        ValueError: If a number is not a positive integer, or if the rooms have
            fewer than 4 cells a side or too few cells for the objects.

    Example:

    >>> maze = GotoObjectMaze()
    >>> state = maze.reset([0, 1, 2])
    >>> state, reward, terminated, truncated = maze.step(state, [0, 1, 2])
    >>> tuple(maze.render(state).shape)
    (3, 5, 5, 3)
    """

    actions = ACTIONS
    success_reward = 0.1
    image_shape = (VIEW, VIEW, 3)

    def __init__(
        self,
        room_size: int = 6,
        num_objects: int = 1,
        max_episode_steps: int | None = None,
    ):
        check_positive_integers(room_size=room_size, num_objects=num_objects)
        if room_size < 4:
            raise ValueError(
                "Rooms need at least 4 cells a side, walls included. Received: "
                f"room_size={room_size}"
            )
        # Cells that are not free: two beside each door, five around the agent,
        # and nine around each object.
        most = (room_size - 2) ** 2 - 3
        if num_objects > most:
            raise ValueError(
                f"Rooms of {room_size} by {room_size} cells have room for 1 "
                f"to {most} objects. Received: num_objects={num_objects}"
            )
        if max_episode_steps is None:
            max_episode_steps = NUM_ROOMS * room_size**2
        super().__init__(max_episode_steps)
        self.room_size = int(room_size)
        self.num_objects = int(num_objects)
        self.side = SIDE * (room_size - 1) + 1
        self._cells = np.arange(self.side**2, dtype="int32")
        row, column = np.divmod(self._cells, self.side)
        is_floor = (row % (room_size - 1) > 0) & (column % (room_size - 1) > 0)
        self._floor = self._cells[is_floor]
        # The number to add to a cell to get the next one in each direction, and
        # those that are seen.
        self._to_next = np.array((1, self.side, -1, -self.side), "int32")
        in_view = _IN_VIEW @ np.array([self.side, 1], "int32")
        self._in_view = in_view.reshape(len(DIRECTIONS), VIEW**2)
        self._empty = np.where(is_floor, FLOOR, WALL).astype("int32")
        # The room of each cell, which is used on the floor only. Where a door
        # can be, also the number of the wall, and the place in the wall, from 1
        # on.
        self._room = row // (room_size - 1) * SIDE + column // (room_size - 1)
        self._room = np.minimum(self._room, NUM_ROOMS - 1)
        self._wall = np.zeros_like(self._cells)
        self._place = np.full_like(self._cells, -1)
        places = np.arange(1, room_size - 1)
        for wall, (first, second) in enumerate(WALLS):
            corner = second // SIDE * self.side + second % SIDE
            along = self.side if second == first + 1 else 1
            cells = corner * (room_size - 1) + along * places
            self._wall[cells], self._place[cells] = wall, places

    def move(
        self, state: State, actions: keras.KerasTensor
    ) -> tuple[State, keras.KerasTensor, keras.KerasTensor]:
        """Turns or moves the agent, or toggles the door ahead of it."""
        board, agent = state["board"], state["agent"]
        xp = functions_for(board)
        turn = xp.take(_TURNS, actions)
        direction = (state["direction"] + turn) % 4
        ahead = agent + self._ahead(direction)
        tile = _tiles_at(board, ahead)
        moves = (tile == FLOOR) | (tile == OPEN_DOOR)
        moves = moves & (actions == ACTIONS.index("forward"))
        agent = xp.where(moves, ahead, agent)
        is_door = (tile == SHUT_DOOR) | (tile == OPEN_DOOR)
        toggles = is_door & (actions == ACTIONS.index("toggle"))
        here = toggles[:, None] & (self._cells == ahead[:, None])
        board = xp.where(here, SHUT_DOOR + OPEN_DOOR - board, board)
        found = _tiles_at(board, agent + self._ahead(direction))
        found = found == state["sought"]
        spent = xp.cast(state["steps"], "float32") / self.max_episode_steps
        state = {
            **state,
            "board": board,
            "agent": agent,
            "direction": direction,
        }
        reward = xp.where(found, 1 - 0.9 * spent, 0.0)
        return state, xp.cast(reward, "float32"), found

    def render(self, state: State) -> keras.KerasTensor:
        """Draws what the agent sees, 5 × 5 pixels, one a cell."""
        agent, direction = state["agent"], state["direction"]
        xp = functions_for(agent)
        cells = agent[:, None] + xp.take(self._in_view, direction, axis=0)
        # A cell outside the maze is behind a wall, so its tile is never seen.
        cells = cells % self.side**2
        tiles = xp.take_along_axis(state["board"], cells, axis=1)
        tiles = xp.reshape(tiles, (-1, VIEW, VIEW))
        seen = _seen((tiles != WALL) & (tiles != SHUT_DOOR))
        tiles = xp.where(seen, tiles, UNSEEN)
        tiles = xp.where(_OWN, state["sought"][:, None, None], tiles)
        return unpack_rgb(tiles)

    def new_episode(
        self, seed: keras.KerasTensor, episode: keras.KerasTensor
    ) -> State:
        """Makes the mazes of episodes."""

        def uniform(draw, size):
            """Random numbers `(batch, size)`, different for each draw."""
            draw, places = np.uint32(draw), np.arange(size, dtype="uint32")
            return random_uniform(seed[:, None], episode[:, None], draw, places)

        walls, is_door = self._doors(uniform)
        board = ops.where(is_door, SHUT_DOOR, self._empty)
        pose = uniform(_POSE_DRAW, 2)
        agent = uniform_integers(pose[:, 0], 0, len(self._floor) - 1)
        agent = ops.take(self._floor, agent)
        board, objects = self._with_objects(uniform, board, is_door, agent)
        sought = objects[:, 0]
        room = walls * NUM_ROOMS + ops.take(self._room, agent)
        num_doors = ops.take(_num_doors().reshape(-1, NUM_ROOMS), room, axis=0)
        num_doors = ops.where(
            board == sought[:, None],
            ops.take(num_doors, self._room, axis=1),
            NUM_ROOMS,
        )
        return {
            "board": board,
            "agent": agent,
            "direction": uniform_integers(pose[:, 1], 0, len(DIRECTIONS) - 1),
            "sought": sought,
            "steps": ops.zeros_like(episode),
            "level": ops.min(num_doors, axis=1, keepdims=True),
            "seed": seed,
            "episode": episode,
        }

    def _doors(self, uniform):
        """Adds doors to walls in random order until all rooms are connected.

        Returns the set of the walls with doors, an integer with a bit for each
        wall, and which cells are doors, booleans `(batch, side²)`.
        """
        ranks = random_ranks(uniform(_WALL_DRAW, len(WALLS)))
        bits = 2 ** np.arange(len(WALLS), dtype="int32")
        number = np.arange(1, len(WALLS) + 1, dtype="int32")[:, None]
        sets = ops.sum(ops.where(ranks[:, None] < number, bits, 0), axis=2)
        connected = ops.take(_num_doors().max(axis=(1, 2)) < NUM_ROOMS, sets)
        walls = ops.min(ops.where(connected, sets, 2 ** len(WALLS)), axis=1)
        places = uniform_integers(
            uniform(_PLACE_DRAW, len(WALLS)), 1, self.room_size - 2
        )
        places = ops.where(ops.bitwise_and(walls[:, None], bits) > 0, places, 0)
        return walls, ops.take(places, self._wall, axis=1) == self._place

    def _with_objects(self, uniform, board, is_door, agent):
        """Puts objects on free cells, and returns their colours as well."""
        is_agent = self._cells == agent[:, None]
        free = (board == FLOOR) & ~self._beside(is_door)
        free = free & ~is_agent & ~self._beside(is_agent)
        kinds = uniform_integers(
            uniform(_OBJECT_DRAW, self.num_objects), 0, len(OBJECTS) - 1
        )
        objects = ops.take(np.int32(OBJECTS), kinds)
        order = uniform(_CELL_DRAW, self.side**2)
        for i in range(self.num_objects):
            cell = ops.argmax(ops.where(free, order, -1.0), axis=1)
            is_object = self._cells == ops.cast(cell, "int32")[:, None]
            board = ops.where(is_object, objects[:, i, None], board)
            free = free & ~is_object & ~self._beside(is_object, corners=True)
        return board, objects

    def _ahead(self, direction):
        """The number to add to a cell to get the next cell in a direction."""
        return functions_for(direction).take(self._to_next, direction)

    def _beside(self, where, corners=False):
        """Marks the four neighbours of cells `(batch, side²)`, or all eight.

        No marked cell is at the edge, so all neighbours are in the maze.
        """
        shifts = [1, self.side]
        if corners:
            shifts += [self.side - 1, self.side + 1]
        beside = ops.zeros_like(where)
        for shift in shifts:
            beside = beside | ops.roll(where, shift, axis=1)
            beside = beside | ops.roll(where, -shift, axis=1)
        return beside


def _seen(clear):
    """Marks the cells `(batch, 5, 5)` that the agent sees, by MiniGrid's rule.

    It goes up row by row through `clear` cells, as `_lit_rows` tells.
    """
    xp = functions_for(clear)
    rows = xp.cast(xp.sum(xp.where(clear, _BITS, 0), axis=2), "int32")
    lit = xp.full_like(rows[:, 0], 2 ** (VIEW // 2))
    seen = []
    for i in reversed(range(VIEW)):
        place = rows[:, i] * 2**VIEW + lit
        seen.append(xp.take(_ROW, place))
        lit = xp.take(_ROW_ABOVE, place)
    seen = xp.stack(seen[::-1], axis=1)[..., None]
    return xp.bitwise_and(seen, _BITS) > 0


def _lit_rows():
    """The visible cells of a row, and those that it shows of the row above.

    A visible cell that can be seen through makes its neighbours in the row
    visible, and so on along the row, and three cells of the row above.

    Returns two int32 arrays, indexed by 32 c + l: c has a bit for each cell of
    the row that can be seen through, and l for each that the row below shows.
    The values have a bit for each visible cell of the two rows.
    """
    bit = np.arange(VIEW)[:, None]
    lit = list(np.tile(np.arange(2**VIEW), 2**VIEW) >> bit & 1)
    clear = np.repeat(np.arange(2**VIEW), 2**VIEW) >> bit & 1
    above = [np.zeros_like(clear[0])] * VIEW
    to_the_right = [(j, j + 1) for j in range(VIEW - 1)]
    to_the_left = [(j, j - 1) for j in range(VIEW - 1, 0, -1)]
    for j, neighbour in to_the_right + to_the_left:
        shows = lit[j] & clear[j]
        lit[neighbour] = lit[neighbour] | shows
        above[j] = above[j] | shows
        above[neighbour] = above[neighbour] | shows
    return tuple((_BITS @ np.array(x)).astype("int32") for x in (lit, above))


_ROW, _ROW_ABOVE = _lit_rows()


def _tiles_at(board, cells):
    xp = functions_for(board)
    return xp.take_along_axis(board, cells[:, None], axis=1)[:, 0]
