"""Dynamic objects: videos of a square that moves and changes its size.

Webb et al., 2020, *Learning Representations that Support Extrapolation*,
section 2.3. A white square on black moves from one place to another, and grows
or shrinks on its way. Training sequences show small squares (`TRAIN_WIDTHS`).
Test sequences show large squares (`TEST_WIDTHS`).
"""

from collections.abc import Sequence

import numpy as np

from keras_relational.random_streams import stream
from keras_relational.validation import check_positive_integers

IMAGE_SHAPE = (64, 64, 1)
NUM_FRAMES = 20
CENTRES = (16, 48)
TRAIN_WIDTHS = (3, 13)
TEST_WIDTHS = (13, 31)
ALL_WIDTHS = (3, 31)


def load_data(
    num_train: int = 10_000, num_test: int = 1_000, seed: int = 0
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Makes training sequences of small squares, test sequences of large ones.

    Args:
        num_train: Positive integer, the number of training sequences. Each
            takes 80 kB.
        num_test: Positive integer, the number of test sequences.
        seed: Non-negative integer. Equal seeds give equal data. `generate` with
            the same seed makes the training set again: take another one for
            fresh examples.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 arrays `(n, 19, 64, 64,
        1)`. `x` holds all frames but the last one, and `y` the next frame of
        each. Both are views of one array: copy before you write.

    Raises:
        ValueError: If a number is not a positive integer.
    """
    check_positive_integers(num_train=num_train, num_test=num_test)
    train = generate(num_train, TRAIN_WIDTHS, seed=stream(seed, "train"))
    test = generate(num_test, TEST_WIDTHS, seed=stream(seed, "test"))
    return (train[:, :-1], train[:, 1:]), (test[:, :-1], test[:, 1:])


def generate(
    num_sequences: int,
    widths: tuple[float, float] = TRAIN_WIDTHS,
    num_frames: int = NUM_FRAMES,
    seed: int | Sequence[int] | None = None,
) -> np.ndarray:
    """Makes sequences of a square that moves and changes its size.

    The centre and the width of the first and of the last frame are uniform real
    numbers: the centre between 16 and 48 in both directions, the width in
    `widths`. Between the two they change in equal steps. A square covers all
    pixels from its centre minus half its width to its centre plus half its
    width, both rounded down and both included. The paper does not say how
    squares are drawn. Here they are drawn as in VAEC.

    Args:
        num_sequences: Positive integer, the number of sequences.
        widths: Smallest and largest width in pixels, from 1 to 31.
        num_frames: Positive integer, the number of frames of a sequence.
        seed: Seed of `np.random.default_rng`. Equal seeds give equal data. By
            default the data are new each time. The seed of a `load_data` gives
            its training set.

    Returns:
        uint8 array `(num_sequences, num_frames, 64, 64, 1)` of 0 and 255.

    Raises:
        ValueError: If a number is out of its range.

    Example:

    >>> generate(2, TEST_WIDTHS, seed=0).shape
    (2, 20, 64, 64, 1)
    """
    check_positive_integers(num_sequences=num_sequences, num_frames=num_frames)
    if not 1 <= widths[0] <= widths[1] <= ALL_WIDTHS[1]:
        raise ValueError(
            "`widths` must be two numbers from 1 to 31, the smaller one first: "
            "larger squares leave the image. Received: widths="
            f"{tuple(widths)}"
        )
    rng = np.random.default_rng(seed)
    low, high = np.array([CENTRES, CENTRES, widths], "float64").T
    ends = rng.uniform(low, high, (2, num_sequences, 1, 3))
    way = np.linspace(0, 1, num_frames)[:, None]
    x, y, width = np.moveaxis(ends[0] + way * (ends[1] - ends[0]), -1, 0)

    def covered(centre):
        """Which of the 64 rows or columns of pixels the square covers."""
        line = np.arange(IMAGE_SHAPE[0])
        first, last = centre - width / 2, centre + width / 2
        return (line >= np.floor(first)[..., None]) & (
            line <= np.floor(last)[..., None]
        )

    images = covered(y)[..., None] & covered(x)[..., None, :]
    images = images.view("uint8")[..., None]
    images *= 255  # In place, since the sequences take gigabytes.
    return images
