"""Makes problems: relations, rows and candidates."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_relational.datasets.visual_analogies.domains import DOMAINS
from keras_relational.datasets.visual_analogies.domains import NUM_VALUES
from keras_relational.datasets.visual_analogies.domains import ORDERED_DOMAINS
from keras_relational.datasets.visual_analogies.domains import value_limits
from keras_relational.datasets.visual_analogies.panels import draw_panels
from keras_relational.datasets.visual_analogies.published import IMAGE_SIZE
from keras_relational.datasets.visual_analogies.published import NUM_PANELS
from keras_relational.random_streams import stream
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

RELATIONS = ("and", "or", "xor", "progression")
REGIMES = ("train", "test")
CANDIDATES = ("contrasting", "random")


class Problems(NamedTuple):
    """Visual analogies.

    Attributes:
        images: uint8 `(n, 9, image_size, image_size, 1)`: the three panels of
            the source, the two of the target, and the four candidates.
        labels: uint8 `(n,)`, the index of the answer among the candidates.
        relations: uint8 `(n,)`, indices into `RELATIONS`.
        domains: uint8 `(n, 2)`, the domains of the source and of the target,
            indices into `DOMAINS`.
        values: Boolean `(n, 9, 10)`. `True` marks the values that a panel has
            in the domain of its row.
    """

    images: np.ndarray
    labels: np.ndarray
    relations: np.ndarray
    domains: np.ndarray
    values: np.ndarray


_QUANTITY = DOMAINS.index("shape_quantity")
_XOR = RELATIONS.index("xor")


def load_data(
    num_train: int = 20_000,
    num_test: int = 2_000,
    image_size: int = 80,
    seed: int = 0,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Makes problems to train on, and problems that ask for extrapolation.

    Args:
        num_train: Positive integer, the number of training problems.
        num_test: Positive integer, the number of test problems.
        image_size: Integer, 24 or more. Height and width in pixels.
        seed: Non-negative integer. Equal seeds give equal data. `generate` with
            the same seed makes the training set again: take another one for
            fresh examples.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 images `(n, 9, image_size,
        image_size, 1)`, and uint8 labels.

    Raises:
        ValueError: If a number is out of its range.
    """
    check_positive_integers(num_train=num_train, num_test=num_test)
    train, test = (
        generate(size, regime, image_size=image_size, seed=stream(seed, regime))
        for size, regime in ((num_train, "train"), (num_test, "test"))
    )
    return (train.images, train.labels), (test.images, test.labels)


def generate(
    num_problems: int,
    regime: str = "train",
    candidates: str = "contrasting",
    image_size: int = IMAGE_SIZE,
    seed: int | Sequence[int] | None = None,
    distraction: bool = True,
) -> Problems:
    """Makes problems.

    The source and the target have different domains. Colours, sizes and
    quantities are ordered domains. In these, training problems and the sources
    of test problems use the lower half of the values (quantities 1 to 4). The
    targets of test problems have ordered domains and use the upper half. This
    is the extrapolation regime. Values that vary at random are always in the
    lower half.

    Args:
        num_problems: Positive integer, the number of problems.
        regime: `"train"` or `"test"`.
        candidates: `"contrasting"` or `"random"`. The wrong candidates are the
            results of the other three relations, or have random other values of
            the domain.
        image_size: Integer, 24 or more. Height and width in pixels.
        seed: Seed of `np.random.default_rng`. Equal seeds give equal data. By
            default the data are new each time. The seed of a `load_data` gives
            its training set.
        distraction: Boolean. If `False`, problems are easier: the panels of a
            row differ in its domain only. A panel then has either lines or
            shapes, and three of them, unless their number or their places are
            the domain.

    Returns:
        `Problems`.

    Raises:
        ValueError: If the regime or the kind of candidates is unknown, or a
            number is out of its range.

    Example:

    >>> generate(3, image_size=80, seed=0).images.shape
    (3, 9, 80, 80, 1)
    """
    check_positive_integers(num_problems=num_problems, image_size=image_size)
    check_choice("regime", regime, REGIMES)
    check_choice("candidates", candidates, CANDIDATES)
    if image_size < 24:
        raise ValueError(
            "`image_size` must be 24 or more, so that nine shapes can be told "
            f"apart. Received: image_size={image_size}"
        )
    rng = np.random.default_rng(seed)
    n = num_problems
    domains = _two_domains(rng, n, regime)
    relations = _relations(rng, domains)
    # `True` if the values of the source, or of the target, are beyond training.
    is_far = np.stack([np.zeros(n, bool), np.full(n, regime == "test")], axis=1)
    source = _row(rng, domains[:, 0], is_far[:, 0])
    target = _row(rng, domains[:, 1], is_far[:, 1])
    every = np.arange(n)
    labels = rng.integers(0, 4, n)
    answers = target[every, 2 + relations]
    if candidates == "contrasting":
        foils = _contrasting_foils(rng, relations, target)
    else:
        foils = _random_foils(rng, domains[:, 1], is_far[:, 1], answers)

    # The values of each panel in its domain: (n, panel, value).
    values = np.empty((n, NUM_PANELS, NUM_VALUES), bool)
    values[:, :2] = source[:, :2]
    values[:, 2] = source[every, 2 + relations]
    values[:, 3:5] = target[:, :2]
    values[:, 5:] = _candidates(labels, answers, foils)
    images = draw_panels(
        rng,
        np.repeat(domains, (3, 6), axis=1).ravel(),
        values.reshape(-1, NUM_VALUES),
        np.repeat(is_far, (3, 6), axis=1).ravel(),
        image_size,
        distraction,
    )
    return Problems(
        images.reshape(n, NUM_PANELS, image_size, image_size, 1),
        labels.astype("uint8"),
        relations.astype("uint8"),
        domains.astype("uint8"),
        values,
    )


