import itertools
import math

import numpy as np
import pytest
from environment_contract import EnvironmentContract
from environment_contract import agree_on_random_moves
from environment_contract import arrays
from environment_contract import assert_frequencies
from environment_contract import of_worlds
from keras import ops
from worlds_in_python import SHUT
from worlds_in_python import PythonMaze

from keras_relational.environments import goto_object_maze
from keras_relational.environments.compilation import compiled
from keras_relational.environments.goto_object_maze import GotoObjectMaze

WORLDS = {
    "paper": GotoObjectMaze(),
    "transfer": GotoObjectMaze(10),
    "full": GotoObjectMaze(num_objects=13),
    "smallest": GotoObjectMaze(4),
}
# What the letters of the pictures below stand for.
COLOURS = {
    "?": (0, 0, 0),
    ".": (64, 64, 64),
    "#": (128, 128, 128),
    "D": (192, 192, 192),
    "o": (255, 255, 255),
    "k": (255, 0, 0),  # a red key
    "b": (128, 128, 255),  # a blue ball
    "x": (0, 128, 0),  # a green box
}
# Rooms of 4 by 4 cells; the agent is in the middle of row 5.
PICTURE = """
    ##########
    #..#..#..#
    #..D..#k.#
    ##D#o##D##
    #..#..#..#
    #b.o..D..#
    #D###o#D##
    #..#..#..#
    #..#.x#..#
    ##########
""".split()
VIEWS = {
    "right": "????? ????? ##D## #..o. o.k#?",
    "down": "####? #x.#? #..#? #o### D.ko.",
    "left": "?#### ?Db.# ?#..D ?#o## ?#k.o",
    "up": "?#..# ?D..# D#o## .#..# .ok.D",
}


# The objects by their colours.
NAMES = {
    (tile & 255, tile >> 8 & 255, tile >> 16): name
    for tile, name in zip(
        goto_object_maze.OBJECTS,
        itertools.product(
            goto_object_maze.KINDS,
            ("red", "yellow", "green", "cyan", "blue", "magenta"),
        ),
        strict=True,
    )
}


@pytest.fixture(params=of_worlds(WORLDS, ("paper", "full", "smallest")))
def world(request):
    return request.param


class TestContract(EnvironmentContract):
    @pytest.fixture(params=of_worlds(WORLDS, ("paper",)))
    def world(self, request):
        return request.param


def reset(world, seeds):
    """Not compiled: that would take longer, for each number of seeds."""
    return world.reset(np.asarray(seeds, "uint32"))


def colours(packed):
    return np.stack([packed >> shift & 255 for shift in (0, 8, 16)], axis=-1)


def packed(colour):
    return colour[0] + 256 * colour[1] + 65536 * colour[2]


def python_mazes(world, state):
    """Each episode as the plain rules see it."""
    state = arrays(state)
    boards = colours(state["board"]).reshape(-1, world.side, world.side, 3)
    for board, agent, direction, sought in zip(
        boards,
        state["agent"],
        state["direction"],
        colours(state["sought"]),
        strict=True,
    ):
        yield PythonMaze(
            board,
            divmod(int(agent), world.side),
            int(direction),
            tuple(int(part) for part in sought),
            world.max_episode_steps,
        )


def state_of(picture, agent, directions, sought):
    """A state of the smallest maze that looks so, one row a direction."""
    rows = len(directions)
    board = [packed(COLOURS[tile]) for tile in "".join(picture)]
    return {
        **reset(WORLDS["smallest"], np.arange(rows)),
        "board": ops.convert_to_tensor(np.int32([board] * rows)),
        "agent": ops.convert_to_tensor(
            np.int32([10 * agent[0] + agent[1]] * rows)
        ),
        "direction": ops.convert_to_tensor(np.int32(directions)),
        "sought": ops.convert_to_tensor(
            np.int32([packed(COLOURS[tile]) for tile in sought])
        ),
    }


@pytest.mark.parametrize(
    "num_steps", [150, pytest.param(1_000, marks=pytest.mark.slow)]
)
def test_random_actions_as_in_plain_python(world, num_steps):
    """More of them go on than turn, or toggle a door."""
    state = reset(world, np.arange(50) + 7_000_000)
    mazes = list(python_mazes(world, state))
    shares = (0.2, 0.2, 0.4, 0.2)
    assert agree_on_random_moves(world, state, mazes, num_steps, shares).any()


@pytest.mark.parametrize(
    ("first_seed", "num_mazes"),
    [
        (0, 100),
        *(
            pytest.param(2_000 * part, 2_000, marks=pytest.mark.slow)
            for part in range(1, 11)
        ),
    ],
)
def test_everything_is_within_reach(world, first_seed, num_mazes):
    """All rooms, both sides of all doors, all objects; and how far they are."""
    state = reset(world, np.arange(first_seed, first_seed + num_mazes))
    num_doors = arrays(state)["level"][:, 0]
    for i, maze in enumerate(python_mazes(world, state)):
        reached = maze.num_doors()
        walls = (maze.board == 128).all(axis=-1)
        assert len(reached) == (~walls).sum()
        fewest = min(reached[c] for c in reached if maze.tile(c) == maze.sought)
        assert fewest == num_doors[i]
    if world is not WORLDS["full"]:
        assert num_doors.max() > 3


