"""Visual analogies: which panel completes the second row as the first is?

In the style of Hill et al., 2019, *Learning to Make Analogies by Contrasting
Abstract Relational Structure*, on which Webb et al., 2020, test
extrapolation (sections 2.2 and 5.2). A problem has 2 × 3 panels. In the first
row, the source, a relation holds in one domain, such as the sizes of shapes; in
the second, the target, it holds in another one, and its last panel is to be
chosen among four candidates. In all other domains panels vary at random, which
is the distraction.

The published problems are read by `load_npz`. Those of `generate` are our own.
What varies are the values of a panel in a domain, whole numbers:

- `line_colour`: of lines, 10 shades from light to dark;
- `line_type`: of lines, falling, rising, level, upright, diamond, circle;
- `shape_colour`: of shapes, 10 shades from light to dark;
- `shape_type`: of shapes, with 3, 4, 5, 6 and 8 corners, circle, star;
- `shape_size`: of shapes, 10 sizes;
- `shape_quantity`: how many shapes there are, 1 to 9, a single value;
- `shape_position`: of shapes, 9 places, row by row.

The first two panels of a row have the values {v, v + s} and {v + s, v + 2 s},
with a step s of 1 or −1, and the third has

    and            what both have                 {v + s}
    or             what either has                {v, v + s, v + 2 s}
    xor            what one of them has           {v, v + 2 s}
    progression    the next values                {v + 2 s, v + 3 s}

For quantities, v and v + s, these are the smaller one, the larger one, for
`xor` nothing, and v + 2 s: no row of quantities is one of `xor`, and in its
place among the candidates is another quantity. So all relations hold for the
same two panels, and with contrasting candidates, which are the four of them
("learning analogies by contrasting"), the target row alone says next to nothing
about the answer: only for quantities, that it is not the other one, which makes
27 of 100 guesses right in training, 28 in tests. With random candidates it
says most: a guess among those that are one of the four is right in 79 of 100
problems in training, 72 in tests.
"""

import collections
import functools
import math
import pathlib

import numpy as np

from keras_relational.datasets.npz import read_npz
from keras_relational.validation import check_positive_integers

DOMAINS = (
    "line_colour",
    "line_type",
    "shape_colour",
    "shape_type",
    "shape_size",
    "shape_quantity",
    "shape_position",
)
ORDERED_DOMAINS = (
    "line_colour",
    "shape_colour",
    "shape_size",
    "shape_quantity",
)
RELATIONS = ("and", "or", "xor", "progression")
REGIMES = ("train", "test")
CANDIDATES = ("contrasting", "random")
IMAGE_SIZE = 160
NUM_PANELS = 9  # 3 of the source, 2 of the target, 4 candidates.

Problems = collections.namedtuple(
    "Problems", ("images", "labels", "relations", "domains", "values")
)

# First and last value, and the last of those seen in training.
_RANGES = np.array(
    [
        (0, 9, 4),
        (0, 5, 5),
        (0, 9, 4),
        (0, 6, 6),
        (0, 9, 4),
        (1, 9, 4),
        (0, 8, 8),
    ]
)
_NUM_VALUES = 10
_QUANTITY = DOMAINS.index("shape_quantity")
_XOR = RELATIONS.index("xor")


def load_data(num_train=20_000, num_test=2_000, image_size=80, seed=0):
    """Problems to train on, and problems that ask for extrapolation.

    Args:
        num_train: Number of training problems.
        num_test: Number of test problems.
        image_size: As for `generate`.
        seed: Non-negative integer.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 images `(n, 9, image_size,
        image_size, 1)`, and uint8 labels.

    Raises:
        ValueError: As for `generate`.
    """
    train = generate(num_train, "train", image_size=image_size, seed=[seed, 0])
    test = generate(num_test, "test", image_size=image_size, seed=[seed, 1])
    return (train.images, train.labels), (test.images, test.labels)


