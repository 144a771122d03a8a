"""The rules of both worlds once more, in plain Python.

They are written from the papers and from MiniGrid, not from the tensors.
BoxWorld: a board is a dictionary from `(row, column)` to the colour of the tile
there, and what a tile is follows from its neighbours. The maze: cells are
`(row, column)`, and a board is an array `(side, side, 3)` of colours. Its
actions are left, right, forward, toggle, and its directions right, down, left,
up.
"""

import collections
import itertools

import numpy as np
from keras import ops

MOVES = {0: (0, -1), 1: (-1, 0), 2: (0, 1), 3: (1, 0)}
GEM, BLANK, EMPTY, PLAYER = (255,) * 3, (199,) * 3, (10,) * 3, (127,) * 3


class PythonBoxWorld:
    """One episode, read off its first image.

    Args:
        image: `(rows, columns + 1, 3)`.
        losing: Set of the cells of locks that end the episode.
    """

    def __init__(self, image, losing):
        self.rows, self.columns = image.shape[0], image.shape[1] - 1
        self.tiles = {}
        for row, column in itertools.product(
            range(self.rows), range(self.columns)
        ):
            colour = tuple(int(x) for x in image[row, column])
            if colour == PLAYER:
                self.player = (row, column)
            elif colour != BLANK:
                self.tiles[row, column] = colour
        self.losing = losing
        self.inventory = [EMPTY, EMPTY]

    def is_lock(self, cell):
        row, column = cell
        return cell in self.tiles and (row, column - 1) in self.tiles

    def is_loose_key(self, cell):
        row, column = cell
        return (
            cell in self.tiles
            and (row, column + 1) not in self.tiles
            and not self.is_lock(cell)
        )

    def box_of(self, lock):
        """Cells of all keys and locks of the box with that lock."""
        row, column = lock
        cells = [(row, column - 1), lock]
        if self.tiles[cells[0]] == GEM:
            for other in (row - 1, row + 1):
                if self.tiles.get((other, column - 1)) == GEM:
                    cells += [(other, column - 1), (other, column)]
        return cells

    def step(self, action):
        """Returns the reward, and whether the episode is over."""
        row, column = self.player
        down, right = MOVES[action]
        cell = (row + down, column + right)
        if not (0 <= cell[0] < self.rows and 0 <= cell[1] < self.columns):
            return 0.0, False
        if cell not in self.tiles:
            self.player = cell
            return 0.0, False
        if self.is_loose_key(cell):
            self.inventory[self.inventory.index(EMPTY)] = self.tiles.pop(cell)
            self.player = cell
            return 1.0, False
        if not self.is_lock(cell):
            return 0.0, False
        cells = self.box_of(cell)
        key = self.tiles[cells[0]]
        inventory = list(self.inventory)
        for place in cells[1::2]:
            lock = self.tiles[place]
            if lock not in inventory:
                return 0.0, False
            inventory[inventory.index(lock)] = key
        self.inventory = inventory
        for place in cells:
            del self.tiles[place]
        self.player = cell
        if key == GEM:
            return 10.0, True
        if cell in self.losing:
            return -1.0, True
        return 1.0, False

    def arrays(self):
        """What a state of the world holds of it, beside the image."""
        row, column = self.player
        return {"player": row * self.columns + column}

    def image(self):
        rows = []
        for row in range(self.rows):
            tiles = [
                self.tiles.get((row, column), BLANK)
                for column in range(self.columns)
            ]
            if self.player[0] == row:
                tiles[self.player[1]] = PLAYER
            last = self.inventory[row] if row < 2 else EMPTY
            rows.append([*tiles, last])
        return rows


def python_worlds(world, state):
    """Each episode as the plain rules see it."""
    images = ops.convert_to_numpy(world.render(state))
    losing_slots = ops.convert_to_numpy(state["losing"])
    for image, losing in zip(images, losing_slots, strict=True):
        slots = np.flatnonzero(losing)
        rows, columns = np.divmod(slots, world.slot_columns)
        cells = zip(1 + 2 * rows, 2 + 3 * columns, strict=True)
        yield PythonBoxWorld(image, set(cells))


def moves_to_the_nearest(world):
    """The moves that shorten the way to the nearest tile that helps."""
    helpful = []
    for cell in world.tiles:
        if world.is_loose_key(cell):
            helpful.append(cell)
        elif world.is_lock(cell) and cell not in world.losing:
            _, _, locks = takes(world, set(world.tiles), cell)
            held = collections.Counter(world.inventory)
            if not collections.Counter(locks) - held:
                helpful.append(cell)
    distances = dict.fromkeys(helpful, 0)
    queue = collections.deque(helpful)
    while queue:
        row, column = cell = queue.popleft()
        for down, right in MOVES.values():
            other = row + down, column + right
            inside = (
                0 <= other[0] < world.rows and 0 <= other[1] < world.columns
            )
            if inside and other not in world.tiles and other not in distances:
                distances[other] = distances[cell] + 1
                queue.append(other)
    row, column = world.player
    return {
        move
        for move, (down, right) in MOVES.items()
        if distances.get((row + down, column + right))
        == distances[world.player] - 1
    }


