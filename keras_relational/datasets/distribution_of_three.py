"""Abstract rules over fillers never seen before, in four tasks.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*, section 3. The other three tasks are from [Webb et al., 2021](
https://arxiv.org/abs/2012.14601), *Emergent Symbols through Binding in External
Memory*. A filler is a number. A model sees it as a `one_hot` vector, as one of
the `glyphs`, or as an image of your own (`load_images`).

- `"distribution_of_three"`: a row of three fillers, then two of the same three
  in any order. Which one is missing?
- `"identity_rules"`: a row of three fillers under a rule (ABA, ABB or AAA),
  then the first two of a row of other fillers under the same rule. Which one
  comes next?
- `"relational_match_to_sample"`: a pair of fillers, alike or different, then
  two pairs of other fillers, one alike and one different. Which pair is like
  the first?
- `"same_different"`: two fillers. Are they the same?

The first two tasks have two modes. In multiple choice, four options follow the
five fillers. In the generative mode the answer is the filler itself.
"""

import functools
import itertools
import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_relational.datasets.balanced_labels import balanced_labels
from keras_relational.datasets.png import read_png
from keras_relational.random_streams import stream
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers
from keras_relational.validation import needs_extra

TASKS = (
    "distribution_of_three",
    "identity_rules",
    "relational_match_to_sample",
    "same_different",
)
MODES = ("multiple_choice", "generative")
RULES = ("ABA", "ABB", "AAA")
NUM_FILLERS = 100
IMAGE_SHAPE = (32, 32)


class Problems(NamedTuple):
    """Problems of one task.

    Attributes:
        fillers: uint8 `(n, time)`, the filler at each step.
        labels: uint8 `(n,)`.
    """

    fillers: np.ndarray
    labels: np.ndarray


# Number of different fillers that a problem needs, including its options. The
# distribution of three has a fourth option that differs from its three fillers.
_MIN_NUM_FILLERS = {
    "distribution_of_three": 4,
    "identity_rules": 4,
    "relational_match_to_sample": 5,
    "same_different": 2,
}
_PERMUTATIONS = np.array(list(itertools.permutations(range(3))))

# Code points of DejaVu Sans: the letters and symbols whose images are farthest
# apart, chosen one after the other.
_GLYPHS = (
    0x25, 0x4D, 0x57, 0x409, 0x40B, 0x414, 0x416, 0x424, 0x429, 0x42E,
    0x464, 0x466, 0x468, 0x46C, 0x46E, 0x471, 0x478, 0x479, 0x47C, 0x47E,
    0x56D, 0x10A6, 0x10AB, 0x10AD, 0x10B2, 0x10DA, 0x1402, 0x140D, 0x1410,
    0x142B, 0x143F, 0x144D, 0x1460, 0x1467, 0x14E9, 0x14EC, 0x151E, 0x151F,
    0x155A, 0x1568, 0x1574, 0x1578, 0x1580, 0x1581, 0x1592, 0x15A1, 0x15A5,
    0x21F6, 0x2210, 0x2211, 0x222F, 0x2230, 0x2255, 0x226A, 0x22C1, 0x22DA,
    0x22DB, 0x22E5, 0x22EC, 0x22ED, 0x22F5, 0x22F8, 0x22FD, 0x2318, 0x2327,
    0x2387, 0x25A3, 0x25B2, 0x25D5, 0x25D8, 0x25D9, 0x25E7, 0x25EA, 0x25EF,
    0x260A, 0x2639, 0x2645, 0x264D, 0x2650, 0x2665, 0x2692, 0x2697, 0x26A2,
    0x26A3, 0x26A4, 0x26A5, 0x26A7, 0x2752, 0x2761, 0x2770, 0x2771, 0x2789,
    0x2792, 0x29CE, 0x29D0, 0x29D3, 0x2B12, 0x2B24, 0x2D4B, 0x2D5E,
)  # fmt: skip


