"""A maze of rooms with an object to find, seen in part: BabyAI's GoToObjMaze.

The level of [Chevalier-Boisvert et al., 2018](
https://arxiv.org/abs/1810.08272), as [Goyal et al., 2020](
https://arxiv.org/abs/2006.16225), section 5 and appendix D, have it: rooms of 6
by 6 cells, 10 by 10 to test transfer, and an image of 5 by 5 cells. Its rules
are pure functions of tensors with one row an episode, the making of mazes
included. All of them compile.

Three by three rooms share their walls. Doors, in random walls and at random
places of these, are added until all rooms are joined. They are shut, and none
is locked. The agent starts anywhere, facing anywhere, and has found the object
when it faces it from the cell next to it. That is rewarded with 1 − 0.9 steps /
`max_episode_steps`, all else with nothing. With several objects, any that looks
like the one sought will do.

What the agent sees is turned so that it looks up from the middle of the lowest
row. It sees neither through walls nor through shut doors, by MiniGrid's rule.

Choices of ours, where BabyAI has it otherwise or the paper is silent:

- A cell is one pixel. What is grey is the maze: black if unseen, then, ever
  lighter, floor, wall, shut door and open door, which have no colours here. An
  object has one of six hues, pure for a key, pale for a ball, dark for a box.
- There is no text. The agent's own cell, where MiniGrid shows what it carries,
  shows the object it seeks.
- BabyAI's actions but for pick up, drop and done, which have no use here. Only
  doors can be toggled.
- No object is in front of a door, and no two touch, so that none is in the way:
  BabyAI draws a level anew if one is. All cells that are left are as likely.
"""

import numpy as np
from keras import ops

from keras_relational.counter_based_random import random_ranks
from keras_relational.counter_based_random import random_uniform
from keras_relational.environments.world import GREY
from keras_relational.environments.world import World
from keras_relational.environments.world import between
from keras_relational.environments.world import choose
from keras_relational.environments.world import packed
from keras_relational.environments.world import unpacked

ACTIONS = ("left", "right", "forward", "toggle")
DIRECTIONS = ("right", "down", "left", "up")
KINDS = ("key", "ball", "box")

UNSEEN, FLOOR, WALL, SHUT_DOOR, OPEN_DOOR = (
    grey * GREY for grey in (0, 64, 128, 192, 255)
)
NUM_HUES = 6
# Keys in all hues, then balls, then boxes.
OBJECTS = tuple(
    packed(hue / NUM_HUES, saturation, value)
    for saturation, value in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.5))
    for hue in range(NUM_HUES)
)
SIDE = 3  # rooms
NUM_ROOMS = SIDE**2
# Pairs of rooms with a wall in between: side by side, then one below the other.
WALLS = np.array(
    [(r, r + 1) for r in range(NUM_ROOMS) if (r + 1) % SIDE]
    + [(r, r + SIDE) for r in range(NUM_ROOMS - SIDE)]
)
VIEW = 5  # cells, the side of the image