def test_the_board_is_rooms_with_doors_and_objects(world):
    n = world.room_size - 1
    shares = []
    rng = np.random.default_rng(0)
    state = reset(world, np.arange(200))
    for maze in python_mazes(world, state):
        side = range(3 * n + 1)
        cells = set(itertools.product(side, side))
        grid = {(r, c) for r, c in cells if r % n == 0 or c % n == 0}
        tiles = {cell: maze.tile(cell) for cell in cells}
        doors = {cell for cell in cells if tiles[cell] == SHUT}
        objects = {c for c in cells if tiles[c] in NAMES}
        assert len(objects) == world.num_objects
        # At most one door between two rooms, and none to the outside.
        assert doors <= grid
        walls = {(r // n, c // n, r % n > 0) for r, c in doors}
        assert len(walls) == len(doors)
        assert not {(r % n, c % n) for r, c in doors} & {(0, 0)}
        assert not {x for door in doors for x in door} & {0, 3 * n}
        assert {tiles[cell] for cell in grid - doors} == {COLOURS["#"]}
        assert {tiles[cell] for cell in cells - grid - objects} == {
            COLOURS["."]
        }
        # The first object is anywhere but beside doors and the agent.
        taken = grid.union(*map(around, doors | {maze.agent}))
        assert maze.agent not in grid
        assert not objects & taken
        for cell, other in itertools.combinations(objects, 2):
            far = max(abs(cell[0] - other[0]), abs(cell[1] - other[1]))
            assert far > 1
        if world.num_objects == 1:
            free = sorted(cells - taken)
            place = free.index(*objects) + rng.random()
            shares.append(int(10 * place / len(free)))
    if shares:
        assert_frequencies(np.array(shares), dict.fromkeys(range(10), 0.1))


def around(cell):
    row, column = cell
    return {cell} | {
        (row + down, column + right)
        for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0))
    }


def test_doors_are_added_at_random_until_all_rooms_are_joined():
    """The first m of twelve walls in random order are any m of them."""
    rooms = list(itertools.product(range(3), range(3)))
    walls = [
        (a, b)
        for a, b in itertools.combinations(rooms, 2)
        if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1
    ]
    joined = []
    for number in range(13):
        sets = itertools.combinations(walls, number)
        connected = sum(join_all(rooms, doors) for doors in sets)
        joined.append(connected / math.comb(12, number))
    expected = {m: joined[m] - joined[m - 1] for m in range(8, 12)}
    board = arrays(reset(WORLDS["paper"], np.arange(4000)))["board"]
    doors = board == packed(SHUT)
    assert_frequencies(doors.sum(axis=1), expected)
    # The wall between the first two rooms, and each place in it.
    wall = doors.reshape(-1, 16, 16)[:, 1:5, 5]
    has_door = wall.any(axis=1)
    assert_frequencies(
        wall[has_door].argmax(axis=1), dict.fromkeys(range(4), 1 / 4)
    )


def join_all(rooms, doors):
    reached = {rooms[0]}
    for _ in rooms:
        reached |= {b for a, b in doors if a in reached}
        reached |= {a for a, b in doors if b in reached}
    return len(reached) == len(rooms)


def test_agents_and_objects_are_drawn_alike():
    state = arrays(reset(WORLDS["paper"], np.arange(8000)))
    row, column = np.divmod(state["agent"], 16)
    floor = {c: 1 / 12 for c in range(16) if c % 5}
    assert_frequencies(row, floor)
    assert_frequencies(column, floor)
    assert_frequencies(state["direction"], dict.fromkeys(range(4), 1 / 4))
    objects = dict.fromkeys(goto_object_maze.OBJECTS, 1 / 18)
    assert_frequencies(state["sought"], objects)
    # In one maze there are others, and some that look like the one sought.
    state = arrays(reset(WORLDS["full"], np.arange(200)))
    others = np.isin(state["board"], goto_object_maze.OBJECTS)
    alike = state["board"] == state["sought"][:, None]
    np.testing.assert_array_equal(others.sum(axis=1), 13)
    assert alike.any(axis=1).all()
    assert set(alike.sum(axis=1)) >= {1, 2}


def test_colours():
    greys = {colour for tile, colour in COLOURS.items() if tile in "?.#Do"}
    assert len(greys | set(NAMES)) == 5 + 18
    assert NAMES[COLOURS["k"]] == ("key", "red")
    assert NAMES[COLOURS["b"]] == ("ball", "blue")
    assert NAMES[COLOURS["x"]] == ("box", "green")


def test_views_in_all_directions():
    directions = goto_object_maze.DIRECTIONS
    state = state_of(PICTURE, (5, 4), range(4), "kkkk")
    images = ops.convert_to_numpy(WORLDS["smallest"].render(state))
    letters = {colour: letter for letter, colour in COLOURS.items()}
    for image, direction in zip(images, directions, strict=True):
        seen = [
            "".join(letters[tuple(int(x) for x in pixel)] for pixel in row)
            for row in image
        ]
        assert seen == VIEWS[direction].split()


