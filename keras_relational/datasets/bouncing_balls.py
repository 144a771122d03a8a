"""Videos of balls that collide with walls and with each other.

Goyal et al., 2020, *Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments* (SCOFF), section 5 and appendix C, after Van
Steenkiste et al., 2018, *Relational Neural Expectation Maximization*. Discs
move at constant speed in a box of 64 by 64 pixels and collide elastically.

- `"4balls"`: four balls of different masses. The radius shows the mass.
- `"678balls"`: six to eight equal balls.
- `"curtain"`: three equal balls behind an occluder in the centre.
- `"colored_4balls"`, `"colored_678balls"`: the first two in four colours.

The papers give no sizes and no speeds. Our choice is: radii of 5, 6, 7 and 8
pixels for four balls, 5 pixels for six to eight balls, and 7 pixels with a
curtain. All balls have the same density, and the mass of a ball is (radius /
5)². Each ball starts in a random direction with a speed of 1 to 3 pixels a
frame.

A video takes 209 kB, or 627 kB in colour. The balls that `simulate` returns
take 10 kB, so a data set can keep the balls and `render` each batch when it is
needed. `generate_coordinates` gives where any number of equal balls are,
without images.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_relational.datasets.shapes import downsample
from keras_relational.datasets.shapes import draw
from keras_relational.random_streams import stream
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

TASKS = ("4balls", "678balls", "curtain", "colored_4balls", "colored_678balls")
IMAGE_SIZE = 64
NUM_FRAMES = 51
SPEEDS = (1, 3)
# Of the balls of `generate_coordinates`, in halves of the box.
COORDINATES_RADIUS = 0.12
COORDINATES_SPEEDS = (0.08, 0.2)
MAX_BALLS = 12
# First and last row of pixels behind the curtain. The columns are the same.
CURTAIN = (20, 43)
COLOURS = np.array(
    [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)], "uint8"
)


class Balls(NamedTuple):
    """Balls that move, without their images.

    An absent ball, such as the eighth of seven, has mass and radius 0.
    """

    positions: np.ndarray  # (n, num_frames, balls, 2), pixels from the top left
    velocities: np.ndarray  # (n, num_frames, balls, 2), in pixels a frame
    masses: np.ndarray  # (n, balls)
    radii: np.ndarray  # (n, balls), in pixels
    colours: np.ndarray  # uint8 (n, balls, channels)


_RADII = {"4balls": (5, 6, 7, 8), "678balls": (5,) * 8, "curtain": (7,) * 3}


def load_data(
    task: str, num_train: int = 1_000, num_test: int = 1_000, seed: int = 0
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Makes training and test videos, with the next frame as the target.

    Args:
        task: One of `TASKS`.
        num_train: Positive integer, the number of training videos. The paper's
            50,000 take 10 GB, or 31 GB in colour.
        num_test: Positive integer, the number of test videos. The paper has
            10,000.
        seed: Non-negative integer. Equal seeds give equal data.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 arrays `(n, 50, 64, 64,
        channels)`. `x` holds all frames but the last one, and `y` the next
        frame of each. Both are views of one array: copy before you write.

    Raises:
        ValueError: If the task is unknown, or a number is not a positive
            integer.
    """
    check_positive_integers(num_train=num_train, num_test=num_test)
    test = generate(task, num_test, seed=stream(seed, "test_beside_batches"))
    train = generate(task, num_train, seed=stream(seed, "train_beside_batches"))
    return (train[:, :-1], train[:, 1:]), (test[:, :-1], test[:, 1:])