def load_data(
    withheld: int = 95,
    task: str = "distribution_of_three",
    mode: str = "multiple_choice",
    num_train: int = 10_000,
    num_test: int = 10_000,
    num_fillers: int = NUM_FILLERS,
    seed: int = 0,
) -> tuple[Problems, Problems]:
    """Makes training problems, and test problems with withheld fillers.

    Args:
        withheld: M, the number of fillers that only test problems have. With
            `withheld=0` both sets have the same fillers, but no problem in
            common, even with other options.
        task: One of `TASKS`.
        mode: One of `MODES`.
        num_train: Positive integer, the number of training problems, or all of
            them if fillers are withheld and there are fewer. The distribution
            of three has 360 problems with 95 withheld fillers.
        num_test: Positive integer, the number of test problems, or all.
        num_fillers: N, a positive integer, the number of all fillers.
        seed: Non-negative integer. Equal seeds give equal data. `generate` with
            the same seed draws these problems again: take another one for fresh
            examples.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 fillers and labels, as
        `generate` returns them. Training problems have the fillers 0 to
        N − M − 1, test problems the fillers N − M to N − 1.

    Raises:
        ValueError: If an argument is unknown or out of range, too few fillers
            are left for a problem, or there are not enough problems.
    """
    check_positive_integers(
        num_train=num_train, num_test=num_test, num_fillers=num_fillers
    )
    if not 0 <= withheld < num_fillers:
        raise ValueError(
            f"`withheld` must lie in 0..{num_fillers - 1}. Received: "
            f"withheld={withheld}"
        )
    sizes = num_train, num_test
    if withheld == 0:
        total = num_problems(task, num_fillers)
        if total is None:
            return _divided(task, mode, num_fillers, sizes, seed)
        if sum(sizes) > total:
            raise ValueError(
                f"There are {total} problems of {num_fillers} fillers, fewer "
                f"than num_train + num_test = {sum(sizes)}."
            )
        both = generate(sum(sizes), range(num_fillers), task, mode, seed)
        return (
            Problems(*(x[:num_train] for x in both)),
            Problems(*(x[num_train:] for x in both)),
        )
    first = num_fillers - withheld
    parts = []
    for size, fillers, name in (
        (num_train, range(first), "train"),
        (num_test, range(first, num_fillers), "test"),
    ):
        total = num_problems(task, len(fillers))
        size = size if total is None else min(size, total)
        parts.append(generate(size, fillers, task, mode, stream(seed, name)))
    train, test = parts
    return train, test


def split_fillers(
    fillers: np.ndarray,
    withheld: int,
    task: str = "distribution_of_three",
    mode: str = "multiple_choice",
    num_train: int = 10_000,
    seed: int = 0,
) -> tuple[np.ndarray, Problems, Problems]:
    """Withholds some fillers at random, and makes the problems of a task.

    Each set has 10,000 problems, or as many as there are; `num_train` is for
    more. The seed fixes which M fillers are withheld from training, and the
    problems. Returns the fillers in random order, of which the last ones are
    withheld, and the `Problems` of both sets.

    >>> fillers, train, test = split_fillers(one_hot(), withheld=95)
    >>> len(train.labels), len(test.labels)
    (360, 10000)
    """
    order = np.random.default_rng(stream(seed, "withheld"))
    sizes = max(num_train, 10_000), 10_000
    total = num_problems(task, len(fillers))
    if withheld == 0 and total is not None and total < sum(sizes):
        sizes = total // 2, total // 2  # There are few fillers.
    train, test = load_data(
        withheld=withheld,
        task=task,
        mode=mode,
        num_train=sizes[0],
        num_test=sizes[1],
        num_fillers=len(fillers),
        seed=seed,
    )
    return order.permutation(fillers), train, test


