import numpy as np
import pytest

from keras_relational.datasets import ordered_objects


def test_every_pair_is_in_one_part_and_labelled_by_rank():
    parts = ordered_objects.load_pairs(num_objects=20, num_features=6, seed=3)
    assert [len(y) for _, y in parts] == [190, 57, 133]
    x = np.concatenate([x for x, _ in parts])
    y = np.concatenate([y for _, y in parts])
    assert x.dtype == np.float32
    assert y.dtype == np.int32
    assert len(np.unique(x.reshape(380, -1), axis=0)) == 380
    objects = np.unique(x.reshape(-1, 6), axis=0)
    assert len(objects) == 20
    names = np.argmax((x[:, :, None] == objects).all(-1), -1)
    # So many objects come after an object.
    after = np.bincount(names[:, 0], weights=y)
    assert sorted(after) == list(range(20))
    first, second = names.T
    np.testing.assert_array_equal(y, after[first] > after[second])


def test_objects_are_normal_and_do_not_show_their_rank():
    (x, y), *_ = ordered_objects.load_pairs(400, 16, seed=0)
    objects = np.unique(x.reshape(-1, 16), axis=0)
    assert objects.mean() == pytest.approx(0, abs=0.05)
    assert objects.std() == pytest.approx(1, abs=0.03)
    assert y.mean() == pytest.approx(0.5, abs=0.01)
    # Features are as large in the first object of a pair in order as in others.
    means = x[y == 1, 0].mean(0) - x[y == 0, 0].mean(0)
    assert np.abs(means).max() < 4 * (2 / 400) ** 0.5 * 2


def test_sequences_are_sorted_by_the_first_attribute_and_then_the_second():
    parts = ordered_objects.load_sequences(300, 40, 50, seed=1)
    assert [x.shape for x, _ in parts] == [
        (300, 10, 12),
        (40, 10, 12),
        (50, 10, 12),
    ]
    x, y = parts[0]
    assert x.dtype == np.float32
    assert y.dtype == np.int32
    objects = np.unique(x.reshape(-1, 12), axis=0)
    assert len(objects) == 48
    sequence = np.take_along_axis(x, y[..., None], axis=1)
    # Ranks of the two attributes, from the sequences alone.
    first = np.unique(sequence[..., :4].reshape(-1, 4), axis=0)
    second = np.unique(sequence[..., 4:].reshape(-1, 8), axis=0)
    assert (len(first), len(second)) == (4, 12)
    names = np.argmax((sequence[..., None, :4] == first).all(-1), -1)
    other = np.argmax((sequence[..., None, 4:] == second).all(-1), -1)
    first_ranks = [np.flatnonzero(names == i) % 10 for i in range(4)]
    order = np.argsort([places.mean() for places in first_ranks])
    ranks = np.argsort(order)[names]
    assert (np.diff(ranks, axis=1) >= 0).all()
    before = np.zeros((12, 12), bool)
    same = ranks[:, 1:] == ranks[:, :-1]
    before[other[:, :-1][same], other[:, 1:][same]] = True
    assert not (before & before.T).any()


def test_the_first_training_sequences_are_the_same():
    (few, few_places), *_ = ordered_objects.load_sequences(5, 3, 3, seed=2)
    (many, places), *others = ordered_objects.load_sequences(50, 3, 3, seed=2)
    np.testing.assert_array_equal(many[:5], few)
    np.testing.assert_array_equal(places[:5], few_places)
    for x, _ in others:  # The other parts have sequences of their own.
        assert not (x[:, None] == many).all((-1, -2)).any()


def test_refuses_what_is_no_number_of_objects():
    with pytest.raises(ValueError, match="two objects to compare"):
        ordered_objects.load_pairs(num_objects=1)