def generate(
    task: str,
    num_sequences: int,
    num_frames: int = NUM_FRAMES,
    seed: int | Sequence[int] | None = None,
    image_size: int = IMAGE_SIZE,
) -> np.ndarray:
    """Makes videos: `simulate`, then `render`.

    Args:
        task: One of `TASKS`.
        num_sequences: Positive integer, the number of videos.
        num_frames: Positive integer, the number of frames of a video.
        seed: Seed of `np.random.default_rng`. Equal seeds give equal data. By
            default the data are new each time. The batches of a training stream
            have the seeds `[seed, 0]`, `[seed, 1]`, ….
        image_size: Height and width of the images, a divisor of 64. They are
            drawn with 64 × 64 pixels, and made smaller by `shapes.downsample`.

    Returns:
        uint8 array `(num_sequences, num_frames, image_size, image_size,
        channels)`, with three channels in colour, and one otherwise.

    Raises:
        ValueError: If the task is unknown, if a number is not a positive
            integer, or if `image_size` is no divisor of 64.

    Example:

    >>> generate("colored_4balls", 2, num_frames=10, seed=0).shape
    (2, 10, 64, 64, 3)
    """
    check_positive_integers(image_size=image_size)
    balls = simulate(task, num_sequences, num_frames, seed)
    return downsample(render(task, balls), image_size)


def simulate(
    task: str,
    num_sequences: int,
    num_frames: int = NUM_FRAMES,
    seed: int | Sequence[int] | None = None,
) -> Balls:
    """Makes `Balls` that move, without their images.

    The first positions are uniform among those where no balls overlap. The
    arguments are those of `generate`.
    """
    check_choice("task", task, TASKS)
    check_positive_integers(num_sequences=num_sequences, num_frames=num_frames)
    rng = np.random.default_rng(seed)
    shape = task.removeprefix("colored_")
    size = num_sequences, len(_RADII[shape])
    radii = np.tile(np.array(_RADII[shape], "float64"), (num_sequences, 1))
    if shape == "678balls":
        radii[np.arange(8) >= rng.integers(6, 9, (num_sequences, 1))] = 0
    velocities = _velocities(rng, size, SPEEDS)
    velocities[radii == 0] = 0
    masses = (radii / 5) ** 2
    positions, velocities = bounce(
        _places(rng, radii), velocities, masses, radii, num_frames
    )
    if task == "colored_4balls":
        each = np.tile(np.arange(4), (num_sequences, 1))
        colours = COLOURS[rng.permuted(each, axis=1)]
    elif task == "colored_678balls":
        colours = COLOURS[rng.integers(4, size=size)]
    else:
        colours = np.full((*size, 1), 255, "uint8")
    return Balls(positions, velocities, masses, radii, colours)


def generate_coordinates(
    num_sequences: int,
    num_balls: int = 4,
    num_frames: int = 21,
    collide: bool = True,
    seed: int | Sequence[int] | None = None,
) -> np.ndarray:
    """Makes the coordinates of equal balls, without images.

    They start as in `simulate`, with a radius of `COORDINATES_RADIUS` and
    `COORDINATES_SPEEDS` in a box from -1 to 1.

    Args:
        num_sequences: Positive integer, the number of sequences.
        num_balls: Integer from 1 to `MAX_BALLS`.
        num_frames: Positive integer, the number of steps of a sequence.
        collide: If `False`, balls pass through each other, and overlap.
        seed: As for `generate`.

    Returns:
        float32 array `(num_sequences, num_frames, num_balls, 2)`: where the
        balls' centres are, from left to right and from top to bottom.

    Raises:
        ValueError: If a number is out of its range.

    Example:

    >>> generate_coordinates(5, num_balls=8, seed=0).shape
    (5, 21, 8, 2)
    """
    check_positive_integers(
        num_sequences=num_sequences, num_balls=num_balls, num_frames=num_frames
    )
    if num_balls > MAX_BALLS:
        raise ValueError(
            f"`num_balls` must be {MAX_BALLS} or less: more do not fit into "
            f"the box. Received: num_balls={num_balls}"
        )
    rng = np.random.default_rng(seed)
    half, size = IMAGE_SIZE / 2, (num_sequences, num_balls)
    radii = np.full(size, half * COORDINATES_RADIUS)
    speeds = [half * speed for speed in COORDINATES_SPEEDS]
    velocities = _velocities(rng, size, speeds)
    # A ball that passes through all others is alone in its box.
    shape = size if collide else (num_sequences * num_balls, 1)
    positions, _ = bounce(
        _places(rng, radii.reshape(shape)),
        velocities.reshape(*shape, 2),
        np.ones(shape),
        radii.reshape(shape),
        num_frames,
    )
    if not collide:
        positions = positions.reshape(*size, num_frames, 2).swapaxes(1, 2)
    return (positions / half - 1).astype("float32")


