"""The Visual Analogy Extrapolation Challenge (VAEC): A is to B as C is to what?

Webb et al., 2020, *Learning Representations that Support Extrapolation*,
section 2.1. An image shows a green square on grey. The horizontal position, the
vertical position, the size and the brightness of the square each have one of 42
levels. The images of a problem differ in one of these dimensions only. In this
dimension the step from A to B equals the step from C to the answer D. Training
problems use the seven lowest levels. Test problems use levels that are farther
and farther away (`regime="translation"`), or farther and farther apart
(`regime="scale"`).

A problem has seven images: they are its candidates, and three of them are also
the terms A, B and C. It is stored as the levels of these images, 28 small
numbers. `render` draws the images of a batch on demand.
"""

import itertools
import math
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

DIMENSIONS = ("x", "y", "size", "brightness")
REGIMES = ("translation", "scale")
REGIONS = (1, 2, 3, 4, 5, 6)
NUM_LEVELS = 42
IMAGE_SIZE = 128
# The number of settings of the three other dimensions: a tenth of 7³.
NUM_SETTINGS = 34


class Problems(NamedTuple):
    """Problems, stored as the levels of their images.

    Attributes:
        levels: uint8 `(n, 7, 4)`, the level of each image in each of
            `DIMENSIONS`.
        context: uint8 `(n, 3)`, which of the images are A, B and C.
        candidates: uint8 `(n, 7)`, which of the images are D and, in ascending
            order, the foils.
        dimension: uint8 `(n,)`, the dimension in which the images differ.
        distance: int8 `(n,)`, the step from A to B; neighbours are 1 apart.
    """

    levels: np.ndarray
    context: np.ndarray
    candidates: np.ndarray
    dimension: np.ndarray
    distance: np.ndarray


# Centre, width and green of a square at each level. Its red and blue are 0.
_CENTRES = 43 + np.arange(NUM_LEVELS)
_WIDTHS = 3 + 2 * np.arange(NUM_LEVELS)
_GREENS = np.linspace(102, 255, NUM_LEVELS).astype("int64")
_GREY = 128

# The shapes of the arrays of a published problem. Their numbers are below the
# limits.
_SHAPES = {
    "imgs": (7, IMAGE_SIZE, IMAGE_SIZE, 3),
    "latent_class": (7, 4),
    "ABCD": (4,),
    "not_D": (6,),
    "analogy_dim": (),
    "dist": (),
}
_LIMITS = {
    "imgs": 256,
    "latent_class": NUM_LEVELS,
    "ABCD": 7,
    "not_D": 7,
    "analogy_dim": len(DIMENSIONS),
}


def load_data(
    regime: str = "translation", seed: int = 0
) -> tuple[tuple[Problems, np.ndarray], tuple[Problems, np.ndarray]]:
    """Makes problems to train on, and problems that ask for extrapolation.

    Args:
        regime: `"translation"` or `"scale"`.
        seed: Non-negative integer. Equal seeds give equal data.

    Returns:
        `(x_train, y_train), (x_test, y_test)`. `x_train` are the `Problems` of
        region 1, and `x_test` those of regions 2 to 6, one region after the
        other. The labels are uint8, the index of the answer among the
        candidates: always 0.

    Raises:
        ValueError: If the regime is unknown.
    """
    # The region is also the number of its random stream.
    train, *test = (
        generate(regime, region, [seed, region]) for region in REGIONS
    )
    x_test = Problems(*map(np.concatenate, zip(*test, strict=True)))
    y_train, y_test = (
        np.zeros(len(problems.levels), "uint8") for problems in (train, x_test)
    )
    return (train, y_train), (x_test, y_test)


