"""The Visual Analogy Extrapolation Challenge (VAEC): A is to B as C is to what?

Webb et al., 2020, *Learning Representations that Support Extrapolation*,
section 2.1. An image shows a green square on grey; its position from left to
right and from top to bottom, its width and its brightness each have one of 42
levels. The images of a problem differ in one of the four alone, by which B is
as far from A, and to the same side, as the answer D is from C. Training
problems use the seven lowest levels. Test problems use others, further and
further away (`regime="translation"`), or levels further and further apart
(`regime="scale"`).

A problem shows no more than seven images: its candidates are all seven, and
three of them are its terms A, B and C. So it is kept as their levels, 28 small
numbers, and `render` draws the images of a batch when they are needed.
"""

import collections
import itertools
import math

import numpy as np

DIMENSIONS = ("x", "y", "size", "brightness")
REGIMES = ("translation", "scale")
REGIONS = (1, 2, 3, 4, 5, 6)
NUM_LEVELS = 42
IMAGE_SIZE = 128
# One out of ten settings of the three dimensions that do not matter.
NUM_SETTINGS = 34

Problems = collections.namedtuple(
    "Problems", ("levels", "context", "candidates", "dimension", "distance")
)

# Of a square, by its level. Its red and blue are 0.
_CENTRES = 43 + np.arange(NUM_LEVELS)
_WIDTHS = 3 + 2 * np.arange(NUM_LEVELS)
_GREENS = np.linspace(102, 255, NUM_LEVELS).astype("int64")
_GREY = 128

# Of the arrays of a published problem, and what their numbers are below.
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


def load_data(regime="translation", seed=0):
    """Problems to train on, and problems that ask for extrapolation.

    Args:
        regime: `"translation"` or `"scale"`.
        seed: Non-negative integer that fixes the problems.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: `Problems` as `generate` returns
        them, in `x_train` those of region 1 and in `x_test` those of regions 2
        to 6, one region after the other; and for each the place of the answer
        among its candidates, uint8, which is always the first.

    Raises:
        ValueError: If there is no such regime.
    """
    train, *test = (
        generate(regime, region, [seed, region]) for region in REGIONS
    )
    x_test = Problems(*map(np.concatenate, zip(*test, strict=True)))
    return tuple(
        (problems, np.zeros(len(problems.levels), "uint8"))
        for problems in (train, x_test)
    )


def generate(regime="translation", region=1, seed=None):
    """Makes the 19,040 problems of a region, in random order.

    All pairs of two different pairs of levels that are the same distance apart,
    1 to 5 of 7 levels up or down (140), in each of the four dimensions, each
    with 34 of its own of the 343 settings of the other three.

    Args:
        regime: `"translation"`: region r has levels 7 (r − 1) to 7 (r − 1) + 6.
            `"scale"`: it has every r-th level, from 0 to 6 r.
        region: 1 to 6. The problems of region 1 are those to train on.
        seed: Seed as `np.random.default_rng` takes it: the same problems every
            time. By default they are new ones.

    Returns:
        `Problems` of arrays: `levels` `(n, 7, 4)`, for each image its level in
        each of `DIMENSIONS`; `context` `(n, 3)`, which of the images are A, B
        and C; `candidates` `(n, 7)`, which are D and, in ascending order, the
        foils, all uint8; `dimension` `(n,)`, that which matters, uint8; and
        `distance` `(n,)`, from A to B, int8, 1 for neighbours.

    Raises:
        ValueError: If there is no such regime or region.
    """
    if regime not in REGIMES:
        raise ValueError(
            f"Unknown regime {regime!r}. Expected one of: {', '.join(REGIMES)}"
        )
    if region not in REGIONS:
        raise ValueError(
            f"`region` must be one of {REGIONS}. Received: region={region}"
        )
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


