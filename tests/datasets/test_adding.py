import numpy as np
import pytest

from keras_relational.datasets import adding


@pytest.mark.parametrize("length", [50, 53, 200])
@pytest.mark.parametrize("count", [1, *adding.TEST_VALUES])
def test_one_number_in_each_part_is_marked_and_added(length, count):
    inputs, targets = adding.generate(300, length, count, seed=0)
    assert inputs.shape == (300, length, 2)
    assert inputs.dtype == targets.dtype == np.float32
    edges = [part * length // count for part in range(count + 1)]
    for (numbers, marks), target in zip(
        np.moveaxis(inputs, 2, 1), targets, strict=True
    ):
        assert set(marks) <= {0, 1}
        (places,) = np.nonzero(marks)
        assert len(places) == count
        for place, first, end in zip(
            places, edges[:-1], edges[1:], strict=True
        ):
            assert first <= place < end
        assert target == pytest.approx(sum(numbers[places]), abs=1e-5)


def test_numbers_and_places_are_uniform():
    inputs, _ = adding.generate(10_000, 50, 2, seed=1)
    numbers, marks = np.moveaxis(inputs, 2, 0)
    assert numbers.min() >= 0
    assert numbers.max() <= 1
    counts, _ = np.histogram(numbers, 10, (0, 1))
    np.testing.assert_allclose(counts / numbers.size, 0.1, atol=0.003)
    # Four standard errors.
    np.testing.assert_allclose(marks.mean(0), 1 / 25, atol=0.008)
    # Numbers are as large where they are marked as elsewhere.
    assert numbers[marks == 1].mean() == pytest.approx(0.5, abs=0.01)
    # The two places are drawn independently.
    places = np.nonzero(marks)[1].reshape(-1, 2)
    assert abs(np.corrcoef(places.T)[0, 1]) < 0.04


def test_a_mixture_has_equal_shares_in_random_order():
    inputs, _ = adding.generate(3_000, 50, (2, 4, 9), seed=2)
    counts = inputs[..., 1].sum(1)
    for count in (2, 4, 9):
        assert (counts == count).sum() == 1_000
        assert 250 < (counts[:1_000] == count).sum() < 420
    assert 0.25 < (counts[1:] == counts[:-1]).mean() < 0.42


def test_no_number_is_in_both_parts():
    (x_train, _), (x_test, _) = adding.load_data(3, 3)
    assert not np.isin(x_test[..., 0], x_train[..., 0]).any()
    _, (x_test, _) = adding.load_data(60, 40, test_values=(3, 5))
    assert set(x_test[..., 1].sum(1)) == {3, 5}