def generate(
    regime: str = "translation",
    region: int = 1,
    seed: int | Sequence[int] | None = None,
) -> Problems:
    """Makes the 19,040 problems of a region, in random order.

    There are 140 choices of A, B, C and D: two different pairs of levels with
    the same step, 1 to 5 levels up or down. Each is used in each of the four
    dimensions, with 34 of the 343 settings of the other three dimensions.

    Args:
        regime: `"translation"`: region r has the seven levels from 7 (r − 1)
            on. `"scale"`: region r has every r-th level, from 0 to 6 r.
        region: Integer, 1 to 6. Region 1 is for training.
        seed: Seed of `np.random.default_rng`. Equal seeds give equal data. By
            default the data are new each time.

    Returns:
        `Problems`.

    Raises:
        ValueError: If the regime or the region is unknown.
    """
    check_choice("regime", regime, REGIMES)
    check_choice("region", region, REGIONS)
    rng = np.random.default_rng(seed)
    terms = np.array(
        [
            (a, a + distance, c, c + distance)
            for distance in (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
            for a, c in itertools.permutations(range(7), 2)
            if 0 <= a + distance < 7 and 0 <= c + distance < 7
        ]
    )
    foils = np.array(
        [[level for level in range(7) if level != d] for d in terms[:, 3]]
    )
    others = np.array(list(itertools.product(range(7), repeat=3)))
    draws = rng.random((4, len(terms), len(others)))
    settings = draws.argsort(axis=-1)[..., :NUM_SETTINGS]
    dimension, kind, setting = np.unravel_index(
        rng.permutation(settings.size), settings.shape
    )
    settings = others[settings[dimension, kind, setting]]
    levels = np.empty((len(settings), 7, 4), "uint8")
    for number in range(4):
        mine = dimension == number
        levels[mine] = np.insert(
            settings[mine, None].repeat(7, 1), number, np.arange(7), axis=-1
        )
    if regime == "translation":
        levels += 7 * (region - 1)
    else:
        levels *= region

    candidates = np.concatenate([terms[:, 3:], foils], axis=1)
    return Problems(
        levels,
        terms[kind, :3].astype("uint8"),
        candidates[kind].astype("uint8"),
        dimension.astype("uint8"),
        (terms[kind, 1] - terms[kind, 0]).astype("int8"),
    )


def render(levels: np.ndarray, image_size: int = IMAGE_SIZE) -> np.ndarray:
    """Draws images.

    The square has the colour (0, green, 0), on (128, 128, 128). It covers all
    pixels from its centre minus half its width to its centre plus half its
    width, both rounded down and both included: a square of width 3 covers 4 × 4
    pixels.

    Args:
        levels: Integer array `(..., 4)`, as in `Problems`.
        image_size: Height and width in pixels, 128 or a divisor of it. A pixel
            of a smaller image is the mean of the pixels that it replaces.

    Returns:
        uint8 array `(..., image_size, image_size, 3)`.

    Raises:
        ValueError: If the levels are unknown, or `image_size` is no divisor of
            128 pixels.

    Example:

    >>> render([[41, 0, 3, 20]]).shape
    (1, 128, 128, 3)
    """
    levels = np.asarray(levels)
    if levels.dtype.kind not in "iu" or levels.shape[-1:] != (4,):
        raise ValueError(
            "`levels` must be integers, four an image. Received: levels of "
            f"shape {levels.shape}, dtype {levels.dtype}"
        )
    if levels.size and not 0 <= levels.min() <= levels.max() < NUM_LEVELS:
        raise ValueError(
            f"`levels` must be from 0 to {NUM_LEVELS - 1}. Received: levels "
            f"from {levels.min()} to {levels.max()}"
        )
    check_positive_integers(image_size=image_size)
    if IMAGE_SIZE % image_size:
        raise ValueError(
            f"`image_size` must be a divisor of {IMAGE_SIZE}. Received: "
            f"image_size={image_size}"
        )
    block = IMAGE_SIZE // image_size
    x, y, size, brightness = np.moveaxis(levels.reshape(-1, 4), -1, 0)
    width = _WIDTHS[size]

    def covered(centre):
        """The number of covered rows, or columns, in each block of them."""
        starts = block * np.arange(image_size)
        first = (2 * centre - width) // 2
        last = (2 * centre + width) // 2
        ends = np.minimum(last[:, None] + 1, starts + block)
        return np.maximum(ends - np.maximum(first[:, None], starts), 0)

    # Rows of blocks look alike if the square covers equally many of their rows.
    lines = np.arange(block + 1)[:, None]
    area = lines * covered(_CENTRES[x])[:, None]
    colours = np.zeros((len(x), 1, 3), "int64")
    colours[..., 1] = _GREENS[brightness][:, None]
    # The colour of a pixel, for each number of covered pixels in its block.
    shares = np.arange(block**2 + 1)[:, None]
    shades = _GREY * block**2 + (colours - _GREY) * shares + block**2 // 2
    shades = (shades // block**2).astype("uint8")
    rows = _as_items(shades).take(
        (block**2 + 1) * np.arange(len(x))[:, None, None] + area
    )
    rows = rows.view("uint8").reshape(len(x), block + 1, 3 * image_size)
    images = _as_items(rows).take(
        (block + 1) * np.arange(len(x))[:, None] + covered(_CENTRES[y])
    )
    return images.view("uint8").reshape(
        *levels.shape[:-1], image_size, image_size, 3
    )


def _as_items(array):
    """Views bytes `(n, k, size)` as `n * k` items, so that `take` is fast."""
    size = array.shape[-1]
    return array.reshape(-1, size).view(np.dtype((np.void, size)))[:, 0]


def model_inputs(
    problems: Problems, image_size: int = IMAGE_SIZE
) -> dict[str, np.ndarray]:
    """Problems as `models.analogy_scorer` takes them, with images drawn.

    >>> two = Problems(*(x[:2] for x in generate(seed=0)))
    >>> model_inputs(two, image_size=16)["images"].shape
    (2, 7, 16, 16, 3)
    """
    return {
        "images": render(problems.levels, image_size),
        "context": problems.context.astype("int32"),
        "candidates": problems.candidates.astype("int32"),
    }


def load_hdf5(path: pathlib.Path | str) -> Problems:
    """Reads one of the files that the authors of VAEC published.

    Examples are `analogy_train.hy`, `analogy_test1.hy` and
    `analogy_scale_train.hy`. Their levels are relative to a region, 0 to 6. The
    images of the first problem show which region it is. All other images and
    the distances follow from the levels, so they are not read.

    Args:
        path: Path of an HDF5 file with a group for each problem, `"0"`, `"1"`
            and so on. A group has the arrays `imgs` `(7, 128, 128, 3)`,
            `latent_class` `(7, 4)`, `ABCD` `(4,)`, `not_D` `(6,)`,
            `analogy_dim` and `dist`.

    Returns:
        `Problems`, in the order of the file.

    Raises:
        ValueError: If the file is damaged, or its arrays are not these; if an
            array is a link, in chunks or in another file, as no published one
            is; if the images of a problem differ in more than its dimension; or
            if the first problem's images belong to no region.
        FileNotFoundError: If there is no such file.
        ImportError: If h5py is not installed.
    """
    import h5py

    found: dict[str, list[np.ndarray]] = {name: [] for name in _LIMITS}
    try:
        with h5py.File(path, "r") as file:
            for number in range(len(file)):
                group = _linked(file, str(number), h5py.Group)
                for name, shape in _SHAPES.items():
                    data = _linked(group, name, h5py.Dataset)
                    what = f"{name!r} of problem {number}"
                    _check_dataset(what, data, shape)
                    if name in found and (name != "imgs" or not number):
                        array = _whole_numbers(what, data, _LIMITS[name])
                        found[name].append(array.reshape(shape))
            if not len(file):
                raise ValueError("it holds no problem")
    except FileNotFoundError:
        raise
    # For a damaged file h5py raises exceptions of many classes.
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as a VAEC file: {error or repr(error)}. "
            "Expected an intact HDF5 file with the groups '0', '1', … and in "
            f"each the arrays {', '.join(_SHAPES)}."
        ) from error
    (images,) = found.pop("imgs")
    arrays = {name: np.array(values) for name, values in found.items()}
    return _problems(path, arrays, images)


def load_regions(
    paths: Sequence[pathlib.Path | str],
) -> tuple[str, list[Problems]]:
    """Reads the six files of one regime that the authors of VAEC published.

    Args:
        paths: Paths of the files in the order of their regions: the training
            problems first.

    Returns:
        `(regime, regions)`: one of `REGIMES`, and a list of `Problems`, one
        item a region.

    Raises:
        ValueError: As `load_hdf5` raises it.
    """
    regions = [load_hdf5(path) for path in paths]
    # In the translation regime the levels of region 2 start above 0. In the
    # scale regime they start at 0 and are farther apart.
    regime = "translation" if regions[1].levels.min() else "scale"
    return regime, regions


def _problems(path, arrays, images):
    """Makes `Problems` of the arrays of a file, and of its first images."""
    a_b_c, d = arrays["ABCD"][:, :3], arrays["ABCD"][:, 3:]
    candidates = np.concatenate([d, arrays["not_D"]], axis=1)
    if (np.sort(candidates) != np.arange(7)).any():
        raise ValueError(
            f"{path}: the last image of 'ABCD' and the six images of 'not_D' "
            "should be all seven images of a problem."
        )
    levels, dimension = arrays["latent_class"], arrays["analogy_dim"]
    rows = np.arange(len(levels))
    varying = levels[rows, :, dimension]
    steps = varying.argsort(axis=1).argsort(axis=1)
    a, b, c, d = (steps[rows, image] for image in arrays["ABCD"].T)
    others = np.arange(len(DIMENSIONS)) != dimension[:, None, None]
    wrong = ((levels != levels[:, :1]) & others).any(axis=(1, 2))
    wrong |= (np.diff(np.sort(varying), axis=1) == 0).any(axis=1)
    wrong |= (b - a != d - c) | (b == a)
    if wrong.any():
        raise ValueError(
            f"{path}: problem {wrong.argmax()} should be an analogy: its seven "
            "images should differ along 'analogy_dim' and in nothing else. "
            f"Received: analogy_dim={dimension[wrong][0]}, "
            f"ABCD={arrays['ABCD'][wrong][0]}, latent_class="
            f"{levels[wrong][0].tolist()}"
        )
    return Problems(
        _levels_seen(path, levels, images).astype("uint8"),
        a_b_c.astype("uint8"),
        candidates.astype("uint8"),
        dimension.astype("uint8"),
        (b - a).astype("int8"),
    )


def _linked(group, name, kind):
    """Returns an item of a group, unless it is a soft or external link."""
    import h5py

    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(
            f"{group.name} should hold {name!r} itself, but it is missing or "
            "only a link"
        )
    item = group[name]
    if not isinstance(item, kind):
        raise ValueError(
            f"{name!r} in {group.name} should be a {kind.__name__.lower()}"
        )
    return item


def _check_dataset(what, data, shape):
    """Refuses an array of another kind before it is read."""
    import h5py

    flat = (math.prod(shape),)
    # The array may also be flat, or have axes of size one.
    sizes = [tuple(n for n in x if n != 1) for x in (data.shape, shape, flat)]
    if sizes[0] not in sizes[1:]:
        raise ValueError(
            f"{what} should have shape {shape}. Received: {data.shape}"
        )
    if data.dtype.kind not in "iuf":
        raise ValueError(
            f"{what} should hold numbers. Received: dtype {data.dtype}"
        )
    # A chunk may claim any size, and may inflate to any size.
    properties = data.id.get_create_plist()
    as_published = (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT)
    if properties.get_layout() not in as_published or data.external:
        raise ValueError(
            f"{what} should be stored in the file itself in one piece, as "
            "published: not in chunks, compressed, or in other files. With "
            "h5py, group[name] = array writes it so"
        )


def _whole_numbers(what, data, limit):
    array = np.asarray(data[()])
    if not (array.min() >= 0 and array.max() < limit):
        raise ValueError(
            f"{what} should lie in 0..{limit - 1}. Received: "
            f"{array.min()}..{array.max()}"
        )
    if (array % 1 != 0).any():
        raise ValueError(f"{what} should hold whole numbers")
    return array.astype("int64")


def _levels_seen(path, levels, images):
    """Turns levels of a region into levels of all regions."""
    for region in REGIONS:
        for seen in (levels + 7 * (region - 1), levels * region):
            if seen.max() < NUM_LEVELS and (render(seen[0]) == images).all():
                return seen
    raise ValueError(
        f"{path}: the images of the first problem are not those of its levels "
        f"in any region or at any scale of {REGIONS}. Expected the published "
        "images, unchanged."
    )
