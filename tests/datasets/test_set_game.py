import itertools

import numpy as np
import pytest

from keras_relational.datasets import set_game


def is_set(cards):
    """By the rules of the game, card by card."""
    return all(
        len(set(values)) in (1, 3) for values in zip(*cards, strict=True)
    )


def cards_of(hands):
    """The attributes that a model sees, as numbers."""
    x = hands.reshape(*hands.shape[:-1], 4, 3)
    assert (x.sum(-1) == 1).all()
    assert set(np.unique(x)) == {0, 1}
    return x.argmax(-1)


def sets_in(hand):
    triples = itertools.combinations(map(tuple, hand), 3)
    return {frozenset(triple) for triple in triples if is_set(triple)}


def test_all_sets_are_those_of_the_rules():
    cards = [tuple(card) for card in set_game.CARDS]
    assert len(set(cards)) == 81
    by_rule = {
        triple
        for triple in itertools.combinations(range(81), 3)
        if is_set([cards[i] for i in triple])
    }
    found = set_game.all_sets()
    assert found.shape == (1_080, 3)
    assert set(map(tuple, found)) == by_rule


@pytest.mark.parametrize("num_cards", [3, 5, 9])
def test_labels_are_those_of_the_rules(num_cards):
    parts = set_game.load_data(60, 30, 40, num_cards, seed=1)
    for (x, y), number in zip(parts, (60, 30, 40), strict=True):
        assert x.shape == (number, num_cards, 12)
        assert x.dtype == np.float32
        assert y.dtype == np.int32
        assert y.sum() == number // 2
        for hand, label in zip(cards_of(x), y, strict=True):
            assert len({tuple(card) for card in hand}) == num_cards
            assert bool(sets_in(hand)) == label


def test_no_set_is_in_two_parts():
    parts = set_game.load_data(3_000, 600, 600, num_cards=3, seed=0)
    sets = [
        set.union(*(sets_in(hand) for hand in cards_of(x[y == 1])))
        for x, y in parts
    ]
    assert [len(found) for found in sets] == pytest.approx([650, 140, 140], 0.1)
    for one, other in itertools.combinations(sets, 2):
        assert not one & other


def test_a_set_may_be_anywhere_in_a_hand():
    (x, y), *_ = set_game.load_data(4_000, 2, 2, seed=0)
    places = np.zeros(5)
    for hand in cards_of(x[y == 1]):
        cards = list(map(tuple, hand))
        for triple in sets_in(hand):
            places += np.isin(range(5), [cards.index(card) for card in triple])
    assert places / places.sum() == pytest.approx(0.2, abs=0.02)


def test_the_first_training_hands_are_the_same():
    (few, labels), *_ = set_game.load_data(7, 3, 3, seed=2)
    (many, more), *_ = set_game.load_data(3_000, 3, 3, seed=2)
    np.testing.assert_array_equal(many[:7], few)
    np.testing.assert_array_equal(more[:7], labels)


def test_refuses_other_numbers():
    with pytest.raises(ValueError, match=r"from 3 to 9 cards.*num_cards=2"):
        set_game.load_data(num_cards=2)