# Row and column of each cell of the image, from the agent: the farther ahead
# the higher, and what is to the right is a quarter turn from what is ahead.
_AHEAD = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)], "int32")
_IN_VIEW = (
    np.arange(VIEW - 1, -1, -1)[:, None, None] * _AHEAD[:, None, None]
    + np.arange(-(VIEW // 2), VIEW // 2 + 1)[:, None]
    * np.roll(_AHEAD, -1, axis=0)[:, None, None]
).astype("int32")


def _num_doors():
    """The fewest doors between any two rooms, for each set of walls with doors.

    Returns:
        int32 array `(2**12, 9, 9)`, with `NUM_ROOMS` where there is no way.
    """
    sets = np.arange(2 ** len(WALLS))
    doors = np.full((len(sets), NUM_ROOMS, NUM_ROOMS), NUM_ROOMS, "int32")
    doors[:, range(NUM_ROOMS), range(NUM_ROOMS)] = 0
    for wall, (a, b) in enumerate(WALLS):
        doors[sets >> wall & 1 == 1, a, b] = 1
        doors[sets >> wall & 1 == 1, b, a] = 1
    for room in range(NUM_ROOMS):
        by_way_of_it = doors[:, :, [room]] + doors[:, [room], :]
        doors = np.minimum(doors, by_way_of_it)
    return doors


_NUM_DOORS = _num_doors()


class GotoObjectMaze(World):
    """A maze of three by three rooms, and an object to go to.

    A state has, beside what all have, `board` `(batch, side²)`, colours;
    `agent`, the cell it stands on; `direction` it faces, a place in
    `DIRECTIONS`; and `sought`, the colour of the object. `level` `(batch,
    1)` is the fewest doors between the agent and such an object.

    Args:
        room_size: Cells along a room, both walls included, at least 4; 6 in the
            paper, 10 in its test of transfer, 8 in BabyAI.
        num_objects: Number of objects, of which one is sought: 1 in
            GoToObjMaze, 18 in BabyAI's GoTo.
        max_episode_steps: Number of steps after which an episode is cut off; by
            default, as in BabyAI, the number of cells of all rooms, `9 *
            room_size**2`.

    Raises:
        ValueError: If the rooms are too small, for the objects or at all, or a
            number is not a positive integer.

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

    def __init__(self, room_size=6, num_objects=1, max_episode_steps=None):
        if not isinstance(room_size, int) or room_size < 4:
            raise ValueError(
                "Rooms need at least 4 cells a side, walls included, and an "
                f"integer of them. Received: room_size={room_size}"
            )
        # Of the floor, two cells by each door are not free, nor are five with
        # the agent, nor nine with each object.
        most = (room_size - 2) ** 2 - 3
        if not (isinstance(num_objects, int) and 1 <= num_objects <= most):
            raise ValueError(
                f"Rooms of {room_size} by {room_size} cells have place for 1 "
                f"to {most} objects. Received: num_objects={num_objects}"
            )
        if max_episode_steps is None:
            max_episode_steps = NUM_ROOMS * room_size**2
        super().__init__(max_episode_steps)
        self.room_size = room_size
        self.num_objects = num_objects
        self.side = SIDE * (room_size - 1) + 1
        self._cells = np.arange(self.side**2, dtype="int32")
        row, column = np.divmod(self._cells, self.side)
        is_floor = (row % (room_size - 1) > 0) & (column % (room_size - 1) > 0)
        self._floor = self._cells[is_floor]
        self._empty = np.where(is_floor, FLOOR, WALL).astype("int32")
        # Of each cell its room, which matters on the floor alone; and, where a
        # door can be, the wall, and the place in it, from 1 on.
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

    def step(self, state, actions):
        """One action in every episode.

        Args:
            state: As returned by `reset`.
            actions: Integers `(batch,)`, places in `ACTIONS`.

        Returns:
            The new state, rewards float32 `(batch,)`, and two boolean tensors
            `(batch,)`: whether the object is found, and whether the episode
            was cut off after `max_episode_steps`.

        Raises:
            ValueError: If an action is not a place in `ACTIONS`, or there is
                not one for each row. A compiled function cannot see that: in
                it, actions are cut to the first or last one.
        """
        actions = self._checked(state, actions)
        board, agent = state["board"], state["agent"]
        direction = (state["direction"] + choose(actions, (3, 1, 0, 0))) % 4
        ahead = agent + self._ahead(direction)
        tile = _tiles_at(board, ahead)
        moves = (tile == FLOOR) | (tile == OPEN_DOOR)
        moves = moves & (actions == ACTIONS.index("forward"))
        agent = ops.where(moves, ahead, agent)
        is_door = (tile == SHUT_DOOR) | (tile == OPEN_DOOR)
        toggles = is_door & (actions == ACTIONS.index("toggle"))
        here = toggles[:, None] & (self._cells == ahead[:, None])
        board = ops.where(here, SHUT_DOOR + OPEN_DOOR - board, board)
        found = _tiles_at(board, agent + self._ahead(direction))
        found = found == state["sought"]
        steps = state["steps"] + 1
        spent = ops.cast(steps, "float32") / self.max_episode_steps
        state = {
            **state,
            "board": board,
            "agent": agent,
            "direction": direction,
            "steps": steps,
        }
        reward = ops.where(found, 1 - 0.9 * spent, 0.0)
        return state, reward, found, ~found & (steps >= self.max_episode_steps)

    def render(self, state):
        """What the agent sees.

        Args:
            state: As returned by `reset`.

        Returns:
            uint8 tensor `(batch, 5, 5, 3)`.
        """
        agent, direction = state["agent"], state["direction"]
        cells = _IN_VIEW @ np.array([self.side, 1], "int32")
        cells = agent[:, None] + ops.take(
            cells.reshape(4, VIEW**2), direction, axis=0
        )
        # A cell outside the maze is behind a wall, whatever it is taken for.
        tiles = ops.take_along_axis(
            state["board"], ops.clip(cells, 0, self.side**2 - 1), axis=1
        )
        tiles = ops.reshape(tiles, (-1, VIEW, VIEW))
        seen = _seen((tiles != WALL) & (tiles != SHUT_DOOR))
        own = np.zeros((VIEW, VIEW), bool)
        own[-1, VIEW // 2] = True
        tiles = ops.where(seen, tiles, UNSEEN)
        tiles = ops.where(own, state["sought"][:, None, None], tiles)
        return unpacked(tiles)

    def _new(self, seed, episode):
        """A state with the maze that a seed and an episode stand for."""

        def uniform(draw, size):
            """Numbers `(batch, size)`, others for each of the draws."""
            draw, places = np.uint32(draw), np.arange(size, dtype="uint32")
            return random_uniform(seed[:, None], episode[:, None], draw, places)

        # Walls get doors in random order, until all rooms are joined. A set of
        # walls is an integer with a bit for each.
        ranks = random_ranks(uniform(0, len(WALLS)))
        bits = 2 ** np.arange(len(WALLS), dtype="int32")
        number = np.arange(1, len(WALLS) + 1, dtype="int32")[:, None]
        sets = ops.sum(ops.where(ranks[:, None] < number, bits, 0), axis=2)
        joined = ops.take(_NUM_DOORS.max(axis=(1, 2)) < NUM_ROOMS, sets)
        walls = ops.min(ops.where(joined, sets, 2 ** len(WALLS)), axis=1)
        places = between(uniform(1, len(WALLS)), 1, self.room_size - 2)
        places = ops.where(ops.bitwise_and(walls[:, None], bits) > 0, places, 0)
        is_door = ops.take(places, self._wall, axis=1) == self._place
        board = ops.where(is_door, SHUT_DOOR, self._empty)

        pose = uniform(2, 2)
        agent = between(pose[:, 0], 0, len(self._floor) - 1)
        agent = ops.take(self._floor, agent)
        free = (board == FLOOR) & ~self._beside(is_door)
        is_agent = self._cells == agent[:, None]
        free = free & ~is_agent & ~self._beside(is_agent)
        kinds = between(uniform(3, self.num_objects), 0, len(OBJECTS) - 1)
        objects = choose(kinds, OBJECTS)
        order = uniform(4, self.side**2)
        for i in range(self.num_objects):
            cell = ops.argmax(ops.where(free, order, -1.0), axis=1)
            is_object = self._cells == ops.cast(cell, "int32")[:, None]
            board = ops.where(is_object, objects[:, i, None], board)
            free = free & ~is_object & ~self._beside(is_object, corners=True)

        sought = objects[:, 0]
        room = walls * NUM_ROOMS + ops.take(self._room, agent)
        num_doors = ops.take(_NUM_DOORS.reshape(-1, NUM_ROOMS), room, axis=0)
        num_doors = ops.where(
            board == sought[:, None],
            ops.take(num_doors, self._room, axis=1),
            NUM_ROOMS,
        )
        return {
            "board": board,
            "agent": agent,
            "direction": between(pose[:, 1], 0, len(DIRECTIONS) - 1),
            "sought": sought,
            "steps": ops.zeros_like(episode),
            "level": ops.min(num_doors, axis=1, keepdims=True),
            "seed": seed,
            "episode": episode,
        }

    def _ahead(self, direction):
        """What is added to a cell to get the next one in a direction."""
        return choose(direction, (1, self.side, -1, -self.side))

    def _beside(self, where, corners=False):
        """The four neighbours of cells `(batch, side²)`, or all eight.

        None of the cells is at the edge: its neighbours are in the maze.
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
    """What the agent sees, given which cells one can see through.

    MiniGrid's rule. From the agent's row upwards, each cell that is seen and
    clear shows those beside it, these the next ones, and of the row above the
    cells over all of these.

    Args:
        clear: Booleans `(batch, 5, 5)`.

    Returns:
        Booleans of the same shape.
    """
    dark = ops.zeros_like(clear[:, 0, 0])
    row = [dark] * VIEW
    row[VIEW // 2] = ~dark
    rows = []
    for i in reversed(range(VIEW)):
        above = [dark] * VIEW
        to_the_right = [(j, j + 1) for j in range(VIEW - 1)]
        to_the_left = [(j, j - 1) for j in range(VIEW - 1, 0, -1)]
        for j, neighbour in to_the_right + to_the_left:
            shows = row[j] & clear[:, i, j]
            row[neighbour] = row[neighbour] | shows
            above[j] = above[j] | shows
            above[neighbour] = above[neighbour] | shows
        rows.append(ops.stack(row, axis=1))
        row = above
    return ops.stack(rows[::-1], axis=1)


def _tiles_at(board, cells):
    return ops.take_along_axis(board, cells[:, None], axis=1)[:, 0]
