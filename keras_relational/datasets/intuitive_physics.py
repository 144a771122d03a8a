"""Intuitive physics: could this have happened?

Riochet et al., 2019, *IntPhys: A Framework and Benchmark for Visual Intuitive
Physics Reasoning*, as in Goyal et al., 2020, *Factorizing Declarative and
Procedural Knowledge in Structured, Dynamical Environments* (SCOFF), section 5
and appendix E. Objects move behind an occluder and come out again, or
something happens to one of them behind it, by block:

- `"O1"`, object permanence: it vanishes, or comes from nowhere;
- `"O2"`, shape constancy: it takes on another shape;
- `"O3"`, spatio-temporal continuity: it jumps ahead, or falls back.

A model sees possible clips alone in training. A test set has four clips, made
as in the benchmark: two are possible and differ in one object. The impossible
two go over from one of these to the other while it is hidden, and so consist of
the same frames.

The published clips are of a three-dimensional scene. `generate` draws simple
flat ones; `read_published` and `read_published_train` read the published files.
"""

import pathlib

import numpy as np

from keras_relational.datasets.balanced_labels import balanced_labels
from keras_relational.datasets.png import read_png
from keras_relational.datasets.shapes import SHAPES
from keras_relational.datasets.shapes import draw
from keras_relational.file_io import read_json
from keras_relational.validation import check_positive_integers

BLOCKS = ("O1", "O2", "O3")
IMAGE_SHAPE = (64, 64, 3)
NUM_FRAMES = 50
LEAST_NUM_FRAMES = 20
MAX_NUM_OBJECTS = 3
COLOURS = np.array(
    [
        *((220, 40, 40), (40, 180, 60), (50, 80, 230)),
        *((235, 220, 50), (220, 70, 220), (60, 220, 220)),
    ],
    "uint8",
)

# In pixels. Sizes are half an object's width; an object goes so far in a clip.
_HORIZON = 34
_OCCLUDER_TOP, _OCCLUDER_BOTTOM = 30, 62
_OCCLUDER_WIDTHS = (26, 28)
_OCCLUDER_CENTRES = (29, 35)
_FLOORS = (43, 51, 59)
_SIZES = (4, 5)
_DISTANCES = (44, 52)
_JUMP = 8
# Lowest and highest shade of grey of wall, ground and occluder.
_SHADES = ((170, 210), (110, 150), (50, 90))


def load_data(
    block, num_train=1_000, num_test=100, num_frames=NUM_FRAMES, seed=0
):
    """Possible clips to train on, and sets of four to test on.

    Args:
        block: One of `BLOCKS`, for the test sets.
        num_train: Number of training clips, of 614 kB each with 50 frames.
        num_test: Number of test sets, of four such clips.
        num_frames: Integer, 20 or more.
        seed: Non-negative integer.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: clips as `generate_possible` and
        sets as `generate` returns them, and uint8 arrays `(num_train,)` and
        `(num_test, 4)`, 1 for possible clips and 0 for others.

    Raises:
        ValueError: As for `generate`.
    """
    x_train = generate_possible(num_train, num_frames, seed=[seed, 0])
    x_test = generate(block, num_test, num_frames, seed=[seed, 1])
    y_test = np.tile(np.array([1, 1, 0, 0], "uint8"), (num_test, 1))
    return (x_train, np.ones(num_train, "uint8")), (x_test, y_test)


def generate(block, num_sets, num_frames=NUM_FRAMES, seed=None):
    """Makes test sets of two possible and two impossible clips.

    One to three objects, each a sphere, a cube or a cone in a colour of its
    own, move evenly from left to right or back, each at its own depth. To one
    of them it happens: the possible clips show it and do not (O1), show it in
    one shape and in another (O2), or show it eight pixels behind and ahead
    (O3). The first impossible clip begins as the first possible one and ends as
    the second, the second the other way round; when it goes over is drawn from
    the frames in which both show nothing of the object.

    Args:
        block: One of `BLOCKS`.
        num_sets: Positive integer.
        num_frames: Integer, 20 or more; the published clips have 100.
        seed: Seed as `np.random.default_rng` takes it: the same sets every
            time. By default they are new ones.

    Returns:
        uint8 array `(num_sets, 4, num_frames, 64, 64, 3)`; of four clips, the
        first two are possible.

    Raises:
        ValueError: If there is no such block or a number is too small.

    Example:

    >>> generate("O1", 2, num_frames=20, seed=0).shape
    (2, 4, 20, 64, 64, 3)
    """
    _check_block(block)
    _check_numbers("num_sets", num_sets, num_frames)
    rng = np.random.default_rng(seed)
    blocks = np.full(num_sets, BLOCKS.index(block))
    scenes, cut = _scenes(rng, blocks, num_frames)
    first, second = (
        _render(scenes, np.full(num_sets, clip), num_frames) for clip in (0, 1)
    )
    late = (np.arange(num_frames) >= cut[:, None])[..., None, None, None]
    clips = np.empty((num_sets, 4, *first.shape[1:]), "uint8")
    clips[:, 0], clips[:, 1] = first, second
    clips[:, 2] = np.where(late, second, first)
    clips[:, 3] = np.where(late, first, second)
    return clips