def generate(
    num_problems,
    regime="train",
    candidates="contrasting",
    image_size=IMAGE_SIZE,
    seed=None,
    distraction=True,
):
    """Makes problems.

    The source and the target differ in their domain. In ordered domains, which
    are colours, sizes and quantities, training problems and the sources of
    test problems keep to the lower half of the values (of quantities to 1 to
    4), and the targets of test problems, whose domains are ordered ones, to
    the upper half: the extrapolation regime. What varies at random keeps to
    the lower half everywhere.

    Args:
        num_problems: Positive integer.
        regime: `"train"` or `"test"`.
        candidates: `"contrasting"`: beside the answer, what the other three
            relations would give. `"random"`: other values of the domain.
        image_size: Height and width in pixels, 24 or more.
        seed: Seed as `np.random.default_rng` takes it: the same problems every
            time. By default they are new ones.
        distraction: False for easier problems, without it: there are lines or
            shapes, three of them but where their number or places matter, and
            within a row they differ in its domain alone.

    Returns:
        `Problems` of arrays: `images`, uint8 `(n, 9, image_size, image_size,
        1)`, the three panels of the source, the two of the target, and the
        candidates; `labels` `(n,)`, which of the four is the answer;
        `relations` `(n,)` and `domains` `(n, 2)`, of source and target, places
        in `RELATIONS` and `DOMAINS`, all uint8; and `values`, boolean `(n, 9,
        10)`, whether a panel has a value in the domain of its row.

    Raises:
        ValueError: If there is no such regime or kind of candidates, or a
            number is out of its range.

    Example:

    >>> generate(3, image_size=80, seed=0).images.shape
    (3, 9, 80, 80, 1)
    """
    check_positive_integers(num_problems=num_problems)
    for name, value, known in (
        ("regime", regime, REGIMES),
        ("candidates", candidates, CANDIDATES),
    ):
        if value not in known:
            raise ValueError(
                f"`{name}` must be one of: {', '.join(known)}. Received: "
                f"{name}={value!r}"
            )
    if image_size < 24:
        raise ValueError(
            "`image_size` must be 24 or more, for nine shapes to be told apart."
            f" Received: image_size={image_size}"
        )
    rng = np.random.default_rng(seed)
    n = num_problems
    domains = _two_domains(rng, n, regime)
    relations = rng.integers(0, len(RELATIONS), n)
    no_xor = (domains == _QUANTITY).any(axis=1)
    others = np.delete(np.arange(len(RELATIONS)), _XOR)
    relations[no_xor] = rng.choice(others, no_xor.sum())

    # Sets of values as a bit for each: (n, panel, value).
    is_far = np.zeros(n, bool), np.full(n, regime == "test")
    rows = [
        _row(rng, domain, far)
        for domain, far in zip(domains.T, is_far, strict=True)
    ]
    every = np.arange(n)
    source, target = rows
    values = np.empty((n, NUM_PANELS, _NUM_VALUES), bool)
    values[:, :2] = source[:, :2]
    values[:, 2] = source[every, 2 + relations]
    values[:, 3:5] = target[:, :2]
    labels = rng.integers(0, 4, n)
    answers = target[every, 2 + relations]
    if candidates == "contrasting":
        # In random order, with the answer where the label says.
        foils = np.argsort(
            np.where(np.arange(4) == relations[:, None], 2, rng.random((n, 4))),
            axis=1,
        )[:, :3]
        foils = target[every[:, None], 2 + foils]
    else:
        foils = _random_foils(rng, domains[:, 1], is_far[1], answers)
    place = np.where(
        np.arange(4) == labels[:, None],
        3,
        np.cumsum(np.arange(4) != labels[:, None], axis=1) - 1,
    )
    choices = np.concatenate([foils, answers[:, None]], axis=1)
    values[:, 5:] = choices[every[:, None], place]

    panel_domains = np.repeat(domains, (3, 6), axis=1)
    panel_is_far = np.repeat(np.stack(is_far, axis=1), (3, 6), axis=1)
    images = _draw(
        rng,
        panel_domains.ravel(),
        values.reshape(-1, _NUM_VALUES),
        panel_is_far.ravel(),
        image_size,
        distraction,
    )
    return Problems(
        images.reshape(n, NUM_PANELS, image_size, image_size, 1),
        labels.astype("uint8"),
        relations.astype("uint8"),
        domains.astype("uint8"),
        values,
    )


def _two_domains(rng, n, regime):
    """Different ones; in a test, the target's is ordered."""
    target = rng.integers(0, len(DOMAINS), n)
    if regime == "test":
        ordered = [DOMAINS.index(name) for name in ORDERED_DOMAINS]
        target = rng.choice(ordered, n)
    source = (target + rng.integers(1, len(DOMAINS), n)) % len(DOMAINS)
    return np.stack([source, target], axis=1)


