"""Intuitive physics: clips that could or could not have happened.

Riochet et al., 2019, *IntPhys: A Framework and Benchmark for Visual Intuitive
Physics Reasoning*, as in Goyal et al., 2020, *Factorizing Declarative and
Procedural Knowledge in Structured, Dynamical Environments* (SCOFF), section 5
and appendix E. Objects move behind an occluder and come out again. In
impossible clips one object changes behind the occluder. The block says how:

- `"O1"`, object permanence: the object vanishes, or appears from nowhere;
- `"O2"`, shape constancy: the object changes its shape;
- `"O3"`, spatio-temporal continuity: the object jumps ahead, or falls back.

A model is trained on possible clips only. A test set has four clips. Two of
them are possible, and differ in one object. The other two are impossible: each
begins as one of the possible clips and ends as the other. The change happens
while the object is hidden, so all four consist of the same frames.

The published clips show three-dimensional scenes. `read_published` and
`read_published_train` read them. `generate` draws simple flat scenes.
"""

import pathlib
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from keras_relational.datasets.balanced_labels import balanced_labels
from keras_relational.datasets.png import read_png
from keras_relational.datasets.shapes import SHAPES
from keras_relational.datasets.shapes import downsample
from keras_relational.datasets.shapes import draw
from keras_relational.file_io import read_json
from keras_relational.random_streams import stream
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

BLOCKS = ("O1", "O2", "O3")
IMAGE_SHAPE = (64, 64, 3)
NUM_FRAMES = 50
MIN_NUM_FRAMES = 20
MAX_NUM_OBJECTS = 3
COLOURS = np.array(
    [
        *((220, 40, 40), (40, 180, 60), (50, 80, 230)),
        *((235, 220, 50), (220, 70, 220), (60, 220, 220)),
    ],
    "uint8",
)


# All in pixels. A size is half the width of an object. A distance is how far an
# object moves in one clip.
_HORIZON = 34
_OCCLUDER_TOP, _OCCLUDER_BOTTOM = 30, 62
_OCCLUDER_WIDTHS = (26, 28)
_OCCLUDER_CENTRES = (29, 35)
_FLOORS = (43, 51, 59)
_SIZES = (4, 5)
_DISTANCES = (44, 52)
_JUMP = 8
# Darkest and lightest grey of wall, ground and occluder.
_SHADES = ((170, 210), (110, 150), (50, 90))


