"""The card game SET: is there a set among these cards?

A card has four attributes with three values each: number, colour, shape and
shading. Three cards are a set if in each attribute all are alike or all differ.
Altabaa and Lafferty, 2023, *Learning hierarchical relational representations
through relational convolutions*, ask whether five cards contain a set. What the
paper leaves out follows the authors' program. There a small network makes a
vector of the picture of a card. Here the vector is the attributes themselves.
"""

import itertools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from keras_relational.random_streams import stream
from keras_relational.validation import check_positive_integers

Part: TypeAlias = tuple[np.ndarray, np.ndarray]

NUM_ATTRIBUTES, NUM_VALUES = 4, 3
# `(81, 4)`: the attributes of each card.
CARDS = np.indices((NUM_VALUES,) * NUM_ATTRIBUTES).reshape(NUM_ATTRIBUTES, -1).T
# Shares of the sets for training and for validation. The rest is for the test.
SHARES = (0.70, 0.15)


def load_data(
    num_train: int = 18_000,
    num_validation: int = 2_000,
    num_test: int = 4_000,
    num_cards: int = 5,
    seed: int = 0,
) -> tuple[Part, Part, Part]:
    """Makes hands of cards, and says which contain a set.

    Half of the hands contain a set. The 1,080 sets are divided first: 70
    percent are for training, 15 for validation and the rest for the test. So
    the test asks for sets that no training hand was made of. The other cards of
    a hand are drawn at random.

    Args:
        num_train: Positive integer, number of training hands.
        num_validation: Positive integer, number of validation hands.
        num_test: Positive integer, number of test hands.
        num_cards: Integer from 3 to 9, number of cards of a hand.
        seed: Non-negative integer. Equal seeds give equal data. The first
            training hands are the same for any `num_train`.

    Returns:
        `(x_train, y_train), (x_validation, y_validation), (x_test, y_test)`:
        float32 hands `(n, num_cards, 12)`, a 1 for the value of each attribute,
        and int32 labels `(n,)`, 1 for a hand with a set.

    Raises:
        ValueError: If a number is out of its range.

    Example:

    >>> (x, y), _, _ = load_data(4, 4, 4, seed=0)
    >>> x.shape, y.sum()
    ((4, 5, 12), np.int64(2))
    """
    check_positive_integers(
        num_train=num_train, num_validation=num_validation, num_test=num_test
    )
    if num_cards not in range(3, 10):
        raise ValueError(
            "A hand has from 3 to 9 cards: larger ones nearly always contain a "
            f"set. Received: num_cards={num_cards}"
        )
    sets = np.random.default_rng(
        stream(seed, "objects_beside_batches")
    ).permutation(all_sets())
    ends = np.cumsum([round(share * len(sets)) for share in SHARES])
    numbers = {
        "train": num_train,
        "validation": num_validation,
        "test": num_test,
    }
    train, validation, test = (
        _hands(part, number, num_cards, stream(seed, f"{name}_beside_batches"))
        for part, (name, number) in zip(
            np.split(sets, ends), numbers.items(), strict=True
        )
    )
    return train, validation, test


def all_sets() -> np.ndarray:
    """The 1,080 sets: indices into `CARDS` `(1080, 3)`, each row increasing."""
    pairs = np.array(list(itertools.combinations(range(len(CARDS)), 2)))
    thirds = third_card(*pairs.T)
    sets = np.column_stack([pairs, thirds])
    return sets[thirds > pairs[:, 1]]


def third_card(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The card that makes a set with two others, all as indices into `CARDS`.

    The values of an attribute in a set are 0 modulo 3 in sum, whether they are
    all alike or all different.
    """
    values = -(CARDS[first] + CARDS[second]) % NUM_VALUES
    return np.ravel_multi_index(
        np.moveaxis(values, -1, 0), (NUM_VALUES,) * NUM_ATTRIBUTES
    )


def contains_set(hands: np.ndarray) -> np.ndarray:
    """Which hands `(n, num_cards)` of indices into `CARDS` contain a set."""
    found = np.zeros(len(hands), bool)
    for i, j in itertools.combinations(range(hands.shape[1]), 2):
        third = third_card(hands[:, i], hands[:, j])
        found |= (hands == third[:, None]).any(axis=1)
    return found


def vectors(cards: np.ndarray) -> np.ndarray:
    """Cards, as indices into `CARDS`, as vectors of 12.

    For each attribute there is a 1 for its value, in float32.
    """
    codes = np.eye(NUM_VALUES, dtype="float32")[CARDS[cards]]
    return codes.reshape(*np.shape(cards), NUM_ATTRIBUTES * NUM_VALUES)


def _hands(
    sets: np.ndarray, number: int, num_cards: int, seed: Sequence[int]
) -> Part:
    """Hands in turn with a set of these, and without any."""
    hands = np.empty((number, num_cards), int)
    labels = 1 - np.arange(number, dtype="int32") % 2
    with_set, without = np.random.default_rng(seed).spawn(2)
    hands[::2] = _with_set(sets, len(hands[::2]), num_cards, with_set)
    hands[1::2] = _without_set(len(hands[1::2]), num_cards, without)
    return vectors(hands), labels


def _with_set(sets, number, num_cards, rng):
    draws = rng.random((number, 1 + len(CARDS) + num_cards))
    chosen = sets[(draws[:, 0] * len(sets)).astype(int)]
    # The cards of the set come first, then the others at random.
    order = draws[:, 1 : 1 + len(CARDS)].copy()
    np.put_along_axis(order, chosen, -1.0, axis=1)
    hands = order.argsort(axis=1)[:, :num_cards]
    places = draws[:, 1 + len(CARDS) :].argsort(axis=1)
    return np.take_along_axis(hands, places, axis=1)


def _without_set(number, num_cards, rng):
    hands = np.empty((0, num_cards), int)
    while len(hands) < number:
        # A fixed number of draws, so that the first hands are always the same.
        drawn = rng.random((1_000, len(CARDS))).argsort(axis=1)[:, :num_cards]
        hands = np.concatenate([hands, drawn[~contains_set(drawn)]])
    return hands[:number]
