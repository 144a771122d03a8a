"""Draws panels: lines and shapes of given values, and others at random."""

import functools
from typing import NamedTuple

import numpy as np

from keras_relational.datasets.visual_analogies.domains import DOMAINS
from keras_relational.datasets.visual_analogies.domains import value_limits
from keras_relational.datasets.visual_analogies.published import NUM_PANELS

# The number of panels drawn at a time. Drawing takes five times their memory.
_PANELS_AT_ONCE = 1_000
# Images are averaged over this many points a pixel, both ways.
_DETAIL = 4


class Objects(NamedTuple):
    """The objects of panels, one row a panel: 6 lines, and 9 shapes."""

    lines: np.ndarray  # Which types of lines are present.
    line_colours: np.ndarray
    shapes: np.ndarray  # At which places there are shapes.
    shape_colours: np.ndarray
    shape_types: np.ndarray
    shape_sizes: np.ndarray


def draw_panels(
    rng: np.random.Generator,
    domains: np.ndarray,
    values: np.ndarray,
    is_far: np.ndarray,
    image_size: int,
    distraction: bool,
) -> np.ndarray:
    """Draws panels `(n, image_size, image_size)`, with values in one domain.

    Booleans `(n, NUM_VALUES)` are the values that a panel has in its domain, an
    index into `DOMAINS`, and `is_far` says if these are beyond training.
    Without `distraction` panels have three lines or three shapes, and vary only
    from row to row in other domains.
    """
    objects = _choose_objects(rng, domains, values, is_far, distraction)
    images = np.empty((len(domains), image_size, image_size), "uint8")
    for start in range(0, len(domains), _PANELS_AT_ONCE):
        part = slice(start, start + _PANELS_AT_ONCE)
        some = Objects(*(what[part] for what in objects))
        images[part] = paint(some, image_size)
    return images


def _choose_objects(rng, domains, values, is_far, distraction):
    n = len(domains)
    # Without distraction, all panels of a row have the random values of its
    # first panel.
    source = np.arange(n)
    if not distraction:
        source -= source % NUM_PANELS - np.where(source % NUM_PANELS < 3, 0, 3)
    limits = {
        name: value_limits(np.full(n, number), is_far & (domains == number))
        for number, name in enumerate(DOMAINS)
    }

    def own(name):
        """Which panels have that domain."""
        return domains == DOMAINS.index(name)

    def values_of(name, num_objects, present):
        """Chooses a value for each object, `(n, num_objects)`.

        In its own domain each value of a panel belongs to some object.
        """
        first, last = (limit[:, None] for limit in limits[name])
        anything = rng.integers(first, last + 1, (n, num_objects))[source]
        # Objects in random order take the values one after the other.
        turn = np.where(present, rng.random((n, num_objects)), 2)
        turn = turn.argsort(axis=1).argsort(axis=1)
        listed = np.argsort(~values, axis=1, kind="stable")
        count = np.maximum(values.sum(axis=1), 1)[:, None]
        mine = np.take_along_axis(listed, turn % count, axis=1)
        return np.where(own(name)[:, None], mine, anything)

    def random_places(num_places, number):
        """Chooses that number of places in each panel."""
        order = rng.random((n, num_places))[source]
        return order.argsort(axis=1).argsort(axis=1) < number[:, None]

    count = values.sum(axis=1)
    # One to three lines, each of another type. As a distraction there may be
    # none.
    of_lines = own("line_colour") | own("line_type")
    number = np.where(of_lines, rng.integers(1, 4, n), rng.integers(0, 3, n))
    number = np.where(own("line_colour"), np.maximum(number, count), number)
    if not distraction:
        number = np.where(of_lines, 3, 0)
    lines = random_places(6, number)
    lines = np.where(own("line_type")[:, None], values[:, :6], lines)
    line_colours = values_of("line_colour", 6, lines)

    # One to four shapes. Only a quantity beyond training is larger.
    first, last = limits["shape_quantity"]
    number = rng.integers(first, last + 1)
    of_shapes = own("shape_colour") | own("shape_type") | own("shape_size")
    number = np.where(of_shapes, np.maximum(number, count), number)
    none = rng.random(n) < 0.5
    if not distraction:
        number[:], none[:] = 3, True
    quantity = own("shape_quantity")
    number[quantity] = values[quantity].argmax(axis=1)
    number[of_lines & none] = 0
    shapes = random_places(9, number)
    shapes = np.where(own("shape_position")[:, None], values[:, :9], shapes)
    return Objects(
        lines,
        line_colours,
        shapes,
        *(
            values_of(name, 9, shapes)
            for name in ("shape_colour", "shape_type", "shape_size")
        ),
    )


