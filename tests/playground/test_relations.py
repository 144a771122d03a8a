"""The page of the Relations Game: its rules in JavaScript, and its network."""

import keras
import numpy as np
import pytest
from browser_for_tests import in_node

from keras_relational import analysis
from keras_relational import models
from keras_relational.datasets import relations_game
from keras_relational.playground.relations_game import RelationsGame
from keras_relational.playground.relations_game import _median_difference

RULES = "relations_rules.js"
COLOURS = relations_game.COLOURS.tolist()
SHAPES = {
    name: relations_game.shape_masks(name).astype(int).tolist()
    for name in ("pentominoes", "hexominoes")
}


def packed(colours):
    return (np.asarray(colours, "int32") @ [1, 256, 65_536]).tolist()


NUMBERS = {0: -1} | {x: i for i, x in enumerate(packed(COLOURS))}


def objects_of(image):
    """The objects of a board, as the page has them."""
    blocks = image.reshape(3, 12, 3, 12, 3)[:, 2:10:3, :, 2:10:3]
    blocks = blocks.transpose(0, 2, 1, 3, 4).reshape(9, 9, 3)
    found = []
    for tile, colours in enumerate(packed(blocks)):
        cells = [NUMBERS[colour] for colour in colours]
        if max(cells) >= 0:
            x, y = 12 * (tile % 3) + 1, 12 * (tile // 3) + 1
            found.append({"cells": cells, "x": x, "y": y})
    return found


def test_boards_and_right_answers_are_the_librarys():
    boards, images, expected = {}, [], {}
    for task in relations_game.TASKS:
        drawn, labels, _ = relations_game.generate(task, 200, seed=0)
        boards[task] = [objects_of(image) for image in drawn]
        expected[task] = labels.tolist()
        images.append(drawn[:2])
    right, outside, pixels = in_node(
        RULES,
        """(() => {
            const each = (change) => Object.fromEntries(Object.entries(boards)
                .map(([task, of]) => [task, of.map((x) => change(task, x))]));
            return [each(it.rightAnswer),
                each((task, x) => it.outside(task, x, shapes)),
                Object.values(boards).map((of) => of.slice(0, 2).map(
                    (x) => [...it.render(x, colours)]))];
        })()""",
        boards=boards,
        colours=COLOURS,
        shapes=SHAPES,
    )
    assert right == expected
    assert outside == {task: [[]] * 200 for task in boards}
    np.testing.assert_array_equal(
        np.reshape(pixels, (-1, 2, 36, 36, 3)), images
    )


def test_examples_are_drawn_as_the_librarys():
    drawn = in_node(
        RULES,
        """(() => {
            let state = 1;
            const random = (below) => {
                state = (state * 48271) % 2147483647;
                return Math.floor(below * state / 2147483647);
            };
            return Object.fromEntries(tasks.map((task) => {
                const boards = Array.from({ length: 500 }, () =>
                    it.example(task, shapes.hexominoes, 25, random));
                return [task, [boards,
                    boards.map((x) => it.rightAnswer(task, x)),
                    [...new Set(boards.flatMap(
                        (x) => it.outside(task, x, shapes)))]]];
            }));
        })()""",
        tasks=relations_game.TASKS,
        shapes=SHAPES,
    )
    for task, (boards, right, outside) in drawn.items():
        assert outside == ["new shapes"], task
        images, labels, _ = relations_game.generate(task, 500, "hexominoes", 1)
        theirs = [objects_of(image) for image in images]
        measured = [(right, labels)]
        for share in (share_in_line, equal_pairs, alike_pairs):
            measured.append(([*map(share, boards)], [*map(share, theirs)]))
        for ours, expected in measured:
            # Four times the standard deviation of a difference of two means.
            near = 4 * np.std(expected) * (2 / 500) ** 0.5 + 1e-6
            assert np.mean(ours) == pytest.approx(
                np.mean(expected), abs=near
            ), task


def share_in_line(objects):
    """Whether all objects are in one row, column or diagonal."""
    x, y = (np.array([thing[name] for thing in objects]) for name in "xy")
    return min(np.ptp(z) for z in (x, y, x + y, x - y)) == 0


def pairs(objects):
    cells = np.array([thing["cells"] for thing in objects])
    first, second = np.triu_indices(len(cells), 1)
    return cells[first], cells[second]


def equal_pairs(objects):
    first, second = pairs(objects)
    return (first == second).all(-1).sum()


def alike_pairs(objects):
    """Pairs of one shape, less those of one colour."""
    first, second = pairs(objects)
    shapes = ((first < 0) == (second < 0)).all(-1)
    return shapes.sum() - (first.max(-1) == second.max(-1)).sum()


def thing(tile, mask, colour=0, dx=0):
    cells = np.where(np.array(mask).ravel(), colour, -1).tolist()
    x, y = 12 * (tile % 3) + 1 + dx, 12 * (tile // 3) + 1
    return {"cells": cells, "x": x, "y": y}


A, B = SHAPES["pentominoes"][:2]
NEW, DRAWN = SHAPES["hexominoes"][0], [[1, 0, 1], [0, 0, 0], [1, 0, 1]]
TRIO = [thing(3, A), thing(4, B), thing(5, A)]


@pytest.mark.parametrize(
    ("task", "objects", "right", "outside"),
    [
        ("between", TRIO, 1, []),
        ("between", [], 0, ["no objects instead of 3"]),
        ("between", TRIO[:1], 0, ["1 object instead of 3"]),
        ("between", [*TRIO, thing(0, B)], 1, ["4 objects instead of 3"]),
        ("between", [*TRIO[:2], thing(0, A)], 0, ["equal objects out of line"]),
        (
            "between",
            [*TRIO[:2], thing(5, A, dx=-4)],
            1,
            ["objects stand between tiles"],
        ),
        (
            "between",
            [*TRIO, thing(5, A, dx=-6)],
            None,
            ["objects stand between tiles", "two objects are on one tile"],
        ),
        ("between", [*TRIO[:2], thing(5, NEW)], 0, ["new shapes"]),
        ("between", [*TRIO[:2], thing(5, DRAWN)], 0, ["drawn shapes"]),
        ("row_ABA", TRIO, 1, []),
        ("row_AAB", TRIO, 0, []),
        ("row_ABA", TRIO[:2], None, ["2 objects instead of 3"]),
        (
            "row_ABA",
            [*TRIO[:2], thing(8, A)],
            None,
            ["the objects do not fill one row"],
        ),
        (
            "row_ABA",
            [*TRIO, *(thing(tile, A) for tile in (0, 1, 2))],
            None,
            ["6 objects instead of 3"],
        ),
        ("match_rows", TRIO, None, ["3 objects instead of 6"]),
        (
            "match_rows",
            [*TRIO, *(thing(tile, A) for tile in (0, 1, 2))],
            None,
            ["the objects do not fill the top and the bottom row"],
        ),
    ],
)
def test_what_is_outside_training(task, objects, right, outside):
    found = in_node(
        RULES,
        "[it.rightAnswer(task, objects), it.outside(task, objects, shapes)]",
        **{"task": task, "objects": objects, "shapes": SHAPES},
    )
    assert found == [right, outside]


def test_shapes_are_grouped_by_turning_and_reflecting():
    groups = in_node(RULES, "it.forms(masks)", masks=SHAPES["pentominoes"])
    assert len(groups) == 8
    assert sum(map(len, groups)) == len(SHAPES["pentominoes"])
    turned = in_node(RULES, "it.turned(cells)", cells=list(range(9)))
    assert turned == np.rot90(np.arange(9).reshape(3, 3), -1).ravel().tolist()


SIZES = {"num_heads": 5, "num_relations": 3}


@pytest.mark.any_backend
@pytest.mark.parametrize("tasks", [["between"], ["row_ABA", "row_AAB"]])
def test_the_network_says_what_the_library_says_of_the_heads(tasks):
    keras.utils.set_random_seed(0)
    several = len(tasks) > 1
    model = models.relations_classifier(
        num_tasks=len(tasks) if several else 0, **SIZES
    )
    game = RelationsGame(model, {"task": tasks[0]} | {"target": tasks})
    images, _, _ = relations_game.generate(tasks, 6, seed=1)
    inputs = {"image": images}
    others, _, numbers = relations_game.generate(
        tasks, 500, "hexominoes", seed=[0]
    )
    if several:
        inputs["task"] = np.array([0, 1] * 3, "uint8")
        others = others, numbers
    x = tuple(inputs.values()) if several else images
    found = game.network().run(inputs)

    def near(name, expected):
        np.testing.assert_allclose(found[name], expected, atol=1e-4)

    near("logits", model.predict(x, verbose=0))
    maps = analysis.attention_maps(model, images)
    near("maps", maps.reshape(6, 5, 2, 25))
    near("effects", analysis.head_effects(model, x, others))
    central = models.part(model, "central")
    entities = keras.Model(model.inputs[0], central.input)
    said = {
        name: keras.ops.convert_to_numpy(value)
        for name, value in central.propositions(entities(images)).items()
    }
    apart = said["positions_1"] - said["positions_2"]
    kernel = keras.ops.convert_to_numpy(central.relation_kernel)
    seen = np.abs(said["distances"] - apart @ kernel[-2:]).max(-1)
    # In one unit for all heads and boards.
    unit = np.median(seen / found["differences"])
    near("differences", seen / unit)


@pytest.mark.any_backend
def test_differences_are_measured_by_two_objects_that_differ():
    keras.utils.set_random_seed(0)
    model = models.relations_classifier(**SIZES)
    boards, _, _ = relations_game.generate("same", 40, "hexominoes", 0)
    entities = keras.Model(model.inputs[0], models.part(model, "central").input)
    kernel = keras.ops.convert_to_numpy(
        models.part(model, "central").relation_kernel
    )
    seen = entities.predict(boards, verbose=0)[:, ::2, ::2, :-2] @ kernel[:-2]
    seen = seen.reshape(40, 9, -1)
    tiles = relations_game.tiles(boards)
    apart = []
    for board, values in zip(tiles, seen, strict=True):
        one, other = np.flatnonzero(board.any(-1))
        if (board[one] != board[other]).any():
            apart.append(np.abs(values[one] - values[other]).max())
        else:
            np.testing.assert_allclose(values[one], values[other], atol=1e-5)
    found = _median_difference(
        boards, entities.predict(boards, verbose=0), kernel
    )
    assert found == pytest.approx(np.median(apart), rel=1e-4)
