import pytest

from keras_relational import random_streams


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