def test_views_turn_with_the_maze(world):
    """A quarter turn of the maze, the agent with it, changes no view."""
    state = reset(world, np.arange(50))
    images = ops.convert_to_numpy(world.render(state))
    assert len(np.unique(images, axis=0)) > 40
    shape = (-1, world.side, world.side)
    for _ in range(4):
        now = arrays(state)
        board = np.rot90(now["board"].reshape(shape), axes=(1, 2))
        turned = np.rot90(np.arange(world.side**2).reshape(shape[1:]))
        state = {
            **now,
            "board": board.reshape(50, -1),
            "agent": np.argsort(turned.ravel())[now["agent"]].astype("int32"),
            "direction": (now["direction"] + 3) % 4,
        }
        np.testing.assert_array_equal(world.render(state), images)


def test_views_of_mazes_that_never_are():
    """Walls and doors anywhere: what is seen between them."""
    world = WORLDS["smallest"]
    rng = np.random.default_rng(0)
    state = arrays(reset(world, np.arange(1000)))
    tiles = [packed(COLOURS[letter]) for letter in ".#Do"]
    board = rng.choice(
        np.int32(tiles), size=(1000, 8, 8), p=(0.6, 0.2, 0.1, 0.1)
    )
    board = np.pad(board, ((0, 0), (1, 1), (1, 1)), constant_values=tiles[1])
    state["board"] = board.reshape(1000, 100)
    np.put_along_axis(state["board"], state["agent"][:, None], tiles[0], axis=1)
    images = ops.convert_to_numpy(world.render(state))
    for image, maze in zip(images, python_mazes(world, state), strict=True):
        np.testing.assert_array_equal(image, maze.image())


def test_any_object_like_the_one_sought_will_do():
    """The agent turns to the key above it, or to the left, or to the ball."""
    picture = list(PICTURE)
    picture[4:6] = ["#..#k.#..#", "#..k..D..#"]
    state = state_of(picture, (5, 4), [0, 3, 0], "kkb")
    world = WORLDS["smallest"]
    _, reward, found, cut_off = world.step(state, np.int32([0, 0, 0]))
    np.testing.assert_allclose(reward, [1 - 0.9 / 144, 1 - 0.9 / 144, 0])
    np.testing.assert_array_equal(found, [True, True, False])
    np.testing.assert_array_equal(cut_off, [False] * 3)
    # The last step counts.
    state["steps"] = ops.convert_to_tensor(np.int32([143, 142, 143]))
    _, reward, found, cut_off = world.step(state, np.int32([0, 1, 0]))
    np.testing.assert_allclose(reward, [0.1, 0, 0], rtol=1e-5)
    assert reward[0] >= world.success_reward
    np.testing.assert_array_equal(found, [True, False, False])
    np.testing.assert_array_equal(cut_off, [False, False, True])


def test_the_time_that_there_is():
    steps = [world.max_episode_steps for world in WORLDS.values()]
    assert steps == [9 * 6**2, 9 * 10**2, 9 * 6**2, 9 * 4**2]
    world = GotoObjectMaze(max_episode_steps=2)
    state = reset(world, [0, 1])
    for time in range(2):
        state, reward, found, cut_off = world.step(state, np.int32([0, 1]))
        assert not np.any(found)
        assert not np.any(reward)
        np.testing.assert_array_equal(cut_off, [time == 1] * 2)


@pytest.mark.any_backend
def test_episodes_are_the_same_on_any_machine():
    """Written down once, with both backends."""
    world = GotoObjectMaze(4)
    seeds = np.array([12348])
    state = arrays(reset(world, seeds))
    letters = {packed(colour): letter for letter, colour in COLOURS.items()}
    rows = state["board"].reshape(10, 10)
    assert [
        "".join(letters.get(int(tile), "*") for tile in row) for row in rows
    ] == EPISODE_12348.split()
    assert (state["agent"][0], state["direction"][0]) == (14, 2)
    assert NAMES[tuple(colours(state["sought"])[0])] == ("key", "red")
    again = arrays(compiled(world.reset)(seeds.astype("uint32")))
    for name, value in again.items():
        np.testing.assert_array_equal(value, state[name])


EPISODE_12348 = """
    ##########
    #..D..D..#
    #..#..#..#
    #D########
    #..#..#.k#
    #..D..D..#
    ####D###D#
    #..D..#..#
    #..#..#..#
    ##########
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"room_size": 3}, "at least 4 cells a side.*room_size=3"),
        ({"room_size": 6.0}, "integer.*room_size=6.0"),
        ({"num_objects": 1.5}, "num_objects=1.5"),
        (
            {"room_size": 4, "num_objects": 2},
            "4 by 4 cells .* 1 to 1 objects. Received: num_objects=2",
        ),
        ({"num_objects": 14}, "1 to 13 objects. Received: num_objects=14"),
        ({"num_objects": 0}, "Received: num_objects=0"),
        ({"max_episode_steps": 0}, "max_episode_steps=0"),
    ],
)
def test_refuses_what_does_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        GotoObjectMaze(**arguments)
