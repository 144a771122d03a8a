"""Dynamic object prediction: what will the next image show?

Webb et al., 2020, *Learning Representations that Support Extrapolation*,
section 2.3. A white square on black moves from one place to another and grows
or shrinks on its way. Sequences to train on show small squares, of
`TRAIN_WIDTHS`, and sequences to test on large ones, of `TEST_WIDTHS`.
"""

import numpy as np

from keras_relational.validation import check_positive_integers

IMAGE_SHAPE = (64, 64, 1)
NUM_FRAMES = 20
CENTRES = (16, 48)
TRAIN_WIDTHS = (3, 13)
TEST_WIDTHS = (13, 31)
ALL_WIDTHS = (3, 31)


def load_data(num_train=10_000, num_test=1_000, seed=0):
    """Sequences of small squares to train on, and of large ones.

    Args:
        num_train: Number of training sequences, of 80 kB each.
        num_test: Number of test sequences.
        seed: Non-negative integer.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 arrays `(n, 19, 64, 64,
        1)`, in x all frames but the last and in y, for each of those, the next.

    Raises:
        ValueError: As for `generate`.
    """
    train = generate(num_train, TRAIN_WIDTHS, seed=[seed, 0])
    test = generate(num_test, TEST_WIDTHS, seed=[seed, 1])
    return (train[:, :-1], train[:, 1:]), (test[:, :-1], test[:, 1:])


def generate(
    num_sequences, widths=TRAIN_WIDTHS, num_frames=NUM_FRAMES, seed=None
):
    """Makes sequences of a square that moves and changes its size.

    Its place from left to right, from top to bottom and its width at the
    beginning and at the end are uniform between 16 and 48 and in `widths`, all
    real numbers, and go from one to the other in equal steps. A square reaches
    from its centre half its width to all sides, with cut off fractions and both
    ends included, as in VAEC; the paper does not say how it is drawn.

    Args:
        num_sequences: Positive integer.
        widths: Smallest and largest width in pixels, from 1 to 31.
        num_frames: Positive integer.
        seed: Seed as `np.random.default_rng` takes it: the same sequences every
            time. By default they are new ones.

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
        """Which of the 64 lines of pixels the square covers."""
        line = np.arange(IMAGE_SHAPE[0])
        first, last = centre - width / 2, centre + width / 2
        return (line >= np.floor(first)[..., None]) & (
            line <= np.floor(last)[..., None]
        )

    images = covered(y)[..., None] & covered(x)[..., None, :]
    images = images.view("uint8")[..., None]
    images *= 255  # In place: sequences fill gigabytes.
    return images
