import itertools
import runpy

import numpy as np
import pytest
import worlds_in_python
from environment_contract import BOXWORLDS
from environment_contract import EnvironmentContract
from environment_contract import agree_on_random_moves
from environment_contract import arrays
from environment_contract import assert_frequencies
from environment_contract import compiled_step
from environment_contract import of_worlds
from keras import ops
from PIL import Image
from worlds_in_python import python_worlds

from keras_relational.environments import boxworld
from keras_relational.environments.compilation import compiled


@pytest.fixture(params=of_worlds(BOXWORLDS, ("bridge", "branches", "smallest")))
def world(request):
    return request.param


class TestContract(EnvironmentContract):
    @pytest.fixture(params=of_worlds(BOXWORLDS, ("bridge", "branches")))
    def world(self, request):
        return request.param

    def least_num_boards(self, world):
        return 1 if world is BOXWORLDS["smallest"] else 451


def reset(world, seeds):
    """Not compiled: that would take longer, for each number of seeds."""
    return world.reset(np.asarray(seeds, "uint32"))


@pytest.mark.parametrize("pairs", ["all", "seen", "withheld"])
def test_pairs_of_locks_and_keys_are_withheld(pairs):
    world = boxworld.BoxWorld(key_lock_pairs=pairs)
    state = arrays(reset(world, np.arange(500)))
    board = state["board"].reshape(-1, world.rows, world.columns)
    keys = board[:, 1::2, 1:-1:3].reshape(500, -1)
    locks = board[:, 1::2, 2::3].reshape(500, -1)
    boxes = np.isin(keys, boxworld.HUES) & np.isin(locks, boxworld.HUES)
    hues = {colour: number for number, colour in enumerate(boxworld.HUES)}
    is_withheld = np.zeros_like(boxes)
    for place in zip(*np.nonzero(boxes), strict=True):
        further = (hues[keys[place]] - hues[locks[place]]) % boxworld.NUM_HUES
        is_withheld[place] = further == 7
    path = boxes & ~state["losing"]
    branches = boxes & state["losing"]
    assert path.sum() > 800
    assert branches.sum() > 800
    if pairs == "all":  # One of 19 colours that a key may have.
        for share in (is_withheld[path].mean(), is_withheld[branches].mean()):
            assert 0.02 < share < 0.09
    else:
        assert (is_withheld[path] == (pairs == "withheld")).all()
        assert not is_withheld[branches].any()
    # No colour comes twice among the keys, or it would open two boxes.
    for row in keys:
        colours = row[np.isin(row, boxworld.HUES)]
        assert len(np.unique(colours)) == len(colours)


@pytest.mark.parametrize(
    ("num_episodes", "num_moves"),
    [(50, 200), pytest.param(1_000, 1_000, marks=pytest.mark.slow)],
)
def test_random_moves_as_in_plain_python(world, num_episodes, num_moves):
    state = reset(world, np.arange(num_episodes) + 7_000_000)
    puzzles = list(python_worlds(world, state))
    assert agree_on_random_moves(world, state, puzzles, num_moves).any()


def test_the_expert_goes_to_the_nearest_tile_that_helps(world):
    """In positions of random moves among those of the expert."""
    state = reset(world, np.arange(60) + 3_000_000)
    puzzles = list(python_worlds(world, state))
    step, expert = compiled_step(world), compiled(world.expert_moves)
    rng = np.random.default_rng(0)
    over = np.zeros(len(puzzles), bool)
    for _ in range(80):
        moves = ops.convert_to_numpy(expert(state))
        for puzzle, right, is_over in zip(puzzles, moves, over, strict=True):
            if not is_over:
                expected = worlds_in_python.moves_to_the_nearest(puzzle)
                assert set(np.flatnonzero(right)) == expected
        weights = moves + rng.choice([0.01, 10], size=(len(puzzles), 1))
        actions = (rng.random(moves.shape) * weights).argmax(axis=1)
        state, _, _, terminated, _ = step(state, actions.astype("int32"))
        for puzzle, action, is_over in zip(puzzles, actions, over, strict=True):
            if not is_over:
                puzzle.step(int(action))
        over |= ops.convert_to_numpy(terminated)
    assert over.mean() > 0.3