def _divided(task, mode, num_fillers, sizes, seed):
    """Draws problems one by one, and divides them into two sets.

    Twice the needed number is drawn, as some problems are drawn several times.
    The different problems of each label are divided in the proportion of the
    sizes.
    """
    rng = np.random.default_rng(stream(seed, "divided"))
    drawn = generate(
        2 * sum(sizes), range(num_fillers), task, mode, stream(seed, "train")
    )
    shown = drawn.fillers[:, :5] if task == "identity_rules" else drawn.fillers
    _, first, which = np.unique(
        shown, axis=0, return_index=True, return_inverse=True
    )
    is_trained_on = np.zeros(len(first), bool)
    for label in np.unique(drawn.labels):
        (mine,) = np.nonzero(drawn.labels[first] == label)
        number = round(len(mine) * sizes[0] / sum(sizes))
        is_trained_on[rng.permutation(mine)[:number]] = True
    parts = []
    for size, is_it in zip(sizes, (is_trained_on, ~is_trained_on), strict=True):
        (mine,) = np.nonzero(is_it[which.ravel()])
        if len(mine) < size:
            raise ValueError(
                f"Too few different problems of {num_fillers} fillers ({task}) "
                f"for two sets of {sizes[0]} and {sizes[1]} that share none."
            )
        mine = rng.choice(mine, size, replace=False)
        parts.append(Problems(*(x[mine] for x in drawn)))
    return tuple(parts)


def num_problems(task: str, num_fillers: int) -> int | None:
    """The number of problems without their options: 36 C(N, 3), N fillers.

    `None` for the tasks whose problems are drawn independently.
    """
    check_choice("task", task, TASKS)
    if task != "distribution_of_three":
        return None
    return 6 * num_fillers * (num_fillers - 1) * (num_fillers - 2)


def generate(
    size: int,
    fillers: Sequence[int] = range(NUM_FILLERS),
    task: str = "distribution_of_three",
    mode: str = "multiple_choice",
    seed: int | Sequence[int] | None = None,
) -> Problems:
    """Makes problems in random order.

    The distribution of three has 36 C(N, 3) problems. They are sampled without
    replacement, and each gets a random fourth option. The problems of the other
    tasks are drawn one by one: half of the pairs are alike, and a third of the
    rows follow each rule.

    Args:
        size: Positive integer, the number of problems.
        fillers: Sequence of different integers from 0 to 255.
        task: One of `TASKS`.
        mode: `"multiple_choice"` or `"generative"`. The latter is for the
            distribution of three and for identity rules.
        seed: Seed of `np.random.default_rng`. Equal seeds give equal data. By
            default the data are new each time. The seed of a `load_data` gives
            its problems.

    Returns:
        `Problems`. In multiple choice: five fillers and four options, and the
        index of the right option. In the generative mode: five fillers, and the
        sixth as the label. Relational match to sample: three pairs, and 0 or 1,
        the matching one of the last two. Same/different: one pair, and 1 if
        both fillers are the same.

    Raises:
        ValueError: If the task or the mode is unknown, there are fewer problems
            than `size`, or there are too few fillers for a problem.

    Example:

    >>> generate(4, range(95, 100), seed=0).fillers.shape
    (4, 9)
    """
    check_choice("task", task, TASKS)
    check_choice("mode", mode, MODES)
    chosen: np.ndarray = np.asarray(list(fillers))
    if mode == "generative" and TASKS.index(task) > 1:
        raise ValueError(
            "`mode` must be 'multiple_choice', or 'generative' for "
            "distribution_of_three and identity_rules. Received: "
            f"mode={mode!r}, task={task!r}"
        )
    least = _MIN_NUM_FILLERS[task]
    if (task, mode) == ("distribution_of_three", "generative"):
        least = 3
    if (
        len(chosen) < least
        or len(np.unique(chosen)) < len(chosen)
        or not 0 <= chosen.min() <= chosen.max() <= 255
    ):
        raise ValueError(
            f"{task} needs {least} or more different fillers between 0 and 255 "
            f"({mode}). Received: fillers={chosen.tolist()}"
        )
    check_positive_integers(size=size)
    total = num_problems(task, len(chosen))
    if total is not None and size > total:
        raise ValueError(
            f"`size` must be at most {total}, the number of all problems of "
            f"{len(chosen)} fillers. Received: size={size}"
        )
    rng = np.random.default_rng(seed)
    shown, labels = {
        "distribution_of_three": _distribution_of_three,
        "identity_rules": _identity_rules,
        "relational_match_to_sample": _relational_match_to_sample,
        "same_different": _same_different,
    }[task](rng, size, len(chosen), mode)
    if mode == "generative":
        labels = chosen[labels]
    return Problems(chosen[shown].astype("uint8"), labels.astype("uint8"))