def _limits(domains, is_far):
    """First and last value of each row."""
    first, last, last_near = _RANGES[domains].T
    return np.where(is_far, last_near + 1, first), np.where(
        is_far, last, last_near
    )


def _row(rng, domains, is_far):
    """The two panels of each row, and what each relation makes of them.

    Returns:
        Boolean array `(n, 6, 10)`: whether a panel has a value.
    """
    first, last = _limits(domains, is_far)
    quantities = domains == _QUANTITY
    reach = np.where(quantities, 2, 3)
    v = first + rng.integers(0, last - first - reach + 1)
    up = rng.integers(0, 2, len(v)).astype(bool)
    step = np.where(up, 1, -1)
    v = np.where(up, v, v + reach)
    way = v[:, None] + step[:, None] * np.arange(4)
    # Which of the four values on the way each of the six panels has.
    of_sets = np.array(
        [
            (1, 1, 0, 0),
            (0, 1, 1, 0),
            (0, 1, 0, 0),
            (1, 1, 1, 0),
            (1, 0, 1, 0),
            (0, 0, 1, 1),
        ],
        bool,
    )
    smaller = np.where(up, 0, 1)
    value = np.arange(_NUM_VALUES)
    elsewhere = (value >= first[:, None]) & (value <= last[:, None])
    elsewhere &= (value != way[:, :3, None]).all(axis=1)
    other = np.where(elsewhere, rng.random(elsewhere.shape), 2).argmin(axis=1)
    counts = np.stack(
        [
            way[:, 0],
            way[:, 1],
            way[np.arange(len(v)), smaller],
            way[np.arange(len(v)), 1 - smaller],
            other,
            way[:, 2],
        ],
        axis=1,
    )
    panels = np.zeros((len(v), 6, _NUM_VALUES), bool)
    rows = np.arange(len(v))[:, None]
    for number in range(4):
        # A quantity has no fourth value on its way.
        place = np.clip(way[:, number, None], 0, _NUM_VALUES - 1)
        panels[rows, np.arange(6), place] |= of_sets[:, number]
    one = value == counts[..., None]
    return np.where(quantities[:, None, None], one, panels)


def _random_foils(rng, domains, is_far, answers):
    """Three other sets of one to three values, or quantities, `(n, 3, 10)`."""
    first, last = (limit[:, None] for limit in _limits(domains, is_far))
    value = np.arange(_NUM_VALUES)
    allowed = (value >= first) & (value <= last)
    sizes = rng.integers(1, 4, (len(domains), 24))
    order = np.where(
        allowed[:, None], rng.random((len(domains), 24, _NUM_VALUES)), 2
    ).argsort(axis=-1)
    drawn = np.zeros((len(domains), 24, _NUM_VALUES), bool)
    np.put_along_axis(drawn, order, value < sizes[..., None], axis=-1)
    drawn &= allowed[:, None]
    # Of quantities there may be no more than four: each of them once.
    quantities = domains == _QUANTITY
    drawn[quantities, :_NUM_VALUES] = (
        order[quantities, 0, :, None] == value
    ) & allowed[quantities, None]
    # The first three that differ from the answer and from each other.
    everything = np.concatenate([answers[:, None], drawn], axis=1)
    codes = everything @ (1 << value)
    seen = (codes[:, :, None] == codes[:, None]) & np.tri(25, k=-1, dtype=bool)
    fresh = ~seen.any(axis=-1)
    fresh[:, 0] = False
    chosen = np.argsort(~fresh, axis=1, kind="stable")[:, :3]
    return everything[np.arange(len(domains))[:, None], chosen]