def the_expert_solves(world, num_puzzles, first_seed=0):
    """Each puzzle, on one of the shortest ways to each tile that helps."""
    state = reset(world, np.arange(first_seed, first_seed + num_puzzles))
    step, expert = compiled_step(world), compiled(world.expert_moves)
    rng = np.random.default_rng(0)
    solved, total = np.zeros(num_puzzles, bool), np.zeros(num_puzzles)
    while not solved.all():
        moves = ops.convert_to_numpy(expert(state))
        assert moves[~solved].any(axis=1).all()
        assert not moves[solved].any()
        actions = (moves * rng.random(moves.shape)).argmax(axis=1)
        state, _, *outputs = step(state, actions.astype("int32"))
        reward, terminated, truncated = map(ops.convert_to_numpy, outputs)
        total += np.where(solved, 0, reward)
        solved |= terminated
        assert not truncated.any()
    length = arrays(state)["level"][:, 0]
    # A key, and L − 1 boxes, for each path, and the gem.
    paths = 2 if isinstance(world, boxworld.BridgeBoxWorld) else 1
    np.testing.assert_array_equal(total, paths * length + boxworld.GEM_REWARD)


def test_the_expert_solves_every_puzzle(world):
    the_expert_solves(world, 1_000)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, 11))
def test_the_expert_solves_very_many_puzzles(world, part):
    the_expert_solves(world, 10_000, first_seed=10_000 * part)


@pytest.mark.slow
def test_the_largest_puzzle_that_fits_is_made():
    """Six columns of one row: six boxes and loose keys in all."""
    the_expert_solves(boxworld.BoxWorld(3, 18, (5, 5), (0, 0)), 100)
    bridge = boxworld.BridgeBoxWorld(7, 9, (3, 3), bridge_probability=1)
    the_expert_solves(bridge, 100)


def test_the_expert_needs_a_board_that_fits_into_integers():
    world = boxworld.BoxWorld(3, 31, (1, 1), (0, 0))
    with pytest.raises(ValueError, match="columns=31"):
        world.expert_moves(world.reset([0]))


def test_boxes_that_end_the_episode_are_those_that_spoil_it(world):
    """A box loses exactly if the puzzle cannot be solved once it is open."""
    kinds = set()
    for puzzle in python_worlds(world, reset(world, np.arange(60))):
        locks = [cell for cell in puzzle.tiles if puzzle.is_lock(cell)]
        for lock in locks:
            box = puzzle.box_of(lock)
            if puzzle.tiles[box[0]] == worlds_in_python.GEM:
                continue
            # Open it at once, with a key taken from whichever box has it.
            spoiled = not solvable_through(puzzle, lock)
            assert spoiled == (lock in puzzle.losing)
            kinds.add(spoiled)
    if world.solution_length[1] > 1:
        assert kinds == {False, True}


def test_losing_tiles_are_the_locks_of_boxes_that_end_the_episode(world):
    state = reset(world, np.arange(50))
    tiles = ops.convert_to_numpy(world.losing_tiles(state))
    for puzzle, found in zip(python_worlds(world, state), tiles, strict=True):
        cells = np.divmod(np.flatnonzero(found), world.columns)
        assert set(zip(*cells, strict=True)) == puzzle.losing
    assert tiles.any() == (world is not BOXWORLDS["smallest"])


def test_tiles_of_one_colour_are_those_that_plain_python_finds(world):
    """The middle of an entity, and the key to the left of a lock there."""
    state = reset(world, np.arange(20))
    images = ops.convert_to_numpy(world.render(state))
    middles = list(
        itertools.product(range(1, world.rows - 1), range(1, world.columns))
    )
    found = boxworld.same_colour(images)
    for puzzle, same in zip(python_worlds(world, state), found, strict=True):
        tiles = {k: x for k, x in puzzle.tiles.items() if x != (255,) * 3}
        for (i, one), (j, other) in itertools.product(
            enumerate(middles), enumerate(middles)
        ):
            key = (one[0], one[1] - 1)
            for head, asks in enumerate((one, key)):
                is_same = asks in tiles and tiles.get(other) == tiles[asks]
                is_same &= other != asks and one in tiles
                assert same[head, i, j] == is_same


def solvable_through(puzzle, lock):
    """Whether some order of openings has that box in it and gets the gem."""
    stack = [(frozenset(puzzle.tiles), (), False)]
    while stack:
        tiles, held, opened = stack.pop()
        for cell in tiles:
            taken, key, used = worlds_in_python.takes(puzzle, tiles, cell)
            if taken is None or any(
                held.count(colour) < used.count(colour) for colour in used
            ):
                continue
            if key == worlds_in_python.GEM:
                if opened:
                    return True
                continue
            remaining = list(held)
            for colour in used:
                remaining.remove(colour)
            stack.append(
                (tiles - taken, (*remaining, key), opened or cell == lock)
            )
    return False