def paint(objects: Objects, image_size: int) -> np.ndarray:
    """Paints objects, lines first: uint8 `(n, image_size, image_size)`."""
    ink, outlines = _shapes(image_size // 3)
    strokes = _lines(image_size)
    panels = np.zeros((len(objects.lines), image_size, image_size), "float32")
    for number in range(6):
        mine = np.flatnonzero(objects.lines[:, number])
        shade = _darkness(objects.line_colours[mine, number])[:, None, None]
        stroke = strokes[number]
        panels[mine] += stroke * (shade - panels[mine])
    tile = image_size // 3
    edge = (image_size - 3 * tile) // 2
    for place in range(9):
        mine = np.flatnonzero(objects.shapes[:, place])
        kind = (
            objects.shape_types[mine, place],
            objects.shape_sizes[mine, place],
        )
        shade = _darkness(objects.shape_colours[mine, place])[:, None, None]
        row, column = (edge + tile * x for x in divmod(place, 3))
        window = np.s_[mine, row : row + tile, column : column + tile]
        below = panels[window]
        filled = below + ink[kind] * (shade - below)
        panels[window] = filled + outlines[kind] * (1 - filled)
    return (255 - np.rint(255 * panels)).astype("uint8")


def _darkness(colours):
    """From 0.05, nearly white, to 0.86, lighter than outlines."""
    return np.float32(0.05) + np.float32(0.09) * colours.astype("float32")


@functools.cache
def _shapes(tile):
    """Fillings and outlines, `(types, sizes, tile, tile)`, from 0 to 1."""
    line = (np.arange(tile * _DETAIL) + 0.5) / (tile * _DETAIL) * 2 - 1
    x, y = np.meshgrid(line, line)
    angle, radius = np.arctan2(x, -y), np.hypot(x, y)

    def regular(corners, between):
        """The size at which a shape reaches each point, and its scale."""
        half = np.pi / corners
        from_corner = np.abs(np.mod(angle + half, 2 * half) - half)
        across = np.array([np.cos(half), np.sin(half)]) * between
        normal = np.array([across[1], 1 - across[0]])
        size = radius * (np.cos(from_corner) * normal[0])
        size += radius * (np.sin(from_corner) * normal[1])
        return size / normal[0], normal[0] / np.hypot(*normal)

    kinds = [regular(n, np.cos(np.pi / n)) for n in (3, 4, 5, 6, 8)]
    kinds += [(radius, 1.0), regular(5, 0.45)]
    outline = 0.1  # A twentieth of the side of a tile.
    fillings, outlines = [], []
    for reached_by, nearest in kinds:
        for size in np.linspace(0.4, 0.97, 10):
            fillings.append(reached_by <= size)
            outlines.append(
                fillings[-1] & (reached_by > size - outline / nearest)
            )
    shape = (len(kinds), 10, tile, _DETAIL, tile, _DETAIL)
    return tuple(
        np.reshape(masks, shape).mean((3, 5), dtype="float32")
        for masks in (fillings, outlines)
    )


@functools.cache
def _lines(image_size):
    """Lines from edge to edge, an array `(6, size, size)` from 0 to 1."""
    line = (np.arange(image_size) + 0.5) / image_size * 2 - 1
    x, y = np.meshgrid(line, line)
    distances = (
        (x - y) / np.sqrt(2),
        (x + y) / np.sqrt(2),
        y,
        x,
        (np.abs(x) + np.abs(y) - 0.9) / np.sqrt(2),
        np.hypot(x, y) - 0.9,
    )
    pixel, half_width = 2 / image_size, 3 / 160
    return np.clip((half_width - np.abs(distances)) / pixel + 0.5, 0, 1).astype(
        "float32"
    )