def render(levels, image_size=IMAGE_SIZE):
    """Draws images.

    The square is (0, green, 0) on (128, 128, 128). It reaches from its centre
    half its width to all sides, with cut off fractions and both ends included:
    one of width 3 covers 4 × 4 pixels.

    Args:
        levels: Integer array `(..., 4)`, as in `Problems`.
        image_size: Height and width in pixels, 128 or a divisor of it. A pixel
            of a smaller image is the mean of those that it stands for.

    Returns:
        uint8 array `(..., image_size, image_size, 3)`.

    Raises:
        ValueError: If there are no such levels, or `image_size` does not divide
            128.

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
            f"Levels go from 0 to {NUM_LEVELS - 1}. Received: {levels.min()} "
            f"to {levels.max()}"
        )
    if image_size < 1 or IMAGE_SIZE % image_size:
        raise ValueError(
            f"`image_size` must be a divisor of {IMAGE_SIZE}. Received: "
            f"image_size={image_size}"
        )
    block = IMAGE_SIZE // image_size
    x, y, size, brightness = np.moveaxis(levels.reshape(-1, 4), -1, 0)
    width = _WIDTHS[size]

    def covered(centre):
        """How many lines of pixels of each block of them the square covers."""
        starts = block * np.arange(image_size)
        first = (2 * centre - width) // 2
        last = (2 * centre + width) // 2
        ends = np.minimum(last[:, None] + 1, starts + block)
        return np.maximum(ends - np.maximum(first[:, None], starts), 0)

    # Rows of which the square covers as many lines look alike.
    lines = np.arange(block + 1)[:, None]
    area = lines * covered(_CENTRES[x])[:, None]
    colours = np.zeros((len(x), 1, 3), "int64")
    colours[..., 1] = _GREENS[brightness][:, None]
    # What a pixel looks like, by how much of it the square covers.
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
    """Bytes `(n, k, size)` as `n * k` items, which are taken as fast as one."""
    size = array.shape[-1]
    return array.reshape(-1, size).view(np.dtype((np.void, size)))[:, 0]


def load_hdf5(path):
    """Reads one of the files that the VAEC authors published.

    Such as `analogy_train.hy`, `analogy_test1.hy`, `analogy_scale_train.hy`.
    They tell levels within the region, 0 to 6; which region it is, is seen from
    the images of the first problem. The other images follow from the levels and
    are not read, and so do the distances: `dist` is only looked for.

    Args:
        path: An HDF5 file with a group for each problem, `"0"`, `"1"` and so
            on, with `imgs` `(7, 128, 128, 3)`, `latent_class` `(7, 4)`, `ABCD`
            `(4,)`, `not_D` `(6,)`, `analogy_dim` and `dist`.

    Returns:
        `Problems` as `generate` returns them, in the order of the file.

    Raises:
        ValueError: If the file cannot be read as HDF5, a problem lacks an
            array or has one of another shape or range, or stored otherwise than
            the published ones are: as a link, in another file, or in chunks; if
            a problem is none along its dimension alone, or the first problem's
            images are those of no region.
        FileNotFoundError: If there is no such file.
        ImportError: If h5py is not installed.
    """
    import h5py

    found = {name: [] for name in _LIMITS}
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
    # What h5py raises of a damaged file is of any class.
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as a VAEC file: {error or repr(error)}. "
            "Expected an intact HDF5 file with the groups '0', '1', … and in "
            f"each the arrays {', '.join(_SHAPES)}."
        ) from error
    (images,) = found.pop("imgs")
    arrays = {name: np.array(values) for name, values in found.items()}
    a_b_c, d = arrays["ABCD"][:, :3], arrays["ABCD"][:, 3:]
    candidates = np.concatenate([d, arrays["not_D"]], axis=1)
    if (np.sort(candidates) != np.arange(7)).any():
        raise ValueError(
            f"{path}: the last of 'ABCD' and the six of 'not_D' should be all "
            "seven images of a problem."
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
            f"{path}: problem {wrong.argmax()} should be an analogy, its seven "
            "images different along 'analogy_dim' and in nothing else. "
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
    """What a group itself holds, not by a link to a name or another file."""
    import h5py

    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(
            f"{group.name} should hold {name!r} itself, which is missing or "
            "only a link"
        )
    item = group[name]
    if not isinstance(item, kind):
        raise ValueError(
            f"{name!r} in {group.name} should be a {kind.__name__.lower()}"
        )
    return item


def _check_dataset(what, data, shape):
    """Refuses other arrays before anything of them is read."""
    import h5py

    flat = (math.prod(shape),)
    # As they are, flat, or with axes of one.
    sizes = [tuple(n for n in x if n != 1) for x in (data.shape, shape, flat)]
    if sizes[0] not in sizes[1:]:
        raise ValueError(
            f"{what} should have shape {shape}. Received: {data.shape}"
        )
    if data.dtype.kind not in "iuf":
        raise ValueError(
            f"{what} should hold numbers. Received: dtype {data.dtype}"
        )
    # Chunks may claim any size, and be inflated to any.
    properties = data.id.get_create_plist()
    as_published = (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT)
    if properties.get_layout() not in as_published or data.external:
        raise ValueError(
            f"{what} should be stored in the file itself, in one piece, "
            "as published: not in chunks, compressed or in other files. h5py "
            "writes it so with group[name] = array"
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
    """Levels from those within a region, or within a scale."""
    for region in REGIONS:
        for seen in (levels + 7 * (region - 1), levels * region):
            if seen.max() < NUM_LEVELS and (render(seen[0]) == images).all():
                return seen
    raise ValueError(
        f"{path}: the images of the first problem are not those of its levels "
        f"in any region or at any scale of {REGIONS}. Expected the published "
        "images, as they are."
    )
