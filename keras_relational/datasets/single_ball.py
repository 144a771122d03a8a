"""Videos of a single ball that moves in one of several ways.

Goyal et al., 2020, *Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments* (SCOFF), section 5 and appendix F. A white
ball moves on black. In the videos of `generate` it accelerates, moves at
constant velocity or walks at random. In those of `generate_switching` it moves
back and forth along one of two axes, or of three, which the paper does not
have. A bulb for each axis shows which one is next. The paper gives no sizes and
no speeds. They are our choice. `generate_coordinates` gives where such a ball
is and which bulb is lit, without images.
"""

from collections.abc import Sequence

import numpy as np

from keras_relational.datasets.balanced_labels import balanced_labels
from keras_relational.datasets.shapes import downsample
from keras_relational.datasets.shapes import draw
from keras_relational.random_streams import stream
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

IMAGE_SHAPE = (64, 64, 1)
NUM_FRAMES = 51
RADIUS = 4
# By the kind of video: the number of ways to move, and of frames by default.
VIDEOS = {"fixed": (3, 20), "switching": (2, 51), "three_axes": (3, 51)}
DYNAMICS = ("accelerate", "constant_velocity", "random_walk")
OSCILLATIONS = ("horizontal", "vertical", "diagonal")
# In pixels: the distance from the first frame to the last of a ball that keeps
# its direction, and the length of a step from frame to frame of the others.
DISTANCES = (25, 50)
WALK_SPEEDS = (1, 2)
OSCILLATION_SPEEDS = (2, 4)

# Where centres of balls may be, in both directions.
_LOWEST, _HIGHEST = RADIUS, 64 - RADIUS
_ON, _OFF = 255, 80