def test_bridge_boards_are_as_the_paper_says():
    world = boxworld.BridgeBoxWorld()
    state = arrays(reset(world, np.arange(6000)))
    board = state["board"].reshape(-1, 7, 9)
    tiles = board != boxworld.BLANK
    # Keys only at (2r, 3c − 1), counted from 1; the gem has two rows.
    gem = board == boxworld.GEM
    np.testing.assert_array_equal(gem.sum(axis=(1, 2)), 2)
    _, rows, columns = np.nonzero(gem)
    assert set(rows[::2]) == {1, 3}
    assert (rows[1::2] == rows[::2] + 1).all()
    assert set(columns) == {1, 4}
    assert not tiles[:, :, [0, 3, 6]].any()
    assert not tiles[:, [0, 6]].any()
    # Solution lengths, bridges, their ends: each as likely.
    a, b, c = state["level"].T
    assert_frequencies(a, {1: 1 / 3, 2: 1 / 3, 3: 1 / 3})
    assert_frequencies(b > 0, {False: 0.5, True: 0.5})
    threes = (a == 3) & (b > 0)
    assert_frequencies(b[threes], {1: 1 / 3, 2: 1 / 3, 3: 1 / 3})
    assert_frequencies(c[threes], {4: 1 / 3, 5: 1 / 3, 6: 1 / 3})
    np.testing.assert_array_equal(c[b == 0], 0)
    # 2 tiles a box: 2 (a − 1) of them, a gem of 4, 2 loose keys, a bridge.
    np.testing.assert_array_equal(
        tiles.sum(axis=(1, 2)), 4 * (a - 1) + 6 + 2 * (b > 0)
    )
    # Every slot that may hold a box holds one now and then.
    assert tiles.any(axis=0).sum() == 18 + 8


def test_the_bridge_is_where_its_type_says():
    world = boxworld.BridgeBoxWorld()
    state = reset(world, np.arange(400))
    types = arrays(state)["level"]
    for puzzle, (a, b, c) in zip(
        python_worlds(world, state), types, strict=True
    ):
        if b == 0:
            assert not puzzle.losing
            continue
        (lock,) = puzzle.losing
        boxes = {x for x in puzzle.tiles if puzzle.is_lock(x)} - {lock}
        # The colour of each lock, by that of the key in its box.
        locks = {puzzle.tiles[r, c - 1]: puzzle.tiles[r, c] for r, c in boxes}
        gems = sorted(
            cell
            for cell, tile in puzzle.tiles.items()
            if tile == worlds_in_python.GEM
        )
        paths = []
        for row, column in gems:  # upper path, lower path
            # From the gem's lock back to the loose key.
            path = [puzzle.tiles[row, column + 1]]
            while path[-1] in locks:
                path.append(locks[path[-1]])
            paths.append(path)
        upper, lower = paths
        assert len(upper) == len(lower) == a
        assert upper.index(puzzle.tiles[lock]) == b - 1
        key = puzzle.tiles[lock[0], lock[1] - 1]
        assert lower.index(key) == c - a - 1


def test_boxworld_is_drawn_from_its_ranges():
    world = boxworld.BoxWorld(9, 9, (1, 5), (0, 4))
    length, distractors, _ = arrays(reset(world, np.arange(6000)))["level"].T
    assert_frequencies(length, dict.fromkeys(range(1, 6), 0.2))
    assert_frequencies(distractors, dict.fromkeys(range(5), 0.2))


def test_colours_are_the_palette_and_each_as_likely():
    assert len(set(boxworld.HUES)) == 20
    world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
    images = ops.convert_to_numpy(world.render(reset(world, np.arange(8000))))
    # The loose key is the only coloured tile that is no lock.
    board = arrays(reset(world, np.arange(8000)))["board"]
    keys = [row[np.isin(row, boxworld.HUES)][0] for row in board]
    assert_frequencies(np.array(keys), dict.fromkeys(boxworld.HUES, 0.05))
    # HSV (18°, 0.7, 0.8): red, and a little green.
    colours = {tuple(int(x) for x in c) for c in images.reshape(-1, 3)}
    assert (204, 104, 61) in colours
    assert colours >= {(199,) * 3, (10,) * 3, (127,) * 3, (255,) * 3}