def render(task: str, balls: Balls) -> np.ndarray:
    """Draws `Balls`, as uint8 `(num_sequences, num_frames, 64, 64, channels)`.

    The curtain is a square, as black as the background, so it is seen only when
    a ball is behind it. The paper does not say how it looks or how large it is.
    """
    check_choice("task", task, TASKS)
    size, num_frames, num_balls = balls.positions.shape[:3]
    image = IMAGE_SIZE, IMAGE_SIZE, balls.colours.shape[-1]
    images = np.zeros((size * num_frames, *image), "uint8")
    for ball in range(num_balls):
        draw(
            images,
            balls.positions[:, :, ball].reshape(-1, 2),
            balls.radii[:, ball].repeat(num_frames),
            balls.colours[:, ball].repeat(num_frames, axis=0),
        )
    if task == "curtain":
        behind = slice(CURTAIN[0], CURTAIN[1] + 1)
        images[:, behind, behind] = 0
    return images.reshape(size, num_frames, *image)


def bounce(
    positions: np.ndarray,
    velocities: np.ndarray,
    masses: np.ndarray,
    radii: np.ndarray,
    num_frames: int = NUM_FRAMES,
) -> tuple[np.ndarray, np.ndarray]:
    """Moves balls in the box, from collision to collision.

    Between collisions all velocities are constant, and the time of the next
    collision is the root of a quadratic equation. So there is no step size, and
    the only error is rounding. A wall reverses the velocity towards it. Two
    balls exchange momentum along the line through their centres, and conserve
    momentum and kinetic energy. Collisions at the same time are handled one
    after the other, as long as balls still approach each other.

    Positions, from 0 to 64 pixels, and velocities, in pixels a frame, are those
    of the first frame, `(n, balls, 2)`. Masses and radii are `(n, balls)`; an
    absent ball has radius 0. Returns positions and velocities in each frame,
    float64 `(n, num_frames, balls, 2)`. A `ValueError` says if a mass is not
    positive, or balls overlap or lie outside the box.

    >>> positions, velocities = bounce(
    ...     [[(10, 32), (50, 32)]], [[(3, 0), (0, 0)]], [[1, 1]], [[5, 5]], 13
    ... )
    >>> positions[0, -1].tolist(), velocities[0, -1].tolist()
    ([[40.0, 32.0], [56.0, 32.0]], [[0.0, 0.0], [3.0, 0.0]])
    """
    position, velocity, masses, radii = (
        np.array(array, "float64")
        for array in (positions, velocities, masses, radii)
    )
    _check_balls(position, velocity, masses, radii)
    size, *shape = position.shape
    frames = np.empty((2, size, num_frames, *shape))
    # The time of the last collision of each sequence.
    clock = np.zeros(size)
    every = np.arange(size)
    due, event = _next_collisions(position, velocity, radii)
    for frame in range(num_frames):
        while (which := every[due <= frame]).size:
            wait = due[which] - clock[which]
            position[which] += velocity[which] * wait[:, None, None]
            velocity[which] = _collide(
                position[which], velocity[which], masses[which], event[which]
            )
            clock[which] = due[which]
            wait, event[which] = _next_collisions(
                position[which], velocity[which], radii[which]
            )
            due[which] += wait
        wait = frame - clock
        frames[0, :, frame] = position + velocity * wait[:, None, None]
        frames[1, :, frame] = velocity
    return frames[0], frames[1]


def _check_balls(position, velocity, masses, radii):
    shape = position.shape
    if (
        len(shape) != 3
        or shape[2:] != (2,)
        or velocity.shape != shape
        or not masses.shape == radii.shape == shape[:2]
    ):
        raise ValueError(
            "Positions and velocities must have the shape (n, balls, 2), masses"
            f" and radii the shape (n, balls). Received: {shape}, "
            f"{velocity.shape}, {masses.shape} and {radii.shape}"
        )
    present = radii > 0
    if (masses[present] <= 0).any():
        raise ValueError(
            f"Masses must be positive. Received: {masses[present].min()}"
        )
    low, high = position - radii[..., None], position + radii[..., None]
    inside = (low > -1e-9) & (high < IMAGE_SIZE + 1e-9)
    if not inside[present].all():
        raise ValueError(
            f"Balls must lie in the box, from 0 to {IMAGE_SIZE}. Received: "
            f"balls from {low[present].min()} to {high[present].max()}"
        )
    overlapping = np.flatnonzero(_overlap(position, radii))
    if overlapping.size:
        raise ValueError(
            "Balls must not overlap. Received: overlapping balls in "
            f"{overlapping.size} sequences, the first of them sequence "
            f"{overlapping[0]}"
        )


