"""The Relations Game: which relation holds among the objects of an image?

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*,
section 3. An image is black and has 36×36 pixels, a 3×3 board of 12×12 tiles.
An object is a 9×9 square of 3×3 blocks, one pixel from the upper left corner of
its tile. There are three sets of objects (`OBJECT_SETS`): one to train on, and
two that are held out.

The paper defines each relation, but not how false images are drawn. Here they
follow the images that its authors published, of `between` and of the column
patterns. Two pentominoes or hexominoes that differ share only their shape, only
their colour, or neither, equally often. As a result, many negatives are near
misses. Two stripes that differ are drawn independently, and share a colour in
only 8 % of the images. The function of each task describes its false images.

The paper says that held-out objects also have other colours, and it counts 46
hexominoes. Here all sets have the same 25 colours, as in the published files,
and there are 48 hexominoes.
"""

import functools
import itertools
import pathlib
from collections.abc import Sequence

import numpy as np

from keras_relational.datasets.npz import read_npz
from keras_relational.random_streams import stream
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

IMAGE_SHAPE = (36, 36, 3)
# Largest number of images in a published file. The authors' largest file has
# 250,000.
MAX_NUM_IMAGES = 1_000_000
OBJECT_SETS = ("pentominoes", "hexominoes", "stripes")
PATTERNS = ("AAA", "AAB", "ABA", "ABB", "ABC")
ROW_PATTERNS = tuple(f"row_{pattern}" for pattern in PATTERNS)
COLUMN_PATTERNS = tuple(f"column_{pattern}" for pattern in PATTERNS)
TASKS = (
    "same",
    "between",
    "occurs",
    "xoccurs",
    "colour_and_shape",
    *ROW_PATTERNS,
    *COLUMN_PATTERNS,
    "match_rows",
)


# Red, green and blue of the 25 colours.
COLOURS = np.array(
    [
        colour
        for colour in itertools.product((64, 144, 192), repeat=3)
        if colour not in ((64, 64, 64), (192, 192, 192))
    ],
    dtype="uint8",
)

_POLYOMINOES = {
    "pentominoes": (  # F, P, T, U, V, W, X, Z
        (".##", "##.", ".#."),
        ("##.", "##.", "#.."),
        ("###", ".#.", ".#."),
        ("#.#", "###", "..."),
        ("#..", "#..", "###"),
        ("#..", "##.", ".##"),
        (".#.", "###", ".#."),
        ("##.", ".#.", ".##"),
    ),
    "hexominoes": (
        ("##.", ".##", "##."),
        ("##.", "###", "..#"),
        ("##.", "###", ".#."),
        ("###", ".#.", "##."),
        ("###", "#.#", "#.."),
        ("###", "##.", ".#."),
        ("###", "##.", "#.."),
        ("###", "###", "..."),
    ),
}

# How two objects differ, named after the feature that they share.
_SHAPE_ONLY, _COLOUR_ONLY, _NEITHER = range(3)


