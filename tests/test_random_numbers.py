"""Random numbers by counters, and the streams of seeds."""

import numpy as np
import pytest
from keras import ops

from keras_relational import random_streams
from keras_relational.counter_based_random import random_bits
from keras_relational.counter_based_random import random_draws
from keras_relational.counter_based_random import random_ranks
from keras_relational.counter_based_random import random_uniform


def mixed(x):
    """The hash in Python's integers."""
    x = (x + 0x9E3779B9) % 2**32
    x ^= x >> 16
    x = x * 0x7FEB352D % 2**32
    x ^= x >> 15
    x = x * 0x846CA68B % 2**32
    return x ^ (x >> 16)


@pytest.mark.any_backend
@pytest.mark.parametrize("seed", [0, 7, 2**31, 2**32 - 1])
def test_bits_are_the_same_on_any_machine(seed):
    counters = np.array([0, 1, 2**32 - 1], "uint32")
    bits = ops.convert_to_numpy(random_bits(np.uint32(seed), counters))
    expected = [
        mixed((mixed(seed) + int(counter)) % 2**32) for counter in counters
    ]
    assert bits.tolist() == expected


def test_uniform_numbers():
    numbers = ops.convert_to_numpy(
        random_uniform(np.uint32(3), np.arange(100_000, dtype="uint32"))
    )
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert len(np.unique(numbers)) > 99_000
    counts = np.histogram(numbers, bins=50, range=(0, 1))[0]
    # Chi-square with 49 degrees of freedom: above 95 once in 10,000 times.
    assert np.sum((counts - 2_000) ** 2 / 2_000) < 95


def test_ranks():
    numbers = np.array([[0.3, 0.1, 0.3, 0.2], [0, 0, 0, 0]], "float32")
    ranks = ops.convert_to_numpy(random_ranks(ops.convert_to_tensor(numbers)))
    assert ranks.tolist() == [[2, 0, 3, 1], [0, 1, 2, 3]]


def test_draws_follow_the_softmax():
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4], "float32"))
    rows = np.arange(100_000, dtype="uint32")[:, None]
    draws = ops.convert_to_numpy(
        random_draws(
            ops.convert_to_tensor(np.tile(logits, (100_000, 1))), 5, 0, rows
        )
    )
    counts = np.bincount(draws, minlength=4)
    expected = 100_000 * np.exp(logits)
    # Three degrees of freedom: above 21 once in 10,000 times.
    assert np.sum((counts - expected) ** 2 / expected) < 21
    # Another step gives another draw.
    other = ops.convert_to_numpy(
        random_draws(
            ops.convert_to_tensor(np.tile(logits, (1_000, 1))),
            5,
            1,
            rows[:1_000],
        )
    )
    assert 0.2 < np.mean(other == draws[:1_000]) < 0.4


def test_what_is_impossible_is_never_drawn():
    logits = np.full((10_000, 3), -np.inf, "float32")
    logits[:, 1:] = 0
    rows = np.arange(10_000, dtype="uint32")[:, None]
    draws = random_draws(ops.convert_to_tensor(logits), 1, rows)
    assert set(np.unique(ops.convert_to_numpy(draws))) == {1, 2}


def test_streams_are_those_of_the_published_results():
    stream = random_streams.stream
    assert stream(7, "batch", 3) == [7, 3]
    assert stream(7, "pass", 3) == [7, 3]
    assert stream(7, "train") == [7, 0]
    assert stream(7, "test") == [7, 1]
    assert stream(7, "test_beside_batches") == [7, 0, 1]
    assert stream(7, "block_beside_batches", 2) == [7, 0, 2]
    assert stream(7, "unseen_values") == [7, 1_000_000_000]
    assert random_streams.unseen_world_seeds(2) == [10**9, 10**9 + 1]


def test_an_unknown_stream_is_refused():
    with pytest.raises(ValueError, match=r"Unknown stream 'trian'.*train"):
        random_streams.stream(7, "trian")