def load_data(
    block: str,
    num_train: int = 1_000,
    num_test: int = 100,
    num_frames: int = NUM_FRAMES,
    seed: int = 0,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Makes possible clips to train on, and sets of four clips to test on.

    Args:
        block: One of `BLOCKS`, for the test sets.
        num_train: Positive integer, the number of training clips. A clip of 50
            frames takes 614 kB.
        num_test: Positive integer, the number of test sets of four clips.
        num_frames: Integer, 20 or more.
        seed: Non-negative integer. Equal seeds give equal data.
            `generate_possible` with the same seed makes the training set again:
            take another one for fresh examples.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: clips as `generate_possible`
        returns them, and sets as `generate` returns them. The labels are uint8
        `(num_train,)` and `(num_test, 4)`, 1 for possible clips and 0 for
        impossible ones.

    Raises:
        ValueError: If the block is unknown, or a number is too small.
    """
    check_positive_integers(num_train=num_train, num_test=num_test)
    x_train = generate_possible(num_train, num_frames, stream(seed, "train"))
    x_test = generate(block, num_test, num_frames, stream(seed, "test"))
    y_test = np.tile(np.array([1, 1, 0, 0], "uint8"), (num_test, 1))
    return (x_train, np.ones(num_train, "uint8")), (x_test, y_test)


def generate(
    block: str,
    num_sets: int,
    num_frames: int = NUM_FRAMES,
    seed: int | Sequence[int] | None = None,
    image_size: int = IMAGE_SHAPE[0],
) -> np.ndarray:
    """Makes test sets of two possible and two impossible clips.

    A clip shows one to three objects, each a sphere, a cube or a cone in its
    own colour. Each object moves at constant velocity from left to right or
    from right to left, at its own depth. The two possible clips of a set differ
    in one object: it is present in one clip only (O1), has another shape (O2),
    or is eight pixels ahead (O3). The frame in which the impossible clips
    change is drawn from those in which the object is hidden in both.

    Args:
        block: One of `BLOCKS`.
        num_sets: Positive integer, the number of sets.
        num_frames: Integer, 20 or more. The published clips have 100 frames.
        seed: Seed of `np.random.default_rng`. Equal seeds give equal data. By
            default the data are new each time.
        image_size: Height and width of the images, a divisor of 64. They are
            drawn with 64 × 64 pixels, and made smaller by `shapes.downsample`.

    Returns:
        uint8 array `(num_sets, 4, num_frames, image_size, image_size, 3)`. The
        first two of the four clips are possible. The third begins as the first
        and ends as the second, the fourth does the opposite.

    Raises:
        ValueError: If the block is unknown, if a number is too small, or if
            `image_size` is no divisor of 64.

    Example:

    >>> generate("O1", 2, num_frames=20, seed=0).shape
    (2, 4, 20, 64, 64, 3)
    """
    check_choice("block", block, BLOCKS)
    check_positive_integers(num_sets=num_sets, image_size=image_size)
    _check_num_frames(num_frames)
    rng = np.random.default_rng(seed)
    blocks = np.full(num_sets, BLOCKS.index(block))
    scenes, cut = _scenes(rng, blocks, num_frames)
    first, second = (
        _render(scenes, np.full(num_sets, clip), num_frames, image_size)
        for clip in (0, 1)
    )
    late = (np.arange(num_frames) >= cut[:, None])[..., None, None, None]
    clips = np.empty((num_sets, 4, *first.shape[1:]), "uint8")
    clips[:, 0], clips[:, 1] = first, second
    clips[:, 2] = np.where(late, second, first)
    clips[:, 3] = np.where(late, first, second)
    return clips


def generate_possible(
    num_sequences: int,
    num_frames: int = NUM_FRAMES,
    seed: int | Sequence[int] | None = None,
    image_size: int = IMAGE_SHAPE[0],
) -> np.ndarray:
    """Makes possible clips to train on.

    They have the same distribution as the possible clips of the test sets. A
    third of them are clips of each block.

    Args:
        num_sequences: Positive integer, the number of clips.
        num_frames: Integer, 20 or more.
        seed: Seed of `np.random.default_rng`. Equal seeds give equal data. By
            default the data are new each time. The seed of a `load_data` gives
            its training set.
        image_size: As for `generate`.

    Returns:
        uint8 array `(num_sequences, num_frames, image_size, image_size, 3)`.

    Raises:
        ValueError: As `generate` raises it.

    Example:

    >>> generate_possible(2, seed=0).shape
    (2, 50, 64, 64, 3)
    """
    check_positive_integers(num_sequences=num_sequences, image_size=image_size)
    _check_num_frames(num_frames)
    rng = np.random.default_rng(seed)
    blocks = balanced_labels(rng, num_sequences, len(BLOCKS))
    scenes, _ = _scenes(rng, blocks, num_frames)
    clip = rng.integers(2, size=num_sequences)
    return _render(scenes, clip, num_frames, image_size)


def read_published(
    folder: pathlib.Path | str, block: str, image_size: int = IMAGE_SHAPE[0]
) -> np.ndarray:
    """Reads the test sets of a block of the published benchmark.

    These are the sets of its dev set. The dev set has a folder for each block
    (`O1`, `O2`, `O3`), in it a folder for each set (`01`, `02`, …), and in it a
    folder for each of its four clips (`1` to `4`). A clip has a file
    `status.json`, with `is_possible` in its `header`, and the frames
    `scene/scene_001.png` and so on. The published test set cannot be read,
    since it does not say which clips are possible.

    Args:
        folder: Path of the folder of the dev set.
        block: One of `BLOCKS`.
        image_size: Positive integer, the height and width of the images that
            are returned. The published images have 288 pixels a side. A pixel
            is the mean of the pixels that it replaces.

    Returns:
        uint8 array `(num_sets, 4, num_frames, image_size, image_size, 3)`, as
        `generate` returns it, in the order of the names of the sets.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If an argument is unknown or out of range, if a folder, a
            clip, a frame or a status is missing or cannot be read, if a set
            does not have two possible and two impossible clips, or if clips
            differ in length.
    """
    check_choice("block", block, BLOCKS)
    check_positive_integers(image_size=image_size)
    sets = []
    for path in _folders(pathlib.Path(folder) / block, "set of four clips"):
        clips = [path / str(number) for number in (1, 2, 3, 4)]
        possible = np.array([_is_possible(clip) for clip in clips])
        if possible.sum() != 2:
            raise ValueError(
                f"{path} should hold two possible and two impossible clips. "
                f"Received: {int(possible.sum())} possible clips of four"
            )
        order = np.argsort(~possible, kind="stable")
        sets.append([_read_clip(clips[i], image_size) for i in order])
    lengths = {len(clip) for clips in sets for clip in clips}
    if len(lengths) > 1:
        raise ValueError(
            f"All clips in {pathlib.Path(folder) / block} should have equally "
            f"many frames. Received: clips of {sorted(lengths)} frames"
        )
    return np.array(sets)


def read_published_train(
    folder: pathlib.Path | str, image_size: int = IMAGE_SHAPE[0]
) -> Iterator[np.ndarray]:
    """Reads the training clips of the published benchmark, one by one.

    The training set has a folder for each clip (`00001`, `00002`, …), with the
    frames `scene/scene_001.png` and so on.

    Args:
        folder: Path of the folder of the training set.
        image_size: As for `read_published`.

    Returns:
        Iterator over uint8 arrays `(num_frames, image_size, image_size, 3)`, in
        the order of the names of the clips. All clips are possible.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If there is no clip, or `image_size` is not a positive
            integer. While iterating, if a frame of the next clip is missing or
            cannot be read.
    """
    check_positive_integers(image_size=image_size)
    clips = _folders(pathlib.Path(folder), "clip")
    return (_read_clip(clip, image_size) for clip in clips)


def _scenes(rng, blocks, num_frames):
    """Draws two possible clips for each block, and the frame of the change.

    Arrays of objects are `(n, MAX_NUM_OBJECTS, ...)`. If the two clips differ
    in an array, its last axis is the clip.
    """
    n = len(blocks)
    size = n, MAX_NUM_OBJECTS
    o1, o2, o3 = (blocks == number for number in range(3))
    width = rng.uniform(*_OCCLUDER_WIDTHS, n)
    centre = rng.uniform(*_OCCLUDER_CENTRES, n)
    # The clips differ in object 0.
    sizes = rng.uniform(*_SIZES, size)
    num_objects = rng.integers(1, MAX_NUM_OBJECTS + 1, n)
    sizes[np.arange(MAX_NUM_OBJECTS) >= num_objects[:, None]] = 0
    in_both = np.stack([sizes, sizes], axis=-1)
    in_both[o1, 0, 1] = 0
    shapes = np.repeat(rng.integers(len(SHAPES), size=(*size, 1)), 2, axis=-1)
    shapes[o2, 0, 1] += rng.integers(1, len(SHAPES), o2.sum())
    # In frame `middle` an object is behind the centre of the occluder.
    speed = rng.uniform(*_DISTANCES, size) / (num_frames - 1)
    middle = rng.uniform(0.45, 0.55, size) * (num_frames - 1)
    direction = rng.choice([-1, 1], size)
    ahead = np.zeros((n, MAX_NUM_OBJECTS, 2))
    ahead[o3, 0] = [-_JUMP / 2, _JUMP / 2]
    # The object is hidden in both clips from frame `first` to frame `last`.
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


def _render(scenes, clip, num_frames, image_size):
    """Draws one of the two clips of each scene, `(n, time, size, size, 3)`."""
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
    # The farthest object is drawn first, because nearer objects hide it.
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
    return downsample(images, image_size)


def _folders(folder, content):
    """Returns the folders in a folder, in the order of their names."""
    paths = sorted(path for path in folder.glob("*") if path.is_dir())
    if not paths:
        raise ValueError(
            f"{folder} should hold a folder for each {content}. Received: "
            + ("an empty folder" if folder.is_dir() else "no such folder")
        )
    return paths


def _is_possible(clip):
    """Reads the status of a clip."""
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
    """Reads a clip, uint8 `(num_frames, image_size, image_size, 3)`."""
    paths = sorted((clip / "scene").glob("scene_*.png"))
    expected = [f"scene_{i + 1:03d}.png" for i in range(len(paths))]
    if not paths or [path.name for path in paths] != expected:
        raise ValueError(
            f"{clip / 'scene'} should hold scene_001.png and so on, without a "
            f"gap. Received: {len(paths)} of them"
            + (f", the last {paths[-1].name}" if paths else "")
        )
    return np.stack([read_png(path, "RGB", image_size) for path in paths])


def _check_num_frames(num_frames):
    check_positive_integers(num_frames=num_frames)
    if num_frames < MIN_NUM_FRAMES:
        raise ValueError(
            f"`num_frames` must be {MIN_NUM_FRAMES} or more, so that objects "
            f"stay hidden long enough. Received: num_frames={num_frames}"
        )