def load_data(
    num_train: int = 10_000,
    num_test: int = 1_000,
    switching: bool = False,
    seed: int = 0,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Makes training and test videos of 51 frames.

    Args:
        num_train: Positive integer, the number of training videos. Each takes
            209 kB.
        num_test: Positive integer, the number of test videos. The paper does
            not say how many of its 10,000 videos are for testing.
        switching: Boolean. If `True`, the videos are those of
            `generate_switching`. Otherwise they are those of `generate`.
        seed: Non-negative integer. Equal seeds give equal data.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: images and labels, as `generate`
        or `generate_switching` returns them.

    Raises:
        ValueError: If a number is not a positive integer.
    """
    check_positive_integers(num_train=num_train, num_test=num_test)
    make = generate_switching if switching else generate
    test = make(num_test, seed=stream(seed, "test_beside_batches"))[:2]
    train = make(num_train, seed=stream(seed, "train_beside_batches"))[:2]
    return train, test


def generate_videos(
    kind: str,
    num_sequences: int,
    num_frames: int | None = None,
    seed: int | Sequence[int] | None = None,
    image_size: int = 64,
    bulb_radius: int = 2,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Makes videos of one kind, by the name that it has in `VIDEOS`.

    Arguments and results are those of `generate` for `"fixed"`, which has no
    bulbs, and of `generate_switching` for the others. By default `"fixed"`
    videos have 20 frames, and others 51.

    >>> generate_videos("three_axes", 2, seed=0)[1].shape
    (2, 51)
    """
    check_choice("kind of video", kind, tuple(VIDEOS))
    num_axes, default = VIDEOS[kind]
    sizes = num_sequences, default if num_frames is None else num_frames
    if kind == "fixed":
        return generate(*sizes, seed=seed, image_size=image_size)
    return generate_switching(*sizes, seed, image_size, bulb_radius, num_axes)


def generate(
    num_sequences: int,
    num_frames: int = NUM_FRAMES,
    dynamics: str | Sequence[str] = DYNAMICS,
    seed: int | Sequence[int] | None = None,
    image_size: int = 64,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Makes videos of a ball that moves in one of three ways.

    - `"accelerate"`: from rest, with constant acceleration;
    - `"constant_velocity"`: with constant velocity;
    - `"random_walk"`: with steps of constant length in random directions.

    A ball never turns at the edge of the image, because that would hide how it
    moves. In the first two ways it moves 25 to 50 pixels in a random direction,
    and starts where this path fits into the image. A random walk has steps of 1
    to 2 pixels. A step that would leave the image is drawn again.

    Args:
        num_sequences: Positive integer, the number of videos.
        num_frames: Positive integer, the number of frames of a video.
        dynamics: One of `DYNAMICS`, or a sequence of them in equal shares.
        seed: Seed of `np.random.default_rng`. Equal seeds give equal data. By
            default the data are new each time.
        image_size: Height and width of the images, a divisor of 64. They are
            drawn with 64 × 64 pixels, and made smaller by `shapes.downsample`.

    Returns:
        `(images, labels, centres)`: uint8 `(num_sequences, num_frames,
        image_size, image_size, 1)`; uint8 `(num_sequences,)`, indices into
        `DYNAMICS`; and float32 `(num_sequences, num_frames, 2)`, the ball's
        centre from the left and from the top, in pixels of 64 × 64.

    Raises:
        ValueError: If a number is out of its range, if `dynamics` is unknown or
            empty, or if `image_size` is no divisor of 64.

    Example:

    >>> images, labels, centres = generate(3, seed=0)
    >>> images.shape, sorted(labels.tolist()), centres.shape
    ((3, 51, 64, 64, 1), [0, 1, 2], (3, 51, 2))
    """
    check_positive_integers(
        num_sequences=num_sequences,
        num_frames=num_frames,
        image_size=image_size,
    )
    names = [dynamics] if isinstance(dynamics, str) else list(dynamics)
    if not names:
        raise ValueError(
            f"`dynamics` must name one or more of: {', '.join(DYNAMICS)}. "
            f"Received: dynamics={dynamics!r}"
        )
    for name in names:
        check_choice("dynamics", name, DYNAMICS)
    rng = np.random.default_rng(seed)
    numbers = np.array([DYNAMICS.index(name) for name in names], "uint8")
    labels = numbers[balanced_labels(rng, num_sequences, len(names))]
    way = rng.uniform(*DISTANCES, num_sequences)[:, None] * _directions(
        rng, num_sequences
    )
    start = rng.uniform(
        _LOWEST + np.maximum(-way, 0), _HIGHEST - np.maximum(way, 0)
    )
    time = np.linspace(0, 1, num_frames)[:, None]
    share = np.where((labels == 0)[:, None, None], time**2, time)
    centres = start[:, None] + share * way[:, None]
    walks = np.flatnonzero(labels == 2)
    centres[walks] = _walks(rng, len(walks), num_frames)
    images = downsample(_render(centres), image_size)
    return images, labels, centres.astype("float32")


def generate_switching(
    num_sequences: int,
    num_frames: int = NUM_FRAMES,
    seed: int | Sequence[int] | None = None,
    image_size: int = 64,
    bulb_radius: int = 2,
    num_axes: int = 2,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Makes videos of a ball that oscillates and changes its axis once.

    The ball moves back and forth horizontally or vertically, in steps of 2 to 4
    pixels, and turns at the edges. In the middle of the video it changes from
    one axis to the other, wherever it is. Half of the videos begin with each
    axis. Two bulbs at the bottom left show the axis of the next step: the first
    bulb is lit if the ball will move horizontally, the second one if
    vertically. With three axes, the third one is the diagonal from the top left
    to the bottom right, and has a bulb, too. Every axis is the first one as
    often as any other, and the second one is any of the others.

    Args:
        num_sequences: Positive integer, the number of videos.
        num_frames: Positive integer, the number of frames of a video.
        seed: As for `generate`.
        image_size: As for `generate`.
        bulb_radius: Integer from 1 to 10, the radius of the bulbs, in pixels of
            64 × 64. The radius of the ball is 4. The paper does not give it.
            With three axes, there is room for bulbs of 9 at most.
        num_axes: 2, as in the paper, or 3.

    Returns:
        Like `generate`, but labels are uint8 `(num_sequences, num_frames)`, the
        bulb that is lit, an index into `OSCILLATIONS`.

    Raises:
        ValueError: If a number is out of its range, or `image_size` is no
            divisor of 64.

    Example:

    >>> _, labels, _ = generate_switching(1, num_frames=6, seed=0)
    >>> labels
    array([[1, 1, 1, 0, 0, 0]], dtype=uint8)
    """
    check_positive_integers(
        num_sequences=num_sequences,
        num_frames=num_frames,
        image_size=image_size,
        bulb_radius=bulb_radius,
    )
    check_choice("num_axes", num_axes, (2, 3))
    largest = 12 - num_axes
    if bulb_radius > largest:
        raise ValueError(
            f"`bulb_radius` must be from 1 to {largest} with {num_axes} axes, "
            "so that the ball and all bulbs have room. Received: "
            f"bulb_radius={bulb_radius}"
        )
    rng = np.random.default_rng(seed)
    labels = _axes(rng, num_sequences, num_frames, num_axes)
    # The ball stays above the bulbs.
    centres = _oscillations(rng, labels, 58 - 2 * bulb_radius)
    images = _render(centres)
    left, top = bulb_radius + 1, 63 - bulb_radius
    for number in range(num_axes):
        bulb = (2 * number + 1) * left, top
        colours = np.where(labels == number, _ON, _OFF)
        _draw(
            images, np.broadcast_to(bulb, centres.shape), bulb_radius, colours
        )
    images = downsample(images, image_size)
    return images, labels, centres.astype("float32")


def generate_coordinates(
    num_sequences: int,
    num_frames: int = 20,
    num_axes: int = 2,
    cue: float = 1.0,
    seed: int | Sequence[int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Makes the coordinates of balls that oscillate and change their axis once.

    A ball moves as in `generate_switching`.

    Args:
        num_sequences: Positive integer, the number of sequences.
        num_frames: Positive integer, the number of steps of a sequence.
        num_axes: 2 or 3.
        cue: Number above 0, the coordinate of a bulb that is lit.
        seed: As for `generate`.

    Returns:
        `(coordinates, labels)`: float32 `(num_sequences, num_frames, 2 +
        num_axes)` and uint8 `(num_sequences, num_frames)`. The first two
        coordinates are the ball's centre from the middle of the image, in units
        of 16 pixels of 64. The others are the bulbs, 0 or `cue`. A label is the
        axis of the next step, an index into `OSCILLATIONS`.

    Raises:
        ValueError: If a number is out of its range.

    Example:

    >>> coordinates, labels = generate_coordinates(1, 6, num_axes=3, seed=0)
    >>> coordinates.shape, labels
    ((1, 6, 5), array([[2, 2, 2, 1, 1, 1]], dtype=uint8))
    """
    check_positive_integers(num_sequences=num_sequences, num_frames=num_frames)
    check_choice("num_axes", num_axes, (2, 3))
    if not cue > 0:
        raise ValueError(f"`cue` must be above 0. Received: cue={cue}")
    rng = np.random.default_rng(seed)
    labels = _axes(rng, num_sequences, num_frames, num_axes)
    centres = _oscillations(rng, labels, _HIGHEST)
    bulbs = cue * np.eye(num_axes)[labels]
    places = centres - IMAGE_SHAPE[0] / 2
    coordinates = np.concatenate([places / 16, bulbs], axis=-1)
    return coordinates.astype("float32"), labels


def _axes(rng, num_sequences, num_frames, num_axes):
    """The axis of each step, which changes once, in the middle."""
    first = balanced_labels(rng, num_sequences, num_axes)[:, None]
    further = 1
    if num_axes > 2:
        further = rng.integers(1, num_axes, (num_sequences, 1))
    late = np.arange(num_frames) >= (num_frames + 1) // 2
    return ((first + further * late) % num_axes).astype("uint8")


def _oscillations(rng, labels, lowest_row):
    """The centres of balls that turn at the edges, `(*labels.shape, 2)`."""
    # The way along each axis so far, as if there were no edges.
    speed = rng.uniform(*OSCILLATION_SPEEDS, (len(labels), 1))
    moves = np.array([(1, 0), (0, 1), (1, 1)])[labels]
    steps = np.cumsum(speed[..., None] * moves, axis=1)
    path = np.concatenate([np.zeros_like(steps[:, :1]), steps[:, :-1]], axis=1)
    room = np.array([_HIGHEST, lowest_row]) - _LOWEST
    # The way back and forth is 2 * room long. A ball that starts in its second
    # half moves back first.
    path += rng.uniform(0, 2 * room, (len(labels), 1, 2))
    return _LOWEST + room - abs(path % (2 * room) - room)


def _directions(rng, size):
    """Vectors of length 1, `(size, 2)`."""
    angle = rng.uniform(0, 2 * np.pi, size)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _walks(rng, size, num_frames):
    """Random walks inside the image, `(size, num_frames, 2)`."""
    speed = rng.uniform(*WALK_SPEEDS, size)
    centres = np.empty((size, num_frames, 2))
    centres[:, 0] = rng.uniform(_LOWEST, _HIGHEST, (size, 2))
    for time in range(1, num_frames):
        open_ones = np.arange(size)
        while open_ones.size:
            step = _directions(rng, len(open_ones)) * speed[open_ones, None]
            new = centres[open_ones, time - 1] + step
            centres[open_ones, time] = new
            outside = (new < _LOWEST) | (new > _HIGHEST)
            open_ones = open_ones[outside.any(1)]
    return centres


def _render(centres):
    images = np.zeros((*centres.shape[:2], *IMAGE_SHAPE), "uint8")
    _draw(images, centres, RADIUS, np.full(centres.shape[:2], 255))
    return images


def _draw(images, centres, radius, colours):
    size = colours.size
    draw(
        images.reshape(size, *IMAGE_SHAPE),
        centres.reshape(size, 2),
        np.full(size, radius),
        colours.reshape(size, 1),
    )