def _draw(rng, domains, values, is_far, image_size, distraction):
    """Panels `(n, image_size, image_size)` with these values in one domain."""
    n = len(domains)
    # The panel whose draws each panel has in all other domains: its own, or
    # that of the first one in its row.
    drawn = np.arange(n)
    if not distraction:
        drawn -= drawn % NUM_PANELS - np.where(drawn % NUM_PANELS < 3, 0, 3)
    ranges = {
        name: _limits(np.full(n, number), is_far & (domains == number))
        for number, name in enumerate(DOMAINS)
    }

    def own(name):
        return domains == DOMAINS.index(name)

    def values_of(name, num_objects, is_there):
        """One value an object, `(n, num_objects)`.

        Of the panel's own domain every value is that of some object, and
        each object has one of them; else it is any.
        """
        first, last = (limit[:, None] for limit in ranges[name])
        anything = rng.integers(first, last + 1, (n, num_objects))[drawn]
        # Objects in random order take the values one after the other.
        turn = np.where(is_there, rng.random((n, num_objects)), 2)
        turn = turn.argsort(axis=1).argsort(axis=1)
        listed = np.argsort(~values, axis=1, kind="stable")
        count = np.maximum(values.sum(axis=1), 1)[:, None]
        mine = np.take_along_axis(listed, turn % count, axis=1)
        return np.where(own(name)[:, None], mine, anything)

    def some(num_places, number):
        """So many of the places, at random."""
        order = rng.random((n, num_places))[drawn]
        return order.argsort(axis=1).argsort(axis=1) < number[:, None]

    count = values.sum(axis=1)
    # Lines: at most three, one of a type; as a distraction, there may be none.
    of_lines = own("line_colour") | own("line_type")
    number = np.where(of_lines, rng.integers(1, 4, n), rng.integers(0, 3, n))
    number = np.where(own("line_colour"), np.maximum(number, count), number)
    if not distraction:
        number = np.where(of_lines, 3, 0)
    lines = some(6, number)
    lines = np.where(own("line_type")[:, None], values[:, :6], lines)
    line_colours = values_of("line_colour", 6, lines)

    # Shapes: one to four while training; more are a quantity beyond.
    first, last = ranges["shape_quantity"]
    number = rng.integers(first, last + 1)
    of_shapes = own("shape_colour") | own("shape_type") | own("shape_size")
    number = np.where(of_shapes, np.maximum(number, count), number)
    none = rng.random(n) < 0.5
    if not distraction:
        number[:], none[:] = 3, True
    quantity = own("shape_quantity")
    number[quantity] = values[quantity].argmax(axis=1)
    number[of_lines & none] = 0
    shapes = some(9, number)
    shapes = np.where(own("shape_position")[:, None], values[:, :9], shapes)
    shape_colours, shape_types, shape_sizes = (
        values_of(name, 9, shapes)
        for name in ("shape_colour", "shape_type", "shape_size")
    )

    objects = (
        *(lines, line_colours),
        *(shapes, shape_colours, shape_types, shape_sizes),
    )
    images = np.empty((n, image_size, image_size), "uint8")
    for start in range(0, n, 1_000):  # They take five times as much memory.
        images[start : start + 1_000] = _painted(
            *(what[start : start + 1_000] for what in objects), image_size
        )
    return images


