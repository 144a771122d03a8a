"""Abstract rules over fillers never seen: distribution of three, and others.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*, section 3, and, for the other three tasks, [Webb et al., 2021](
https://arxiv.org/abs/2012.14601), *Emergent Symbols through Binding in External
Memory*. Fillers are numbers; what they look like is another matter: `one_hot`
vectors, `glyphs`, or images of one's own (`load_images`).

- `"distribution_of_three"`: a row of three fillers, then two of the same, in
  any order. Which one is missing?
- `"identity_rules"`: a row of three fillers, ABA, ABB or AAA, then the first
  two of a row of other fillers under the same rule. Which one comes next?
- `"relational_match_to_sample"`: a pair of fillers, alike or different, then
  two pairs of other fillers, one alike, one different. Which one is like the
  first?
- `"same_different"`: two fillers. Are they the same?

The first two have a multiple choice of four fillers after the five, or ask for
the filler itself.
"""

import collections
import functools
import itertools
import os
import pathlib

import numpy as np

from keras_relational.datasets.balanced_labels import balanced_labels
from keras_relational.datasets.png import read_png

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

Problems = collections.namedtuple("Problems", ("fillers", "labels"))

# How many different fillers a task needs, those of its options among them. The
# distribution of three has a fourth option that is none of its three.
_LEAST = {
    "distribution_of_three": 4,
    "identity_rules": 4,
    "relational_match_to_sample": 5,
    "same_different": 2,
}
_PERMUTATIONS = np.array(list(itertools.permutations(range(3))))

# Code points of DejaVu Sans: of its letters and symbols those whose images are
# farthest apart, picked one after the other.
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
    withheld=95,
    task="distribution_of_three",
    mode="multiple_choice",
    num_train=10_000,
    num_test=10_000,
    num_fillers=NUM_FILLERS,
    seed=0,
):
    """Problems to train on, and problems of fillers withheld from those.

    Args:
        withheld: M, how many of the fillers are kept for testing. With none of
            them, the two sets share their fillers, but no problem, whatever its
            options.
        task: As for `generate`.
        mode: As for `generate`.
        num_train: Number of training problems, or, with withheld fillers, of
            all there are, if there are fewer (distribution of three, 95
            withheld: 360, 97: 36).
        num_test: Number of test problems, the same.
        num_fillers: N, how many fillers there are.
        seed: Non-negative integer.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 arrays of fillers and
        labels, as `generate` returns them. Training problems have fillers 0 to
        N − M − 1, test problems N − M to N − 1.

    Raises:
        ValueError: As for `generate`, and if too many fillers are withheld, or
            too few for a problem, or there are not enough problems.
    """
    if not 0 <= withheld < num_fillers:
        raise ValueError(
            f"`withheld` must lie in 0..{num_fillers - 1}. Received: "
            f"withheld={withheld}"
        )
    sizes = num_train, num_test
    if withheld == 0:
        total = num_problems(task, num_fillers)
        if total is None:
            return _apart(task, mode, num_fillers, sizes, seed)
        if sum(sizes) > total:
            raise ValueError(
                f"There are {total} problems of {num_fillers} fillers, fewer "
                f"than num_train + num_test = {sum(sizes)}."
            )
        both = generate(sum(sizes), range(num_fillers), task, mode, seed)
        return tuple(
            Problems(*(x[part] for x in both))
            for part in (slice(num_train), slice(num_train, None))
        )
    first = num_fillers - withheld
    parts = []
    for number, fillers in enumerate((range(first), range(first, num_fillers))):
        total = num_problems(task, len(fillers))
        size = sizes[number] if total is None else min(sizes[number], total)
        parts.append(generate(size, fillers, task, mode, [seed, number]))
    return tuple(parts)


def _apart(task, mode, num_fillers, sizes, seed):
    """Two sets of problems drawn one by one that have none in common.

    Twice as many are drawn, and which are the same, is seen. Of the different
    ones under each label, as many in proportion go to either set.
    """
    rng = np.random.default_rng([seed, 2])
    drawn = generate(2 * sum(sizes), range(num_fillers), task, mode, [seed, 0])
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


def num_problems(task, num_fillers):
    """How many problems there are, options not counted.

    Args:
        task: One of `TASKS`.
        num_fillers: Number of fillers.

    Returns:
        Integer, 36 C(N, 3) for the distribution of three; None for tasks whose
        problems are drawn independently of each other.

    Raises:
        ValueError: If there is no such task.
    """
    _check_task(task)
    if task != "distribution_of_three":
        return None
    return 6 * num_fillers * (num_fillers - 1) * (num_fillers - 2)