def option_orders(problems: Problems) -> Problems:
    """Makes each problem in all 24 orders of its options, first as it is given.

    A network that trains on one order alone can learn by heart where each
    problem has its answer. The papers do not say whether the order changes from
    epoch to epoch. A `ValueError` says if the problems do not have five fillers
    and four options.

    >>> option_orders(generate(4, seed=0)).fillers.shape
    (96, 9)
    """
    fillers, labels = problems
    if fillers.shape[1:] != (9,):
        raise ValueError(
            "Options have other orders in multiple choice only, with five "
            "fillers and four options. Received: problems.fillers.shape="
            f"{fillers.shape}"
        )
    orders = np.array(list(itertools.permutations(range(4))))
    options = fillers[:, 5:][:, orders]  # (n, 24, 4)
    shown = np.repeat(fillers[:, None, :5], len(orders), axis=1)
    places = (orders == labels[:, None, None]).argmax(axis=2)
    return Problems(
        np.concatenate([shown, options], axis=2).swapaxes(0, 1).reshape(-1, 9),
        places.T.reshape(-1).astype("uint8"),
    )


def _distribution_of_three(rng, size, n, mode):
    number = rng.choice(num_problems("distribution_of_three", n), size, False)
    which, order = np.divmod(number, 36)
    first, second = np.divmod(order, 6)
    three = _combinations(n)[which]
    rows = np.concatenate(
        [
            np.take_along_axis(three, _PERMUTATIONS[order], axis=1)
            for order in (first, second)
        ],
        axis=1,
    )
    shown, answer = rows[:, :5], rows[:, 5]
    if mode == "generative":
        return shown, answer
    # Any other filler. The three are in ascending order.
    other = rng.integers(n - 3, size=size)
    for filler in three.T:
        other += other >= filler
    options = np.concatenate([three, other[:, None]], axis=1)
    return _with_options(rng, shown, answer, options)


def _identity_rules(rng, size, n, mode):
    rule = balanced_labels(rng, size, len(RULES))
    # The filler, A or B, at each place of a row.
    places = np.array([["AB".index(x) for x in rule] for rule in RULES])[rule]
    four = _different(rng, size, n, 4)
    rows = np.concatenate(
        [
            np.take_along_axis(pair, places, axis=1)
            for pair in (four[:, :2], four[:, 2:])
        ],
        axis=1,
    )
    shown, answer = rows[:, :5], rows[:, 5]
    if mode == "generative":
        return shown, answer
    # All four fillers. A problem of the rule AAA shows only two of them.
    return _with_options(rng, shown, answer, four)


def _relational_match_to_sample(rng, size, n, mode):
    alike = balanced_labels(rng, size, 2).astype(bool)
    label = rng.integers(0, 2, size)
    # No two pairs share a filler. One of the last two pairs is alike.
    five = _different(rng, size, n, 5)
    source, single, two = five[:, :2], five[:, [2, 2]], five[:, 3:]
    source[alike, 1] = source[alike, 0]
    first_alike = (alike == (label == 0))[:, None]
    first = np.where(first_alike, single, two)
    second = np.where(first_alike, two, single)
    return np.concatenate([source, first, second], axis=1), label