def _painted(
    lines,
    line_colours,
    shapes,
    shape_colours,
    shape_types,
    shape_sizes,
    image_size,
):
    """Panels of which it is known what is where, one row each."""
    ink, outlines = _shapes(image_size // 3)
    strokes = _lines(image_size)
    panels = np.zeros((len(lines), image_size, image_size), "float32")
    for number in range(6):
        mine = np.flatnonzero(lines[:, number])
        shade = _darkness(line_colours[mine, number])[:, None, None]
        stroke = strokes[number]
        panels[mine] += stroke * (shade - panels[mine])
    tile = image_size // 3
    edge = (image_size - 3 * tile) // 2
    for place in range(9):
        mine = np.flatnonzero(shapes[:, place])
        kind = shape_types[mine, place], shape_sizes[mine, place]
        shade = _darkness(shape_colours[mine, place])[:, None, None]
        row, column = (edge + tile * x for x in divmod(place, 3))
        window = np.s_[mine, row : row + tile, column : column + tile]
        below = panels[window]
        filled = below + ink[kind] * (shade - below)
        panels[window] = filled + outlines[kind] * (1 - filled)
    return (255 - np.rint(255 * panels)).astype("uint8")


def _darkness(colours):
    """From 0.05, which is not quite white, to 0.86, lighter than outlines."""
    return np.float32(0.05) + np.float32(0.09) * colours.astype("float32")


@functools.cache
def _shapes(tile):
    """Fillings and outlines, two arrays (types, sizes, tile, tile) of 0..1."""
    detail = 4
    line = (np.arange(tile * detail) + 0.5) / (tile * detail) * 2 - 1
    x, y = np.meshgrid(line, line)
    angle, radius = np.arctan2(x, -y), np.hypot(x, y)

    def regular(corners, between):
        """How large a shape must be to reach each point: its corners are as far
        from the middle as it is large, and halfway from one to the next its
        border is `between` times as far.
        """
        half = np.pi / corners
        from_corner = np.abs(np.mod(angle + half, 2 * half) - half)
        across = np.array([np.cos(half), np.sin(half)]) * between
        normal = np.array([across[1], 1 - across[0]])
        size = radius * (np.cos(from_corner) * normal[0])
        size += radius * (np.sin(from_corner) * normal[1])
        return size / normal[0], normal[0] / np.hypot(*normal)

    kinds = [regular(n, np.cos(np.pi / n)) for n in (3, 4, 5, 6, 8)]
    kinds += [(radius, 1.0), regular(5, 0.45)]
    outline = 0.1  # A twentieth of a tile.
    fillings, outlines = [], []
    for reached_by, nearest in kinds:
        for size in np.linspace(0.4, 0.97, 10):
            fillings.append(reached_by <= size)
            outlines.append(
                fillings[-1] & (reached_by > size - outline / nearest)
            )
    shape = (len(kinds), 10, tile, detail, tile, detail)
    return tuple(
        np.reshape(masks, shape).mean((3, 5), dtype="float32")
        for masks in (fillings, outlines)
    )


@functools.cache
def _lines(image_size):
    """Strokes from edge to edge, an array (6, size, size) of 0..1."""
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


def load_npz(paths, image_size=IMAGE_SIZE):
    """Reads problems that the authors of Hill et al. (2019) published.

    Args:
        paths: Paths of the files, one a problem, or that of a single one, or
            of a folder that holds them.
        image_size: Height and width of the images returned: 160, or 80, for
            which every other pixel is left out. Webb et al., 2020, halve them,
            and do not say how.

    Returns:
        `(images, labels)`: uint8 `(n, 9, image_size, image_size, 1)`, five
        panels and four candidates, and uint8 `(n,)`, which of the four is the
        answer. Of a folder in the order of the names of its files.

    Raises:
        ValueError: If a file is truncated or not an `.npz`, lacks the arrays
            `image` or `target`, or holds them in another shape or range; or
            there are no files, or no such size.
        FileNotFoundError: If there is no such file.
    """
    if image_size not in (IMAGE_SIZE, IMAGE_SIZE // 2):
        raise ValueError(
            f"`image_size` must be 160 or 80. Received: image_size={image_size}"
        )
    if isinstance(paths, str | pathlib.Path):
        folder = pathlib.Path(paths)
        paths = sorted(folder.glob("*.npz")) if folder.is_dir() else [folder]
        if not paths:
            raise ValueError(f"There is no .npz file in {folder}.")
    step = IMAGE_SIZE // image_size
    images, labels = [], []
    for path in paths:
        image, label = _read_npz(path)
        # A copy, as a view would keep the whole image in memory.
        images.append(image[:, ::step, ::step, None].copy())
        labels.append(label)
    if not images:
        raise ValueError("`paths` must name a file. Received: none")
    return np.stack(images), np.array(labels, "uint8")


def _read_npz(path):
    # Other arrays are pickled, and are not read.
    limits = {"image": 256, "target": 4}
    arrays = read_npz(
        path, tuple(limits), "a visual analogy", _check_headers, limits
    )
    shape = NUM_PANELS, IMAGE_SIZE, IMAGE_SIZE
    return arrays["image"].reshape(shape), arrays["target"].item()


def _check_headers(headers):
    shape = NUM_PANELS, IMAGE_SIZE, IMAGE_SIZE
    for name, shapes in (
        ("image", (shape, (math.prod(shape),))),
        ("target", ((),)),
    ):
        # Axes of one do no harm.
        sizes = tuple(n for n in headers[name].shape if n != 1)
        if sizes not in shapes or headers[name].dtype.kind not in "iuf":
            raise ValueError(
                f"{name!r} should hold {math.prod(shapes[0])} numbers, of "
                f"shape {shapes[0]} or flat. Received: shape "
                f"{headers[name].shape}, dtype {headers[name].dtype}"
            )