def generate(
    size,
    fillers=range(NUM_FILLERS),
    task="distribution_of_three",
    mode="multiple_choice",
    seed=None,
):
    """Makes problems, in random order.

    Those of the distribution of three are a sample without replacement of all
    36 C(N, 3), each with a fourth option drawn at random; those of the other
    tasks are drawn one by one, half of the pairs alike and a third of the rows
    under each rule.

    Args:
        size: Number of problems.
        fillers: Sequence of different numbers from 0 to 255.
        task: One of `TASKS`.
        mode: `"multiple_choice"` or `"generative"`, which is for the
            distribution of three and identity rules.
        seed: Seed as `np.random.default_rng` takes it: the same problems every
            time. By default they are new ones.

    Returns:
        `Problems` of uint8 arrays: `fillers` `(size, time)`, what is shown one
        after the other, and `labels` `(size,)`. Multiple choice: five fillers
        and four options, and which option it is, 0 to 3. Generative: five
        fillers, and the sixth. Relational match to sample: three pairs, and
        which of the last two it is, 0 or 1. Same/different: a pair, and 1 if
        both are the same.

    Raises:
        ValueError: If there is no such task or mode, or there are not so many
            problems, or too few fillers for one.

    Example:

    >>> generate(4, range(95, 100), seed=0).fillers.shape
    (4, 9)
    """
    _check_task(task)
    fillers = np.asarray(list(fillers))
    if mode not in MODES or (mode == "generative" and TASKS.index(task) > 1):
        raise ValueError(
            f"`mode` must be one of: {', '.join(MODES)}; the latter for "
            f"distribution_of_three and identity_rules. Received: mode={mode!r}"
            f", task={task!r}"
        )
    least = _LEAST[task]
    if (task, mode) == ("distribution_of_three", "generative"):
        least = 3
    if (
        len(fillers) < least
        or len(np.unique(fillers)) < len(fillers)
        or not 0 <= fillers.min() <= fillers.max() <= 255
    ):
        raise ValueError(
            f"{task} needs {least} or more different fillers between 0 and 255 "
            f"({mode}). Received: fillers={fillers.tolist()}"
        )
    total = num_problems(task, len(fillers))
    if size < 1 or (total is not None and size > total):
        most = "" if total is None else f" of at most {total}"
        raise ValueError(
            f"`size` must be a positive integer{most}, all problems of "
            f"{len(fillers)} fillers. Received: size={size}"
        )
    rng = np.random.default_rng(seed)
    shown, labels = {
        "distribution_of_three": _distribution_of_three,
        "identity_rules": _identity_rules,
        "relational_match_to_sample": _relational_match_to_sample,
        "same_different": _same_different,
    }[task](rng, size, len(fillers), mode)
    if mode == "generative":
        labels = fillers[labels]
    return Problems(fillers[shown].astype("uint8"), labels.astype("uint8"))


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
    # Any but the three, which are in order.
    other = rng.integers(n - 3, size=size)
    for filler in three.T:
        other += other >= filler
    options = np.concatenate([three, other[:, None]], axis=1)
    return _with_options(rng, shown, answer, options)


def _identity_rules(rng, size, n, mode):
    rule = balanced_labels(rng, size, len(RULES))
    # A and B, and where they stand, row by row.
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
    # All four, of which AAA shows two only.
    return _with_options(rng, shown, answer, four)


def _relational_match_to_sample(rng, size, n, mode):
    alike = balanced_labels(rng, size, 2).astype(bool)
    label = rng.integers(0, 2, size)
    # No two pairs share a filler. Of the last two, one needs a single one.
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
    """The options in random order after what is shown, and the answer's place.

    Args:
        rng: Generator.
        shown: `(size, 5)`.
        answer: `(size,)`.
        options: `(size, 4)`, the answer among them.
    """
    options = rng.permuted(options, axis=1)
    label = (options == answer[:, None]).argmax(axis=1)
    return np.concatenate([shown, options], axis=1), label


def _different(rng, size, n, count):
    """So many different fillers in each row, `(size, count)`."""
    return rng.random((size, n)).argsort(axis=1)[:, :count]


@functools.lru_cache(maxsize=4)
def _combinations(n):
    """All sets of three of so many, `(n choose 3, 3)`."""
    i, j, k = np.ogrid[:n, :n, :n]
    return np.stack(np.nonzero((i < j) & (j < k)), axis=1)


def one_hot(num_fillers=NUM_FILLERS):
    """Fillers as one-hot vectors.

    Args:
        num_fillers: Positive integer.

    Returns:
        float32 array `(num_fillers, num_fillers)`.
    """
    return np.eye(num_fillers, dtype="float32")


def glyphs():
    """Fillers as images: 100 letters and symbols that look different.

    Of the font DejaVu Sans, which Matplotlib brings along, drawn by Pillow,
    which Matplotlib needs. The paper's are others, of the same kind (its
    appendix C).

    Returns:
        uint8 array `(100, 32, 32)`, white on black.

    Raises:
        ImportError: If Matplotlib is not installed.
    """
    try:
        import matplotlib
        from PIL import Image
        from PIL import ImageDraw
        from PIL import ImageFont
    except ImportError as error:
        raise ImportError(
            "Glyphs are drawn in a font of Matplotlib's, which is not "
            "installed. Run: pip install 'keras_relational[plots]'"
        ) from error
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


def load_images(folder, size=32):
    """Fillers from a folder of PNG files, such as the authors' published ones.

    Args:
        folder: Path of a folder; its files are read in the order of the numbers
            in their names, and then of the names.
        size: Height and width, in pixels, that they are brought to, each pixel
            the mean of what it covers.

    Returns:
        uint8 array `(n, size, size)`, in grey.

    Raises:
        ImportError: If Pillow, which comes with Matplotlib, is not installed.
        ValueError: If there are fewer than two files, one cannot be read, or
            they differ in size.
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
    return np.stack(images)


def _check_task(task):
    if task not in TASKS:
        raise ValueError(
            f"Unknown task {task!r}. Expected one of: {', '.join(TASKS)}"
        )
