"""The rules of BoxWorld once more, in plain Python, and a solver of puzzles.

Written from the papers, not from the tensors: a board is a dictionary from
`(row, column)` to the colour of the tile there, and what a tile is follows from
its neighbours.
"""

import collections
import itertools

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


def solve(world):
    """The moves that fetch the gem, or None if nothing does.

    Searches through the orders in which keys and boxes can be taken, knowing of
    no box that it ends the episode.
    """
    start = (frozenset(world.tiles), (), world.player, ())
    stack = [start]
    while stack:
        tiles, held, player, moves = stack.pop()
        reached = paths(world, tiles, player)
        for cell in sorted(tiles):
            taken, key, used = takes(world, tiles, cell)
            if taken is None or cell not in reached:
                continue
            remaining = list(held)
            try:
                for colour in used:
                    remaining.remove(colour)
            except ValueError:
                continue
            path = moves + reached[cell]
            if key == GEM:
                return list(path)
            stack.append((tiles - taken, (*remaining, key), cell, path))
    return None


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


def paths(world, tiles, player):
    """The shortest moves to each cell; tiles end a path."""
    reached = {player: ()}
    queue = collections.deque([player])
    while queue:
        here = queue.popleft()
        if here in tiles and here != player:
            continue
        for action, (down, right) in MOVES.items():
            cell = (here[0] + down, here[1] + right)
            inside = 0 <= cell[0] < world.rows and 0 <= cell[1] < world.columns
            if inside and cell not in reached:
                reached[cell] = (*reached[here], action)
                queue.append(cell)
    return reached
