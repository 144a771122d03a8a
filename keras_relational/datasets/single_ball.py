"""Videos of a single ball: how does it move, and where will it be next?

Goyal et al., 2020, *Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments* (SCOFF), section 5 and appendix F. A white
ball on black accelerates, moves on evenly or walks at random (`generate`), or
goes to and fro, from left to right or up and down, as two bulbs tell
(`generate_switching`). The paper gives no sizes and no speeds: they are chosen
here.
"""

import numpy as np

from keras_relational.datasets.balanced_labels import balanced_labels
from keras_relational.datasets.shapes import draw
from keras_relational.validation import check_positive_integers

IMAGE_SHAPE = (64, 64, 1)
NUM_FRAMES = 51
RADIUS = 4
DYNAMICS = ("accelerate", "constant_velocity", "random_walk")
OSCILLATIONS = ("horizontal", "vertical")
# In pixels: how far a ball gets that does not turn, and how far others get
# from one frame to the next.
DISTANCES = (25, 50)
WALK_SPEEDS = (1, 2)
OSCILLATION_SPEEDS = (2, 4)

# Centres of balls, from left to right and from top to bottom; a ball stays
# above the bulbs, where there are any.
_LOWEST, _HIGHEST = RADIUS, 64 - RADIUS
_HIGHEST_ABOVE_BULBS = 54
_BULBS, _BULB_RADIUS = ((3, 61), (9, 61)), 2
_ON, _OFF = 255, 80


def load_data(num_train=10_000, num_test=1_000, switching=False, seed=0):
    """Videos of 51 frames to train and to test on.

    Args:
        num_train: Number of training videos, of 209 kB each.
        num_test: Number of test videos; the paper does not say how many of its
            10,000 are for testing.
        switching: Whether they are those of `generate_switching`.
        seed: Non-negative integer.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: images and labels, as `generate`
        or `generate_switching` returns them.

    Raises:
        ValueError: As for `generate`.
    """
    make = generate_switching if switching else generate
    # No pairs: those are the seeds of batches without end.
    test = make(num_test, seed=[seed, 0, 1])[:2]
    train = make(num_train, seed=[seed, 0, 2])[:2]
    return train, test


def generate(
    num_sequences, num_frames=NUM_FRAMES, dynamics=DYNAMICS, seed=None
):
    """Makes videos of a ball that moves in one of three ways.

    - `"accelerate"`: from rest, evenly, in one direction;
    - `"constant_velocity"`: evenly in one direction;
    - `"random_walk"`: as far in every step, each in a direction of its own.

    A ball never turns at the edge of the image, where its dynamics could not be
    told: the first two start where there is room for their way, of 25 to 50
    pixels in a direction drawn at random; of a random walk, steps of 1 to 2
    pixels, those are drawn again that leave the image.

    Args:
        num_sequences: Positive integer.
        num_frames: Positive integer.
        dynamics: One of `DYNAMICS` or a sequence of them, in equal shares.
        seed: Seed as `np.random.default_rng` takes it: the same videos every
            time. By default they are new ones.

    Returns:
        `(images, labels, centres)`: uint8 `(num_sequences, num_frames, 64, 64,
        1)`; uint8 `(num_sequences,)`, places in `DYNAMICS`; and float32
        `(num_sequences, num_frames, 2)`, the ball's centre in pixels from the
        left and from the top.

    Raises:
        ValueError: If a number is not positive, or there are no such dynamics.

    Example:

    >>> images, labels, centres = generate(3, seed=0)
    >>> images.shape, sorted(labels.tolist()), centres.shape
    ((3, 51, 64, 64, 1), [0, 1, 2], (3, 51, 2))
    """
    check_positive_integers(num_sequences=num_sequences, num_frames=num_frames)
    names = [dynamics] if isinstance(dynamics, str) else list(dynamics)
    if not names or not set(names) <= set(DYNAMICS):
        raise ValueError(
            f"`dynamics` must be one or more of: {', '.join(DYNAMICS)}. "
            f"Received: dynamics={dynamics!r}"
        )
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
    return _render(centres), labels, centres.astype("float32")


def generate_switching(num_sequences, num_frames=NUM_FRAMES, seed=None):
    """Makes videos of a ball that goes to and fro and changes its axis once.

    The ball moves from left to right and back or up and down and back, and
    turns at the edges, in steps of 2 to 4 pixels. In the middle of the video it
    goes over from one to the other, from where it is. Half of the videos begin
    with either. Of two bulbs at the bottom left, the first is lit in frames
    after which the ball moves from left to right or back, the other in those
    after which it moves up or down.

    Args:
        num_sequences: Positive integer.
        num_frames: Positive integer.
        seed: Seed as `np.random.default_rng` takes it: the same videos every
            time. By default they are new ones.

    Returns:
        `(images, labels, centres)`: uint8 `(num_sequences, num_frames, 64, 64,
        1)`; uint8 `(num_sequences, num_frames)`, which bulb is lit, as places
        in `OSCILLATIONS`; and float32 `(num_sequences, num_frames, 2)`, the
        ball's centre in pixels from the left and from the top.

    Raises:
        ValueError: If a number is not positive.

    Example:

    >>> _, labels, _ = generate_switching(1, num_frames=6, seed=0)
    >>> labels
    array([[1, 1, 1, 0, 0, 0]], dtype=uint8)
    """
    check_positive_integers(num_sequences=num_sequences, num_frames=num_frames)
    rng = np.random.default_rng(seed)
    first = balanced_labels(rng, num_sequences, 2)[:, None]
    late = np.arange(num_frames) >= (num_frames + 1) // 2
    labels = (first ^ late).astype("uint8")
    # How far the ball has come along each axis, were there no edges.
    speed = rng.uniform(*OSCILLATION_SPEEDS, (num_sequences, 1))
    steps = np.cumsum(speed[..., None] * (labels[..., None] == [0, 1]), axis=1)
    path = np.concatenate([np.zeros_like(steps[:, :1]), steps[:, :-1]], axis=1)
    room = np.array([_HIGHEST, _HIGHEST_ABOVE_BULBS]) - _LOWEST
    # A start in the second half of the way to and fro is one to the other side.
    path += rng.uniform(0, 2 * room, (num_sequences, 1, 2))
    centres = _LOWEST + room - abs(path % (2 * room) - room)
    images = _render(centres)
    for number, bulb in enumerate(_BULBS):
        colours = np.where(labels == number, _ON, _OFF)
        _draw(
            images, np.broadcast_to(bulb, centres.shape), _BULB_RADIUS, colours
        )
    return images, labels, centres.astype("float32")


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