def generate_possible(num_sequences, num_frames=NUM_FRAMES, seed=None):
    """Makes possible clips to train on.

    They are distributed as the possible clips of the test sets, a third as
    those of each block.

    Args:
        num_sequences: Positive integer.
        num_frames: Integer, 20 or more.
        seed: Seed as `np.random.default_rng` takes it: the same clips every
            time. By default they are new ones.

    Returns:
        uint8 array `(num_sequences, num_frames, 64, 64, 3)`.

    Raises:
        ValueError: If a number is too small.

    Example:

    >>> generate_possible(2, seed=0).shape
    (2, 50, 64, 64, 3)
    """
    _check_numbers("num_sequences", num_sequences, num_frames)
    rng = np.random.default_rng(seed)
    blocks = balanced_labels(rng, num_sequences, len(BLOCKS))
    scenes, _ = _scenes(rng, blocks, num_frames)
    return _render(scenes, rng.integers(2, size=num_sequences), num_frames)


def read_published(folder, block, image_size=IMAGE_SHAPE[0]):
    """Reads the test sets of a block of the published benchmark.

    Its dev set, whose folder has one of `O1` to `O3` for each block, in that
    one for each set (`01`, `02`, …), in that `1` to `4`, the clips, and in each
    of these `status.json`, whose `header` tells by `is_possible` what it is,
    and the frames, `scene/scene_001.png` and so on. The published test set does
    not tell which clips are possible, and so cannot be read.

    Args:
        folder: Path of the folder of the dev set.
        block: One of `BLOCKS`.
        image_size: Height and width to which images are reduced, each pixel the
            mean of those it stands for; the published ones have 288.

    Returns:
        uint8 array `(num_sets, 4, num_frames, image_size, image_size, 3)`, as
        `generate` returns it, in the order of the names of the sets.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If there is no such block or folder, `image_size` is not
            positive, a clip, a frame or a status is missing or cannot be read,
            a set does not have two possible and two impossible clips, or clips
            differ in length.
    """
    _check_block(block)
    check_positive_integers(image_size=image_size)
    sets = []
    for path in _folders(pathlib.Path(folder) / block, "a set of four clips"):
        clips = [path / str(number) for number in (1, 2, 3, 4)]
        possible = np.array([_is_possible(clip) for clip in clips])
        if possible.sum() != 2:
            raise ValueError(
                f"{path} should hold two possible and two impossible clips. "
                f"Received: {int(possible.sum())} possible ones of four"
            )
        order = np.argsort(~possible, kind="stable")
        sets.append([_read_clip(clips[i], image_size) for i in order])
    lengths = {len(clip) for clips in sets for clip in clips}
    if len(lengths) > 1:
        raise ValueError(
            f"All clips in {pathlib.Path(folder) / block} should have as many "
            f"frames. Received: clips of {sorted(lengths)}"
        )
    return np.array(sets)


def read_published_train(folder, image_size=IMAGE_SHAPE[0]):
    """Reads the training clips of the published benchmark, one by one.

    Its training set, whose folder has one for each clip (`00001`, `00002`, …),
    and in that the frames, `scene/scene_001.png` and so on.

    Args:
        folder: Path of the folder of the training set.
        image_size: As for `read_published`.

    Returns:
        Iterator over uint8 arrays `(num_frames, image_size, image_size, 3)`, in
        the order of the names of the clips, all of them possible.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If there is no such folder or `image_size` is not positive;
            and, when its turn has come, if a clip lacks a frame or one cannot
            be read.
    """
    check_positive_integers(image_size=image_size)
    clips = _folders(pathlib.Path(folder), "a clip")
    return (_read_clip(clip, image_size) for clip in clips)


