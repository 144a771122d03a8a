"""Bouncing balls: how do balls move on that hit walls and each other?

Goyal et al., 2020, *Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments* (SCOFF), section 5 and appendix C, after Van
Steenkiste et al., 2018, *Relational Neural Expectation Maximization*. Discs
move evenly in a box of 64 by 64 pixels and collide elastically.

- `"4balls"`: four balls, whose mass is seen by their radius.
- `"678balls"`: six to eight equal balls.
- `"curtain"`: three equal balls behind an occluder in the centre.
- `"colored_4balls"`, `"colored_678balls"`: the first two in four colours.

The papers give no sizes and no speeds; here, radii are 5, 6, 7 and 8 pixels for
four balls, 5 for six to eight, and 7 behind a curtain. All balls have one
density, so that a ball's mass is its radius / 5, squared, and each starts in
any direction with a speed of 1 to 3 pixels a frame.

Videos are large, 209 kB each, 627 kB in colour. So they are kept as what
`simulate` returns, 10 kB each, and `render` draws those of a batch when they
are needed; or `generate` makes new ones all the time.
"""

import collections

import numpy as np

from keras_relational.datasets.shapes import draw
from keras_relational.validation import check_positive_integers

TASKS = ("4balls", "678balls", "curtain", "colored_4balls", "colored_678balls")
IMAGE_SIZE = 64
NUM_FRAMES = 51
SPEEDS = (1, 3)
# First and last line of pixels behind the curtain, both ways.
CURTAIN = (20, 43)
COLOURS = np.array(
    [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)], "uint8"
)

Balls = collections.namedtuple(
    "Balls", ("positions", "velocities", "masses", "radii", "colours")
)

_RADII = {"4balls": (5, 6, 7, 8), "678balls": (5,) * 8, "curtain": (7,) * 3}


def load_data(task, num_train=1_000, num_test=1_000, seed=0):
    """Videos to train and to test on, and for each frame the next.

    Args:
        task: One of `TASKS`.
        num_train: Number of training videos, of 209 kB each, 627 kB in colour:
            the paper's 50,000 take 10 GB, or 31 GB.
        num_test: Number of test videos; the paper has 10,000.
        seed: Non-negative integer.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 arrays `(n, 50, 64, 64,
        channels)`, in x all frames but the last and in y, for each of those,
        the next.

    Raises:
        ValueError: As for `simulate`.
    """
    # No pairs: those are the seeds of batches without end.
    test = generate(task, num_test, seed=[seed, 0, 1])
    train = generate(task, num_train, seed=[seed, 0, 2])
    return (train[:, :-1], train[:, 1:]), (test[:, :-1], test[:, 1:])


def generate(task, num_sequences, num_frames=NUM_FRAMES, seed=None):
    """Makes videos: `simulate`, then `render`.

    Args:
        task: One of `TASKS`.
        num_sequences: Positive integer.
        num_frames: Positive integer.
        seed: Seed as `np.random.default_rng` takes it: the same videos every
            time; the pairs `[seed, 0]`, `[seed, 1]`, … make the batches of a
            stream. By default they are new ones.

    Returns:
        uint8 array `(num_sequences, num_frames, 64, 64, channels)`, with three
        channels for tasks in colour and one for others.

    Raises:
        ValueError: As for `simulate`.

    Example:

    >>> generate("colored_4balls", 2, num_frames=10, seed=0).shape
    (2, 10, 64, 64, 3)
    """
    return render(task, simulate(task, num_sequences, num_frames, seed))


def simulate(task, num_sequences, num_frames=NUM_FRAMES, seed=None):
    """Makes balls that move, without their images.

    Places are drawn evenly among those where no balls overlap.

    Args:
        task: One of `TASKS`.
        num_sequences: Positive integer.
        num_frames: Positive integer.
        seed: Seed as `np.random.default_rng` takes it: the same balls every
            time. By default they are new ones.

    Returns:
        `Balls` of arrays: `positions` `(num_sequences, num_frames, balls, 2)`,
        float64, of the centres, in pixels from the left and from the top;
        `velocities`, the same, in pixels a frame; `masses` and `radii`
        `(num_sequences, balls)`, float64; `colours` `(num_sequences, balls,
        channels)`, uint8. Of six to eight balls, those that are not there have
        mass and radius 0.

    Raises:
        ValueError: If there is no such task or a number is not positive.

    Example:

    >>> simulate("678balls", 2, num_frames=10, seed=0).positions.shape
    (2, 10, 8, 2)
    """
    _check_task(task)
    check_positive_integers(num_sequences=num_sequences, num_frames=num_frames)
    rng = np.random.default_rng(seed)
    shape = task.removeprefix("colored_")
    size = num_sequences, len(_RADII[shape])
    radii = np.tile(np.array(_RADII[shape], "float64"), (num_sequences, 1))
    if shape == "678balls":
        radii[np.arange(8) >= rng.integers(6, 9, (num_sequences, 1))] = 0
    angle, speed = rng.uniform(0, 2 * np.pi, size), rng.uniform(*SPEEDS, size)
    velocities = np.stack([np.cos(angle), np.sin(angle)], -1) * speed[..., None]
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