def generate(
    task: str | Sequence[str],
    num_examples: int,
    object_set: str = "pentominoes",
    seed: int | Sequence[int] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws labelled images of one task, or of several tasks.

    All tasks are equally likely, and so are all labels of a task. The labels
    are 0 (false) and 1 (true). `"colour_and_shape"` has four labels: 0 for the
    same shape and colour, 1 for the same shape only, 2 for the same colour
    only, and 3 for neither.

    Args:
        task: One of `TASKS`, or a sequence of them for a multi-task set.
        num_examples: Positive integer, the number of images.
        object_set: One of `OBJECT_SETS`.
        seed: Seed of `np.random.default_rng`. Equal seeds give equal data on
            any machine. By default the data are new each time. The seed of a
            `load_data` gives its training set.

    Returns:
        `(images, labels, task_ids)`: uint8 `(num_examples, 36, 36, 3)` in
        0..192, `(num_examples,)`, and `(num_examples,)`, the index of each
        image's task in `task` (0 if `task` is one task).

    Raises:
        ValueError: If an argument is unknown or out of range, or if
            `"colour_and_shape"` is to be drawn on stripes, which all have the
            same shape.

    Example:

    >>> images, labels, _ = generate("between", 4, seed=0)
    >>> images.shape, images.dtype, labels.shape
    ((4, 36, 36, 3), dtype('uint8'), (4,))
    """
    tasks = [task] if isinstance(task, str) else list(task)
    _check(tasks, num_examples, object_set)
    rng = np.random.default_rng(seed)
    task_ids = rng.integers(len(tasks), size=num_examples, dtype="uint8")
    labels = np.empty(num_examples, "uint8")
    # The shape and the colour on each of the nine tiles, -1 on an empty tile.
    board = np.full((2, num_examples, 9), -1, "int8")
    for task_id, name in enumerate(tasks):
        chosen = np.flatnonzero(task_ids == task_id)
        draw = _Draw(rng, object_set, len(chosen))
        labels[chosen] = _rule(name)(draw)
        board[:, chosen] = draw.board
    return render(board, object_set), labels, task_ids


def render(board: np.ndarray, object_set: str = "pentominoes") -> np.ndarray:
    """Draws objects on the tiles of boards.

    Args:
        board: Integer array `(2, n, 9)`: the shape and the colour of the object
            on each tile, row by row, as indices into `shape_masks(object_set)`
            and `COLOURS`. −1 leaves a tile empty. The "shape" of a stripe is
            the colour of its middle.
        object_set: One of `OBJECT_SETS`.

    Returns:
        uint8 array `(n, 36, 36, 3)`.

    Example:

    >>> board = np.full((2, 1, 9), -1)
    >>> board[:, 0, 4] = 0, 3  # The first shape, in the middle.
    >>> int(render(board)[0].any(-1).sum()) // 9  # Blocks of 3×3 pixels.
    5
    """
    shape, colour = board
    size = len(shape)
    image, tile = np.nonzero(shape >= 0)
    shape, colour = shape[image, tile], colour[image, tile]
    blocks = np.empty((len(shape), 3, 3, 3), "uint8")
    if object_set == "stripes":
        blocks[:, :, ::2] = COLOURS[colour][:, None, None]
        blocks[:, :, 1] = COLOURS[shape][:, None]
    else:
        masks = shape_masks(object_set)[shape][..., None]
        np.multiply(masks, COLOURS[colour][:, None, None], out=blocks)
    objects = blocks.repeat(3, axis=1).repeat(3, axis=2)
    images = np.zeros((size, *IMAGE_SHAPE), "uint8")
    # A view of the tiles of each image, (size, 3, 3, 12, 12, 3).
    tiles = images.reshape(size, 3, 12, 3, 12, 3).transpose(0, 1, 3, 2, 4, 5)
    tiles[image, tile // 3, tile % 3, 1:10, 1:10] = objects
    return images


def tiles(images: np.ndarray) -> np.ndarray:
    """Cuts images into their nine tiles, as entities for a layer of sets.

    Args:
        images: Uint8 array `(batch, 36, 36, 3)`.

    Returns:
        Float32 array `(batch, 9, 432)` between 0 and 1, row by row.

    Raises:
        ValueError: If the images are not uint8.

    Example:

    >>> images, _, _ = generate("same", 2, seed=0)
    >>> tiles(images).shape
    (2, 9, 432)
    """
    if images.dtype != "uint8":
        raise ValueError(
            "`images` must be uint8, with pixels from 0 to 255. Received: "
            f"images.dtype={images.dtype}"
        )
    cut = images.reshape(-1, 3, 12, 3, 12, 3).swapaxes(2, 3)
    return cut.reshape(-1, 9, 432).astype("float32") / 255


def load_data(
    task: str | Sequence[str],
    object_set: str = "hexominoes",
    num_train: int = 250_000,
    num_test: int = 10_000,
    seed: int = 0,
) -> tuple[tuple, tuple]:
    """Makes a training set of pentominoes and a test set of held-out objects.

    Args:
        task: One of `TASKS`, or a sequence of them for a multi-task set.
        object_set: The held-out set, one of `OBJECT_SETS`.
        num_train: Positive integer, the number of training images. The
            published sets hold 250,000.
        num_test: Positive integer, the number of test images.
        seed: Non-negative integer. Equal seeds give equal data. `generate` with
            the same seed makes the training set again: take another one for
            fresh examples.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: images and labels as of
        `generate`. With several tasks each `x` is a pair `(images, task_ids)`,
        as `models.relations_classifier` takes it.

    Raises:
        ValueError: As `generate` raises it.

    Example:

    >>> (x_train, y_train), (x_test, y_test) = load_data(
    ...     "same", num_train=8, num_test=4
    ... )
    >>> x_train.shape, x_test.shape
    ((8, 36, 36, 3), (4, 36, 36, 3))
    """
    check_positive_integers(num_train=num_train, num_test=num_test)
    splits = []
    for size, objects, name in (
        (num_train, "pentominoes", "train"),
        (num_test, object_set, "test"),
    ):
        images, labels, task_ids = generate(
            task, size, objects, stream(seed, name)
        )
        x = images if isinstance(task, str) else (images, task_ids)
        splits.append((x, labels))
    train, test = splits
    return train, test


def load_npz(
    path: pathlib.Path | str,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Reads one of the files that the authors of PrediNet published.

    Args:
        path: Path of a `.npz` file with the arrays `images` `(n, 36, 36, 3)` in
            0..255, `labels` `(n, 1)` and `tasks` `(n, 1)`, with at most a
            million images. Pickled objects are refused.

    Returns:
        `(images, labels, task_ids)`, in the form that `generate` returns.

    Raises:
        ValueError: If the file is damaged, or its arrays are not these.
        FileNotFoundError: If there is no such file.
    """
    arrays = read_npz(
        path,
        ("images", "labels", "tasks"),
        "a Relations Game file",
        _check_headers,
        dict.fromkeys(("images", "labels", "tasks"), 256),
    )
    return arrays["images"], arrays["labels"][:, 0], arrays["tasks"][:, 0]


def _check_headers(headers):
    size = headers["images"].shape[0] if headers["images"].shape else 0
    for name, shape in (
        ("images", (size, *IMAGE_SHAPE)),
        ("labels", (size, 1)),
        ("tasks", (size, 1)),
    ):
        found, dtype = headers[name]
        if found != shape or dtype.kind not in "iu":
            raise ValueError(
                f"{name!r} should hold integers of shape {shape}. Received: "
                f"shape {found}, dtype {dtype}"
            )
    if size > MAX_NUM_IMAGES:
        raise ValueError(
            f"it should hold at most {MAX_NUM_IMAGES:,} images. Received: "
            f"{size:,}"
        )


def _check(tasks, num_examples, object_set):
    for name in tasks:
        check_choice("task", name, TASKS)
    if not tasks:
        raise ValueError("`task` is an empty sequence. Name at least one task.")
    check_positive_integers(num_examples=num_examples)
    check_choice("object set", object_set, OBJECT_SETS)
    if object_set == "stripes" and "colour_and_shape" in tasks:
        raise ValueError(
            "The task 'colour_and_shape' needs objects that differ in shape, "
            "and all stripes are squares. Use object_set='hexominoes'."
        )


def shape_masks(object_set: str) -> np.ndarray:
    """The different shapes of a set of objects.

    The set has each shape in all orientations of its tile, turned and
    reflected: 37 pentominoes and 48 hexominoes. A stripe is a full square.
    Returns booleans `(num_shapes, 3, 3)`: which of the blocks are filled.
    """
    if object_set == "stripes":
        return np.ones((1, 3, 3), bool)
    turned = _turned(object_set).reshape(-1, 9)
    return np.unique(turned, axis=0).reshape(-1, 3, 3)


def _turned(object_set):
    """All shapes in all orientations, `(8 shapes, 8 orientations, 3, 3)`."""
    base = np.array(
        [
            [[block == "#" for block in row] for row in rows]
            for rows in _POLYOMINOES[object_set]
        ]
    )
    symmetries = [
        np.rot90(image, turns, axes=(1, 2))
        for image in (base, base[:, :, ::-1])
        for turns in range(4)
    ]
    return np.stack(symmetries, axis=1)


@functools.cache
def _shape_draws(object_set):
    """The number of each shape in each orientation, to be drawn uniformly.

    The "shape" of a stripe is the colour of its centre.
    """
    if object_set == "stripes":
        return np.arange(len(COLOURS))
    masks = shape_masks(object_set).reshape(-1, 9)
    turned = _turned(object_set).reshape(-1, 9)
    return (turned[:, None] == masks).all(-1).argmax(-1)


class _Draw:
    """Draws objects and places for the `size` images of one task.

    `board`, int8 `(2, size, 9)`, is the shape and the colour on each tile.
    """

    def __init__(self, rng, object_set, size):
        self.rng = rng
        self.object_set = object_set
        self.shapes = _shape_draws(object_set)
        self.size = size
        self.board = np.full((2, size, 9), -1, "int8")

    def choice(self, num_choices):
        return self.rng.integers(num_choices, size=self.size)

    def coin(self):
        return self.choice(2).astype(bool)

    def cells(self, count):
        """Draws `count` different tiles in each image."""
        return self.rng.random((self.size, 9)).argsort(axis=1)[:, :count]

    def thing(self):
        """Draws an object in each image: its shape and colour, `(2, size)`."""
        shape = self.shapes[self.choice(len(self.shapes))]
        return np.stack([shape, self.choice(len(COLOURS))])

    def unlike(self, thing, kind):
        """Draws objects that differ from `thing` in the way `kind`.

        Stripes differ by chance, and `kind` has no effect.
        """
        if self.object_set == "stripes":
            return self.different(thing)
        other = self._redraw(self.thing(), lambda new: (new == thing).any(0))
        return np.where(
            np.stack([kind == _SHAPE_ONLY, kind == _COLOUR_ONLY]), thing, other
        )

    def different(self, *things):
        """Draws objects that equal none of `things`, but may share a part."""
        return self._redraw(self.thing(), lambda new: _equals_any(new, things))

    def pattern(self, pattern):
        """Draws three objects in each image, in its pattern of `PATTERNS`."""
        a = self.thing()
        b = self.unlike(a, self.choice(3))
        c = self._redraw(
            self.unlike(a, self.choice(3)),
            lambda new: _equals_any(new, (a, b)),
            lambda: self.unlike(a, self.choice(3)),
        )
        objects = np.stack([a, b, c])
        letters = np.array([["ABC".index(x) for x in p] for p in PATTERNS])
        place = letters[pattern].T[:, None]
        return np.take_along_axis(objects, place, axis=0)

    def put(self, thing, cell):
        self.board[:, np.arange(self.size), cell] = thing

    def _redraw(self, thing, rejected, again=None):
        while (bad := rejected(thing)).any():
            thing = np.where(bad, (again or self.thing)(), thing)
        return thing


def _equals_any(thing, others):
    return np.any([(thing == other).all(0) for other in others], axis=0)


def _rule(name):
    if name in ROW_PATTERNS or name in COLUMN_PATTERNS:
        line, pattern = name.split("_")
        return functools.partial(_line_pattern, line, PATTERNS.index(pattern))
    return {
        "same": _same,
        "between": _between,
        "occurs": _occurs,
        "xoccurs": _xoccurs,
        "colour_and_shape": _colour_and_shape,
        "match_rows": _match_rows,
    }[name]


def _same(draw):
    """Two equal objects.

    False: they differ in one of the three ways, equally often.
    """
    label, kind = draw.coin(), draw.choice(3)
    _two_objects(draw, label, kind)
    return label


def _colour_and_shape(draw):
    """Two objects. The label is the way in which they differ."""
    label = draw.choice(4)
    _two_objects(draw, label == 0, label - 1)
    return label


def _two_objects(draw, are_equal, kind):
    first = draw.thing()
    second = np.where(are_equal, first, draw.unlike(first, kind))
    for thing, cell in zip((first, second), draw.cells(2).T, strict=True):
        draw.put(thing, cell)


# The three tiles of each line. The middle row is there twice: the published
# images have it twice as often as any other line.
_LINES = np.array(
    [
        *((0, 1, 2), (3, 4, 5), (3, 4, 5), (6, 7, 8)),
        *((0, 3, 6), (1, 4, 7), (2, 5, 8)),
        *((0, 4, 8), (2, 4, 6)),
    ]
)
# The share of the published false images whose objects are not in a line.
_OFF_LINE_SHARES = {"pentominoes": 0.22, "hexominoes": 0.22, "stripes": 0.47}
_OFF_LINES = np.array(
    [
        cells
        for cells in itertools.combinations(range(9), 3)
        if list(cells) not in _LINES.tolist()
    ]
)


def _between(draw):
    """Three objects in a line. The outer two are equal.

    False: in 22 % of these images (47 % on stripes) three unrelated objects are
    not in a line. In the others the outer two differ in one of the three ways.
    """
    label = draw.coin()
    share = _OFF_LINE_SHARES[draw.object_set]
    off_line = ~label & (draw.rng.random(draw.size) < share)
    kind = draw.choice(3)
    first, middle, unrelated = draw.thing(), draw.thing(), draw.thing()
    last = np.where(label, first, draw.unlike(first, kind))
    last = np.where(off_line, unrelated, last)
    cells = np.where(
        off_line[:, None],
        _OFF_LINES[draw.choice(len(_OFF_LINES))],
        _LINES[draw.choice(len(_LINES))],
    )
    for thing, cell in zip((first, middle, last), cells.T, strict=True):
        draw.put(thing, cell)
    return label


def _occurs(draw):
    """The object of the top row occurs among the three of the bottom row.

    False: one of them differs from it in one of the three ways.
    """
    label, kind = draw.coin(), draw.choice(3)
    top = draw.thing()
    match = np.where(label, top, draw.unlike(top, kind))
    others = draw.different(top), draw.different(top)
    _top_and_bottom(draw, top, match, *others)
    return label


def _xoccurs(draw):
    """`occurs`, but the other two objects of the bottom row must differ.

    They differ from each other, in one of the three ways, and from the top
    object. False, in equal shares: the top object does not occur (as in
    `occurs`), or it does and the other two are equal.
    """
    label, fails_to_occur = draw.coin(), draw.coin()
    kind, pair_kind = draw.choice(3), draw.choice(3)
    top = draw.thing()
    occurs = label | ~fails_to_occur
    match = np.where(occurs, top, draw.unlike(top, kind))
    second = draw.different(top)
    third = draw._redraw(
        draw.unlike(second, pair_kind),
        lambda new: (new == top).all(0),
        lambda: draw.unlike(second, draw.choice(3)),
    )
    third = np.where(label | fails_to_occur, third, second)
    _top_and_bottom(draw, top, match, second, third)
    return label


def _top_and_bottom(draw, top, *bottom):
    draw.put(top, draw.choice(3))
    columns = draw.rng.random((draw.size, 3)).argsort(axis=1)
    for thing, column in zip(bottom, columns.T, strict=True):
        draw.put(thing, 6 + column)


def _line_pattern(line, wanted, draw):
    """Three objects fill one row or column, in the wanted pattern.

    False: they have one of the other four patterns, equally often.
    """
    label = draw.coin()
    other = (wanted + 1 + draw.choice(4)) % len(PATTERNS)
    objects = draw.pattern(np.where(label, wanted, other))
    which = draw.choice(3)
    for step, thing in enumerate(objects):
        draw.put(thing, 3 * which + step if line == "row" else which + 3 * step)
    return label


def _match_rows(draw):
    """The top and the bottom row have the same pattern, with other objects."""
    label = draw.coin()
    top = draw.choice(len(PATTERNS))
    other = (top + 1 + draw.choice(4)) % len(PATTERNS)
    bottom = np.where(label, top, other)
    for row, pattern in ((0, top), (6, bottom)):
        for step, thing in enumerate(draw.pattern(pattern)):
            draw.put(thing, row + step)
    return label