def test_no_three_coloured_tiles_touch(world):
    """But for a box, whose key and lock do, and the two rows of the gem."""
    for puzzle in python_worlds(world, reset(world, np.arange(200))):
        for (row, column), tile in puzzle.tiles.items():
            near = [
                (row + down, column + right)
                for down, right in itertools.product((-1, 0, 1), repeat=2)
                if (down, right) != (0, 0)
            ]
            touching = [cell for cell in near if cell in puzzle.tiles]
            gem = worlds_in_python.GEM
            if tile == gem or any(puzzle.tiles[c] == gem for c in touching):
                continue
            assert len(touching) <= 1


@pytest.mark.any_backend
def test_episodes_are_the_same_on_any_machine():
    """Written down once, with both backends."""
    world = boxworld.BridgeBoxWorld()
    board = arrays(reset(world, [12348]))["board"][0]
    names = {boxworld.BLANK: ".", boxworld.GEM: "G"}
    names |= {hue: chr(97 + i) for i, hue in enumerate(boxworld.HUES)}
    assert "".join(names[int(tile)] for tile in board) == EPISODE_12348
    again = compiled(world.reset)(np.array([12348, 2**32 - 1], "uint32"))
    np.testing.assert_array_equal(arrays(again)["board"][0], board)


EPISODE_12348 = (
    "..........fg.go.o...........Gr.rg.nf.Gn..........d..fd........."
)


def test_the_player_begins_in_the_corner(world):
    state = reset(world, np.arange(4))
    np.testing.assert_array_equal(state["player"], 0)
    state, *_ = world.step(state, [2, 3, 2, 3])
    where = np.array([True, False, True, False])
    new = arrays(world.restart(state, where))
    np.testing.assert_array_equal(new["player"][where], 0)


def test_episodes_are_not_cut_off_by_default():
    world = boxworld.BridgeBoxWorld()
    state = reset(world, [0])
    for _ in range(150):
        state, *_, truncated = compiled_step(world)(state, np.zeros(1, "int32"))
        assert not ops.convert_to_numpy(truncated).any()


BOX, BRIDGE = boxworld.BoxWorld, boxworld.BridgeBoxWorld


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (BRIDGE, {"solution_length": (1, 4)}, "room for 8 .*, and 10 may be"),
        (BRIDGE, {"rows": 4, "columns": 9}, "4 by 9 has room for 5"),
        (
            BRIDGE,
            {"rows": 3, "columns": 9, "solution_length": (1, 1)},
            "at least 4 rows",
        ),
        (BRIDGE, {"bridge_probability": 1.5}, "bridge_probability=1.5"),
        (BRIDGE, {"max_episode_steps": 0}, "max_episode_steps=0"),
        (
            BOX,
            {"rows": 5, "columns": 6, "solution_length": (1, 5)}
            | {"num_distractors": (0, 0)},
            "5 by 6 has room for 4 .* and 6 may be",
        ),
        (
            BOX,
            {"rows": 21, "columns": 21, "solution_length": (1, 10)}
            | {"num_distractors": (0, 11)},
            "20 colours, and 21 may be",
        ),
        (BOX, {"rows": 2, "columns": 9}, "at least 3 rows.*rows=2"),
        (BOX, {"solution_length": (0, 2)}, r"from 1 on.*length=\(0, 2\)"),
        (BOX, {"solution_length": 3}, "smallest and a largest.*length=3"),
        (BOX, {"solution_length": (1.0, 1.5)}, r"length=\(1.0, 1.5\)"),
        (BOX, {"num_distractors": (3, 2)}, r"num_distractors=\(3, 2\)"),
        (BOX, {"max_episode_steps": 1.5}, "max_episode_steps=1.5"),
    ],
)
def test_refuses_what_does_not_fit(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(**arguments)


@pytest.mark.parametrize("kind", ["BoxWorld", "BridgeBoxWorld"])
def test_a_puzzle_is_drawn_from_the_command_line(kind, tmp_path, monkeypatch):
    path = tmp_path / "puzzle.png"
    line = ["boxworld", f"--render={path}", "--seed=3", "--tile-size=2"]
    line += ["--bridge"] if kind == "BridgeBoxWorld" else []
    monkeypatch.setattr("sys.argv", line)
    runpy.run_module("keras_relational.environments.boxworld", None, "__main__")
    world = getattr(boxworld, kind)()
    image = world.render(world.reset(np.array([3], "uint32")))[0]
    with Image.open(path) as drawn:
        np.testing.assert_array_equal(np.asarray(drawn)[::2, 1::2], image)
    assert [x.name for x in tmp_path.iterdir()] == ["puzzle.png"]
