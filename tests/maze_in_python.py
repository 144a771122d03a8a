"""The rules of the maze once more, in plain Python, and a search for the way.

Written from MiniGrid, not from the tensors: cells are `(row, column)`, and a
board is an array `(side, side, 3)` of colours. Actions are left, right,
forward, toggle; directions right, down, left, up.
"""

import collections
import itertools

import numpy as np

UNSEEN, FLOOR, WALL, SHUT, OPEN = (
    (grey,) * 3 for grey in (0, 64, 128, 192, 255)
)
LEFT, RIGHT, FORWARD, TOGGLE = range(4)
MOVES = {0: (0, 1), 1: (1, 0), 2: (0, -1), 3: (-1, 0)}


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
        down, right = MOVES[self.direction]
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
            for down, right in MOVES.values():
                near = cell[0] + down, cell[1] + right
                tile = self.tile(near)
                doors = reached[cell] + (tile == SHUT)
                if tile != WALL and doors < reached.get(near, 99):
                    reached[near] = doors
                    # First those with the fewest doors.
                    add = queue.append if tile == SHUT else queue.appendleft
                    add(near)
        return reached

    def solution(self):
        """Actions that lead to the object on the shortest path."""
        came_from = {self.agent: None}
        queue = collections.deque([self.agent])
        while queue:
            cell = queue.popleft()
            if self.tile(cell) == self.sought:
                return self._actions(cell, came_from)
            if self.tile(cell) not in (FLOOR, SHUT, OPEN):
                continue
            for down, right in MOVES.values():
                near = cell[0] + down, cell[1] + right
                if near not in came_from and self.tile(near) != WALL:
                    came_from[near] = cell
                    queue.append(near)
        return None

    def _actions(self, cell, came_from):
        path = [cell]
        while came_from[path[0]] is not None:
            path.insert(0, came_from[path[0]])
        actions, direction = [], self.direction
        for here, there in itertools.pairwise(path):
            move = there[0] - here[0], there[1] - here[1]
            (wanted,) = (d for d in MOVES if MOVES[d] == move)
            turns = (wanted - direction) % 4
            actions += [LEFT] if turns == 3 else [RIGHT] * turns
            direction = wanted
            if there == cell:
                return actions
            actions += [TOGGLE] * (self.tile(there) == SHUT) + [FORWARD]
        raise AssertionError("The agent stands on the object.")


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