def _same_different(rng, size, n, mode):
    label = balanced_labels(rng, size, 2)
    pairs = _different(rng, size, n, 2)
    pairs[label == 1, 1] = pairs[label == 1, 0]
    return pairs, label


def _with_options(rng, shown, answer, options):
    """Appends options in random order, and returns the index of the answer."""
    options = rng.permuted(options, axis=1)
    label = (options == answer[:, None]).argmax(axis=1)
    return np.concatenate([shown, options], axis=1), label


def _different(rng, size, n, count):
    """Draws different fillers in each row, `(size, count)`."""
    return rng.random((size, n)).argsort(axis=1)[:, :count]


@functools.lru_cache(maxsize=4)
def _combinations(n):
    """Lists all sets of three of n fillers, `(n choose 3, 3)`."""
    i, j, k = np.ogrid[:n, :n, :n]
    return np.stack(np.nonzero((i < j) & (j < k)), axis=1)


def one_hot(num_fillers: int = NUM_FILLERS) -> np.ndarray:
    """Makes fillers that are one-hot vectors, float32 `(n, n)`."""
    return np.eye(num_fillers, dtype="float32")


def glyphs() -> np.ndarray:
    """Makes fillers that are images: 100 letters and symbols.

    They are chosen to look different. Pillow draws them in the font DejaVu
    Sans, which comes with Matplotlib. The paper uses other images of this kind
    (appendix C).

    Returns:
        uint8 array `(100, 32, 32)`, white on black.

    Raises:
        ImportError: If Matplotlib is not installed.
    """
    with needs_extra("plots", "Glyphs"):
        import matplotlib
        from PIL import Image
        from PIL import ImageDraw
        from PIL import ImageFont
    font = ImageFont.truetype(
        os.path.join(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"), 26
    )
    images = []
    for point in _GLYPHS:
        left, top, right, bottom = font.getbbox(chr(point))
        image = Image.new("L", IMAGE_SHAPE)
        middle = (32 - left - right) / 2, (32 - top - bottom) / 2
        ImageDraw.Draw(image).text(middle, chr(point), fill=255, font=font)
        images.append(np.array(image))
    return np.stack(images)


def load_images(
    folder: pathlib.Path | str, size: int = 32, invert: bool = False
) -> np.ndarray:
    """Reads fillers from PNG files, such as those the authors published.

    Args:
        folder: Path of a folder. Its files are read in the order of the numbers
            in their names, and for equal numbers in that of their names.
        size: Positive integer, the height and width of the images that are
            returned. A pixel is the mean of the pixels that it replaces.
        invert: Boolean. If `True`, black becomes white and white black. Our
            `glyphs`, and the fillers of the preset
            `"esbn_distribution_of_three"`, are white on black. The authors'
            images are black on white: of problems of them the preset solves
            98.4 % as they are, and 99.9 % with `invert=True`.

    Returns:
        uint8 array `(n, size, size)`, grey.

    Raises:
        ImportError: If Pillow, which comes with Matplotlib, is not installed.
        ValueError: If there are fewer than two files, a file cannot be read, or
            the images differ in size.
    """

    def number_and_name(path):
        digits = "".join(c for c in path.stem if c.isdigit())
        return int(digits or -1), path.name

    paths = sorted(pathlib.Path(folder).glob("*.png"), key=number_and_name)
    images = [read_png(path, "L") for path in paths]
    shapes = {image.shape for image in images}
    if len(images) < 2 or len(shapes) > 1:
        raise ValueError(
            f"{folder} should hold two or more .png files of one size. "
            f"Received: {len(images)} files, of shapes {sorted(shapes)}"
        )
    if shapes != {(size, size)}:
        images = [read_png(path, "L", size) for path in paths]
    pixels = np.stack(images)
    return 255 - pixels if invert else pixels