def _scenes(rng, blocks, num_frames):
    """Two possible clips for each of the blocks, and when to go over.

    Returns:
        `(scenes, cut)`: dictionary of arrays, of which those of objects begin
        with `(n, MAX_NUM_OBJECTS)`, with what the two clips differ in last; and
        `(n,)`, the first frame after the cut.
    """
    n = len(blocks)
    size = n, MAX_NUM_OBJECTS
    o1, o2, o3 = (blocks == number for number in range(3))
    width = rng.uniform(*_OCCLUDER_WIDTHS, n)
    centre = rng.uniform(*_OCCLUDER_CENTRES, n)
    # The object with number 0 is the one that it happens to.
    sizes = rng.uniform(*_SIZES, size)
    num_objects = rng.integers(1, MAX_NUM_OBJECTS + 1, n)
    sizes[np.arange(MAX_NUM_OBJECTS) >= num_objects[:, None]] = 0
    in_both = np.stack([sizes, sizes], axis=-1)
    in_both[o1, 0, 1] = 0
    shapes = np.repeat(rng.integers(len(SHAPES), size=(*size, 1)), 2, axis=-1)
    shapes[o2, 0, 1] += rng.integers(1, len(SHAPES), o2.sum())
    # Where an object is: behind the occluder's centre in frame `middle`.
    speed = rng.uniform(*_DISTANCES, size) / (num_frames - 1)
    middle = rng.uniform(0.45, 0.55, size) * (num_frames - 1)
    direction = rng.choice([-1, 1], size)
    ahead = np.zeros((n, MAX_NUM_OBJECTS, 2))
    ahead[o3, 0] = [-_JUMP / 2, _JUMP / 2]
    # From the frame where both are hidden to the frame where both still are.
    hidden = (width / 2 - sizes[:, 0] - 1 - o3 * _JUMP / 2) / speed[:, 0]
    first = np.ceil(middle[:, 0] - hidden).astype(int)
    last = np.floor(middle[:, 0] + hidden).astype(int)
    scenes = {
        "sizes": in_both,
        "shapes": shapes % len(SHAPES),
        "colours": COLOURS[
            rng.random((n, len(COLOURS))).argsort(axis=1)[:, :MAX_NUM_OBJECTS]
        ],
        "velocities": speed * direction,
        "starts": centre[:, None, None]
        + direction[..., None] * (ahead - (speed * middle)[..., None]),
        "floors": rng.permuted(np.tile(_FLOORS, (n, 1)), axis=1),
        "occluders": centre[:, None] + width[:, None] / 2 * [-1, 1],
        "shades": np.stack([rng.integers(*ends, n) for ends in _SHADES], 1),
    }
    return scenes, rng.integers(first + 1, last + 1)


def _render(scenes, clip, num_frames):
    """Draws for each scene one of its two clips, `(n, time, 64, 64, 3)`."""
    n = len(clip)
    wall, ground, occluder = scenes["shades"].astype("uint8").T
    line = np.arange(64)
    scenery = np.where(
        line[:, None] < _HORIZON, wall[:, None, None], ground[:, None, None]
    )
    shape = n, num_frames, *IMAGE_SHAPE
    images = np.broadcast_to(scenery[:, None, ..., None], shape).copy()
    every = np.arange(n)
    time = np.arange(num_frames)
    # The farthest object first; those before it hide it.
    for one in scenes["floors"].argsort(axis=1).T:
        size = scenes["sizes"][every, one, clip]
        start = scenes["starts"][every, one, clip]
        velocity = scenes["velocities"][every, one]
        x = start[:, None] + velocity[:, None] * time
        y = np.repeat(scenes["floors"][every, one] - size, num_frames)
        draw(
            images.reshape(-1, *IMAGE_SHAPE),
            np.stack([x.ravel(), y], axis=-1),
            size.repeat(num_frames),
            scenes["colours"][every, one].repeat(num_frames, axis=0),
            scenes["shapes"][every, one, clip].repeat(num_frames),
        )
    left, right = np.rint(scenes["occluders"]).astype(int).T[..., None]
    across = (line >= left) & (line < right)
    rows = slice(_OCCLUDER_TOP, _OCCLUDER_BOTTOM)
    images[:, :, rows] = np.where(
        across[:, None, None, :, None],
        occluder[:, None, None, None, None],
        images[:, :, rows],
    )
    return images


def _folders(folder, kind):
    """Folders in a folder, in the order of their names."""
    paths = sorted(path for path in folder.glob("*") if path.is_dir())
    if not paths:
        raise ValueError(
            f"{folder} should hold a folder for each of what it is made of, "
            f"{kind}. Received: "
            + ("an empty folder" if folder.is_dir() else "no such folder")
        )
    return paths


def _is_possible(clip):
    """What the status of a clip tells."""
    try:
        status = read_json(clip / "status.json")
        possible = status["header"]["is_possible"]
        if not isinstance(possible, bool):
            raise ValueError(f"is_possible is {possible!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{clip / 'status.json'} cannot be read: {error!r}. Expected JSON "
            "with a header in which is_possible is true or false."
        ) from error
    return possible


def _read_clip(clip, image_size):
    """Frames of a clip, uint8 `(num_frames, image_size, image_size, 3)`."""
    paths = sorted((clip / "scene").glob("scene_*.png"))
    expected = [f"scene_{i + 1:03d}.png" for i in range(len(paths))]
    if not paths or [path.name for path in paths] != expected:
        raise ValueError(
            f"{clip / 'scene'} should hold scene_001.png and so on, none left "
            f"out. Received: {len(paths)} of them"
            + (f", the last {paths[-1].name}" if paths else "")
        )
    return np.stack([read_png(path, "RGB", image_size) for path in paths])


def _check_block(block):
    if block not in BLOCKS:
        raise ValueError(
            f"Unknown block {block!r}. Expected one of: {', '.join(BLOCKS)}"
        )


def _check_numbers(name, number, num_frames):
    check_positive_integers(**{name: number})
    if num_frames < LEAST_NUM_FRAMES:
        raise ValueError(
            f"`num_frames` must be {LEAST_NUM_FRAMES} or more, so that objects "
            f"stay hidden long enough. Received: num_frames={num_frames}"
        )
