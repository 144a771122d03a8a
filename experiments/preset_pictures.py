"""Pictures of the inputs that the presets' examples make, with the answers."""

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.held_out import kind_of
from keras_relational.analysis.plotting import new_figure

SIDE = 1.3  # Inches of a panel.
MARK = "#e8590c"
TEXT = "#808080"  # Legible on white and on black.


def save(
    run: Mapping[str, Any], made: dict[str, Any], path: pathlib.Path
) -> None:
    """Draws an example; `made` are the names that it defined."""
    rows = PANELS[kind_of(run)](made)
    (height, width, *_) = rows[0][0][0].shape
    side = SIDE * max(1.0, min(4.0, width / height))
    figure = new_figure(
        side * max(map(len, rows)), len(rows) * (side * height / width + 0.3)
    )
    grid = figure.subplots(len(rows), max(map(len, rows)), squeeze=False)
    for panels, row in zip(grid, rows, strict=True):
        for panel in panels:
            panel.set_axis_off()
        for panel, (image, title, marked) in zip(panels, row, strict=False):
            panel.set_axis_on()
            panel.imshow(image, cmap="gray", interpolation="nearest")
            panel.set(xticks=[], yticks=[])
            panel.set_title(title, fontsize=9, color=MARK if marked else TEXT)
            for spine in panel.spines.values():
                spine.set(
                    color=MARK if marked else TEXT, lw=2 if marked else 0.5
                )
    figure.savefig(path, dpi=150, transparent=True, metadata={"Software": None})


def _boards(made):
    images = made.get("images")
    if images is None:
        cut = made["tiles"].reshape(-1, 3, 3, 12, 12, 3).swapaxes(2, 3)
        images = cut.reshape(-1, 36, 36, 3)
    if "tasks" in made:
        return [[(images[0], " ".join(made["found"]), False)]]
    return [
        [
            (image, f"“{answer}”", False)
            for image, answer in zip(images, made["answers"], strict=True)
        ]
    ]


def _cards(made):
    return [
        [
            (_card(card), answer if i == 2 else "", False)
            for i, card in enumerate(hand)
        ]
        for hand, answer in zip(made["hands"], made["answers"], strict=True)
    ]


def _card(attributes):
    """A card as an image: number, colour, shape and shading, each 0 to 2."""
    number, colour, shape, shading = attributes
    image = np.full((60, 48, 3), 255, "uint8")
    y, x = np.indices((16, 40)) - np.array([7.5, 19.5])[:, None, None]
    size = (
        np.hypot(x / 16, y / 7),
        np.maximum(abs(x) / 16, abs(y) / 6),
        abs(x) / 17 + abs(y) / 7.5,
    )[shape]
    inside = size < 1
    inner = inside & np.roll(inside, 2, 0) & np.roll(inside, -2, 0)
    edge = inside & ~(inner & np.roll(inner, 2, 1) & np.roll(inner, -2, 1))
    filled = (edge, edge | (inside & (x % 4 < 1.5)), inside)[shading]
    ink = ((214, 51, 108), (47, 158, 68), (103, 65, 217))[colour]
    top = 22 - 9 * number
    for i in range(number + 1):
        rows = slice(top + 18 * i, top + 18 * i + 16)
        image[rows, 4:44][filled] = ink
    return image


def _objects(made):
    x, places = made["x"][0], made["places"][0]
    return [[(x, "given", False), (x[places], "sorted", False)]]


def _rules(made):
    images, chosen = made["images"][0], made["logits"][0].argmax()
    first = [(image, "", False) for image in images[:3]]
    second = [(image, "", False) for image in images[3:5]]
    options = [
        (image, "the missing one" if i == chosen else "", i == chosen)
        for i, image in enumerate(images[5:])
    ]
    return [first, second, options]


def _puzzles(made):
    if "image" in made:
        return [[(made["image"][0], f"its move: {made['move']}", False)]]
    episode = made["episode"]
    end = "solved" if episode["solved"] else "not solved"
    title = f"{end} in {len(episode['actions'])} moves"
    return [[(episode["images"][0], title, False)]]


def _frames(made):
    schemata = made["schemata"][0, :, 0].argmax(axis=-1) + 1
    frames = made["frames"][0, ..., 0]
    return [
        [(frames[i], f"{i + 1}: schema {schemata[i]}", False) for i in row]
        for row in (range(7, 11), range(11, 15))
    ]


def _analogies(made):
    return [
        [
            (image, "its D" if i == place else "ABC"[i : i + 1], i == place)
            for i, image in enumerate(images)
        ]
        for images, place in zip(made["images"], made["chosen"], strict=True)
    ]


PANELS = {
    "boxworld_positions": _puzzles,
    "boxworld_teacher": _puzzles,
    "esbn_rules": _rules,
    "relations_game": _boards,
    "set_game": _cards,
    "single_ball": _frames,
    "sorting": _objects,
    "vaec": _analogies,
}