def takes(world, tiles, cell):
    """What walking onto a cell removes, the key gained, the keys used."""
    row, column = cell
    if (row, column - 1) in tiles:
        box = set(world.box_of(cell))
        locks = [world.tiles[place] for place in box if place[1] == column]
        return box, world.tiles[row, column - 1], locks
    if (row, column + 1) in tiles:
        return None, None, None
    return {cell}, world.tiles[cell], []


UNSEEN, FLOOR, WALL, SHUT, OPEN = (
    (grey,) * 3 for grey in (0, 64, 128, 192, 255)
)
LEFT, RIGHT, FORWARD, TOGGLE = range(4)
STEPS = {0: (0, 1), 1: (1, 0), 2: (0, -1), 3: (-1, 0)}


class PythonMaze:
    """One episode.

    Args:
        board: As above. It is changed.
        agent: The cell it stands on.
        direction: The direction it faces.
        sought: Colour of the object to go to.
        max_steps: Number of steps after which the episode is cut off.
    """

    def __init__(self, board, agent, direction, sought, max_steps):
        self.board = board
        self.agent = agent
        self.direction = direction
        self.sought = sought
        self.max_steps = max_steps
        self.steps = 0

    def tile(self, cell):
        return tuple(int(part) for part in self.board[cell])

    @property
    def ahead(self):
        down, right = STEPS[self.direction]
        return self.agent[0] + down, self.agent[1] + right

    def step(self, action):
        """Returns the reward, whether it is found, and whether it is over."""
        self.steps += 1
        if action == LEFT:
            self.direction = (self.direction - 1) % 4
        elif action == RIGHT:
            self.direction = (self.direction + 1) % 4
        elif action == FORWARD and self.tile(self.ahead) in (FLOOR, OPEN):
            self.agent = self.ahead
        elif action == TOGGLE and self.tile(self.ahead) == SHUT:
            self.board[self.ahead] = OPEN
        elif action == TOGGLE and self.tile(self.ahead) == OPEN:
            self.board[self.ahead] = SHUT
        if self.tile(self.ahead) == self.sought:
            return 1 - 0.9 * self.steps / self.max_steps, True, False
        return 0.0, False, self.steps >= self.max_steps

    def arrays(self):
        """What a state of the world holds of it."""
        row, column = self.agent
        return {
            "board": (self.board @ [1, 2**8, 2**16]).ravel(),
            "agent": row * len(self.board) + column,
            "direction": self.direction,
        }

    def image(self):
        padded = np.full([5 + n + 5 for n in self.board.shape[:2]] + [3], 128)
        padded[5:-5, 5:-5] = self.board
        # The square whose side has the agent in its middle, from the corner.
        row, column = self.agent[0] + 5, self.agent[1] + 5
        top, left = {
            0: (row - 2, column),
            1: (row, column - 2),
            2: (row - 2, column - 4),
            3: (row - 4, column - 2),
        }[self.direction]
        view = padded[top : top + 5, left : left + 5]
        view = np.rot90(view, self.direction + 1).copy()
        seen = cells_seen(view)
        for cell in np.ndindex(5, 5):
            if cell not in seen:
                view[cell] = UNSEEN
        view[4, 2] = self.sought
        return view

    def num_doors(self):
        """Of each cell that can be reached, the fewest shut doors on the way.

        Objects can be reached, but not passed. A door counts for its own cell.
        """
        reached = {self.agent: 0}
        queue = collections.deque([self.agent])
        while queue:
            cell = queue.popleft()
            if self.tile(cell) not in (FLOOR, SHUT, OPEN):
                continue
            for down, right in STEPS.values():
                near = cell[0] + down, cell[1] + right
                tile = self.tile(near)
                doors = reached[cell] + (tile == SHUT)
                if tile != WALL and doors < reached.get(near, 99):
                    reached[near] = doors
                    # First those with the fewest doors.
                    add = queue.append if tile == SHUT else queue.appendleft
                    add(near)
        return reached


def cells_seen(view):
    """MiniGrid's rule, cell by cell."""
    seen = {(4, 2)}
    for row in (4, 3, 2, 1, 0):
        for side, columns in ((1, (0, 1, 2, 3)), (-1, (4, 3, 2, 1))):
            for column in columns:
                tile = tuple(int(part) for part in view[row, column])
                if (row, column) in seen and tile not in (WALL, SHUT):
                    seen.add((row, column + side))
                    seen.add((row - 1, column))
                    seen.add((row - 1, column + side))
    return seen