def _two_domains(rng, n, regime):
    """Draws two different domains. The target of a test problem is ordered."""
    target = rng.integers(0, len(DOMAINS), n)
    if regime == "test":
        ordered = [DOMAINS.index(name) for name in ORDERED_DOMAINS]
        target = rng.choice(ordered, n)
    source = (target + rng.integers(1, len(DOMAINS), n)) % len(DOMAINS)
    return np.stack([source, target], axis=1)


def _relations(rng, domains):
    relations = rng.integers(0, len(RELATIONS), len(domains))
    # No row of quantities has the relation xor.
    no_xor = (domains == _QUANTITY).any(axis=1)
    others = np.delete(np.arange(len(RELATIONS)), _XOR)
    relations[no_xor] = rng.choice(others, no_xor.sum())
    return relations


def _row(rng, domains, is_far):
    """Draws the first two panels of rows, and the third for each relation.

    Booleans `(n, 6, 10)` mark the values that a panel has.
    """
    first, last = value_limits(domains, is_far)
    quantities = domains == _QUANTITY
    reach = np.where(quantities, 2, 3)
    v = first + rng.integers(0, last - first - reach + 1)
    up = rng.integers(0, 2, len(v)).astype(bool)
    step = np.where(up, 1, -1)
    v = np.where(up, v, v + reach)
    way = v[:, None] + step[:, None] * np.arange(4)
    # Which of the four values v, v + s, v + 2 s, v + 3 s each panel has.
    of_sets = np.array(
        [
            (1, 1, 0, 0),
            (0, 1, 1, 0),
            (0, 1, 0, 0),
            (1, 1, 1, 0),
            (1, 0, 1, 0),
            (0, 0, 1, 1),
        ],
        bool,
    )
    smaller = np.where(up, 0, 1)
    value = np.arange(NUM_VALUES)
    elsewhere = (value >= first[:, None]) & (value <= last[:, None])
    elsewhere &= (value != way[:, :3, None]).all(axis=1)
    other = np.where(elsewhere, rng.random(elsewhere.shape), 2).argmin(axis=1)
    counts = np.stack(
        [
            way[:, 0],
            way[:, 1],
            way[np.arange(len(v)), smaller],
            way[np.arange(len(v)), 1 - smaller],
            other,
            way[:, 2],
        ],
        axis=1,
    )
    panels = np.zeros((len(v), 6, NUM_VALUES), bool)
    rows = np.arange(len(v))[:, None]
    for number in range(4):
        # The fourth value of a quantity may be out of range. It is not used.
        place = np.clip(way[:, number, None], 0, NUM_VALUES - 1)
        panels[rows, np.arange(6), place] |= of_sets[:, number]
    one = value == counts[..., None]
    return np.where(quantities[:, None, None], one, panels)


def _contrasting_foils(rng, relations, target):
    """The panels of the other three relations in random order, `(n, 3, 10)`."""
    n = len(relations)
    foils = np.argsort(
        np.where(np.arange(4) == relations[:, None], 2, rng.random((n, 4))),
        axis=1,
    )[:, :3]
    return target[np.arange(n)[:, None], 2 + foils]


def _random_foils(rng, domains, is_far, answers):
    """Draws three other panels with one to three values, `(n, 3, 10)`."""
    first, last = (limit[:, None] for limit in value_limits(domains, is_far))
    value = np.arange(NUM_VALUES)
    allowed = (value >= first) & (value <= last)
    sizes = rng.integers(1, 4, (len(domains), 24))
    order = np.where(
        allowed[:, None], rng.random((len(domains), 24, NUM_VALUES)), 2
    ).argsort(axis=-1)
    drawn = np.zeros((len(domains), 24, NUM_VALUES), bool)
    np.put_along_axis(drawn, order, value < sizes[..., None], axis=-1)
    drawn &= allowed[:, None]
    # There may be only four quantities, so each is tried once.
    quantities = domains == _QUANTITY
    drawn[quantities, :NUM_VALUES] = (
        order[quantities, 0, :, None] == value
    ) & allowed[quantities, None]
    # The first three that differ from the answer and from each other.
    everything = np.concatenate([answers[:, None], drawn], axis=1)
    codes = everything @ (1 << value)
    seen = (codes[:, :, None] == codes[:, None]) & np.tri(25, k=-1, dtype=bool)
    fresh = ~seen.any(axis=-1)
    fresh[:, 0] = False
    chosen = np.argsort(~fresh, axis=1, kind="stable")[:, :3]
    return everything[np.arange(len(domains))[:, None], chosen]


def _candidates(labels, answers, foils):
    """Puts the answers at the places of the labels, and foils elsewhere."""
    is_answer = np.arange(4) == labels[:, None]
    place = np.where(is_answer, 3, np.cumsum(~is_answer, axis=1) - 1)
    choices = np.concatenate([foils, answers[:, None]], axis=1)
    return choices[np.arange(len(labels))[:, None], place]