def _next_collisions(position, velocity, radii):
    """The time until the next collision of each sequence, and its number.

    Collisions are numbered. First come collisions of balls with walls, two for
    each ball, one for each direction. Then come collisions of pairs.
    """
    size, num_balls = radii.shape
    with np.errstate(divide="ignore", invalid="ignore"):
        wall = np.where(velocity > 0, IMAGE_SIZE - radii[..., None], 0)
        wall = np.where(velocity < 0, radii[..., None], wall)
        walls = np.where(velocity != 0, (wall - position) / velocity, np.inf)
        one, other = np.triu_indices(num_balls, 1)
        way = position[:, one] - position[:, other]
        speed = velocity[:, one] - velocity[:, other]
        reach = radii[:, one] + radii[:, other]
        # The smaller root t of |way + speed t| = reach, in a form without
        # cancellation.
        closing = -(way * speed).sum(-1)
        free = (way**2).sum(-1) - reach**2
        root = closing**2 - (speed**2).sum(-1) * free
        meet = (closing > 0) & (root >= 0)
        meet &= (radii[:, one] > 0) & (radii[:, other] > 0)
        pairs = np.where(meet, free / (closing + np.sqrt(root)), np.inf)
    times = np.concatenate([walls.reshape(size, -1), pairs], axis=1)
    event = times.argmin(axis=1)
    # Rounding may make balls that touch overlap a little.
    return np.maximum(times[np.arange(size), event], 0), event


def _collide(position, velocity, masses, event):
    """Returns the velocities after one collision in each sequence."""
    num_balls = masses.shape[1]
    at_wall = np.flatnonzero(event < 2 * num_balls)
    ball, axis = np.divmod(event[at_wall], 2)
    velocity[at_wall, ball, axis] *= -1

    at_ball = np.flatnonzero(event >= 2 * num_balls)
    pair = event[at_ball] - 2 * num_balls
    one, other = (
        (at_ball, balls[pair]) for balls in np.triu_indices(num_balls, 1)
    )
    line = position[one] - position[other]
    line /= np.sqrt((line**2).sum(-1, keepdims=True))
    speed = ((velocity[one] - velocity[other]) * line).sum(-1)
    sum_of_masses = masses[one] + masses[other]
    push = 2 * masses[one] * masses[other] / sum_of_masses * speed
    velocity[one] -= (push / masses[one])[:, None] * line
    velocity[other] += (push / masses[other])[:, None] * line
    return velocity


def _velocities(rng, size, speeds):
    """Draws directions, and speeds between two."""
    angle, speed = rng.uniform(0, 2 * np.pi, size), rng.uniform(*speeds, size)
    return np.stack([np.cos(angle), np.sin(angle)], -1) * speed[..., None]


def _places(rng, radii):
    """Draws centres of balls in the box that do not overlap."""
    positions = np.zeros((*radii.shape, 2))
    which = np.arange(len(radii))
    while which.size:
        margin = radii[which, :, None]
        high = np.broadcast_to(IMAGE_SIZE - margin, (*margin.shape[:2], 2))
        positions[which] = rng.uniform(margin, high)
        which = which[_overlap(positions[which], radii[which])]
    positions[radii == 0] = 0
    return positions


def _overlap(positions, radii):
    """Tells whether any two balls of a sequence overlap, `(n,)`."""
    one, other = np.triu_indices(radii.shape[1], 1)
    way = positions[:, one] - positions[:, other]
    reach = radii[:, one] + radii[:, other]
    present = (radii[:, one] > 0) & (radii[:, other] > 0)
    return (present & ((way**2).sum(-1) < reach**2 * (1 - 1e-9))).any(1)