def render(task, balls):
    """Draws videos.

    A curtain is a square as black as the background, and not to be seen until
    a ball is behind it; the paper does not say how it looks or how large it is.

    Args:
        task: One of `TASKS`; only whether it is `"curtain"` matters.
        balls: `Balls`, as `simulate` returns them.

    Returns:
        uint8 array `(num_sequences, num_frames, 64, 64, channels)`.

    Raises:
        ValueError: If there is no such task.
    """
    _check_task(task)
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


def bounce(positions, velocities, masses, radii, num_frames=NUM_FRAMES):
    """Moves balls in the box, from collision to collision.

    Between collisions balls move evenly, and the time of the next one is the
    root of a quadratic equation, so there is no step size and no error but that
    of rounding. A wall turns round the velocity towards it; two balls exchange
    momentum along the line through their centres, such that its sum and that of
    kinetic energy stay. Of collisions at one time, one comes after the other,
    as long as balls still approach each other.

    Args:
        positions: Where the balls are in the first frame, `(n, balls, 2)`, in
            pixels from the left and from the top, from 0 to 64.
        velocities: How fast they are, `(n, balls, 2)`, in pixels a frame.
        masses: `(n, balls)`, in any unit; positive.
        radii: `(n, balls)`, in pixels; 0 for balls that are not there.
        num_frames: Positive integer.

    Returns:
        `positions` and `velocities` in each frame, float64 arrays `(n,
        num_frames, balls, 2)`.

    Raises:
        ValueError: If shapes do not match, a mass is not positive, or balls
            overlap or lie outside the box.

    Example:

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
    shape = position.shape
    if (
        len(shape) != 3
        or shape[2:] != (2,)
        or velocity.shape != shape
        or not masses.shape == radii.shape == shape[:2]
    ):
        raise ValueError(
            "Positions and velocities should have a shape (n, balls, 2), masses"
            f" and radii (n, balls). Received: {shape}, {velocity.shape}, "
            f"{masses.shape} and {radii.shape}"
        )
    there = radii > 0
    if (masses[there] <= 0).any():
        raise ValueError(
            f"Masses should be positive. Received: {masses[there].min()}"
        )
    low, high = position - radii[..., None], position + radii[..., None]
    inside = (low > -1e-9) & (high < IMAGE_SIZE + 1e-9)
    if not inside[there].all():
        raise ValueError(
            f"Balls should lie in the box, from 0 to {IMAGE_SIZE}. Received: "
            f"balls from {low[there].min()} to {high[there].max()}"
        )
    overlapping = np.flatnonzero(_overlap(position, radii))
    if overlapping.size:
        raise ValueError(
            "Balls should not overlap. Received: balls that overlap, in "
            f"{overlapping.size} sequences, of which {overlapping[0]} is the "
            "first"
        )
    frames = np.empty((2, shape[0], num_frames, *shape[1:]))
    # Each sequence has a clock of its own, and stands at its last collision.
    clock = np.zeros(shape[0])
    every = np.arange(shape[0])
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


def _next_collisions(position, velocity, radii):
    """How long until each sequence's next collision, and which one it is.

    Collisions are numbered: of balls with walls, two for each ball, one for
    each direction; then of pairs.
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
        # |way + speed t| = reach; the smaller root, without a difference.
        closing = -(way * speed).sum(-1)
        free = (way**2).sum(-1) - reach**2
        root = closing**2 - (speed**2).sum(-1) * free
        meet = (closing > 0) & (root >= 0)
        meet &= (radii[:, one] > 0) & (radii[:, other] > 0)
        pairs = np.where(meet, free / (closing + np.sqrt(root)), np.inf)
    times = np.concatenate([walls.reshape(size, -1), pairs], axis=1)
    event = times.argmin(axis=1)
    # Rounding may leave balls that touch a hair's breadth past each other.
    return np.maximum(times[np.arange(size), event], 0), event


def _collide(position, velocity, masses, event):
    """Velocities after one collision in each sequence."""
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


def _places(rng, radii):
    """Centres of balls inside the box that do not overlap."""
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
    """Whether any two balls of a sequence overlap, `(n,)`."""
    one, other = np.triu_indices(radii.shape[1], 1)
    way = positions[:, one] - positions[:, other]
    reach = radii[:, one] + radii[:, other]
    there = (radii[:, one] > 0) & (radii[:, other] > 0)
    return (there & ((way**2).sum(-1) < reach**2 * (1 - 1e-9))).any(1)


def _check_task(task):
    if task not in TASKS:
        raise ValueError(
            f"Unknown task {task!r}. Expected one of: {', '.join(TASKS)}"
        )
