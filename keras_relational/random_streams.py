"""Named streams of random numbers, so that no two uses share one by chance."""

# Each name stands for the numbers between the seed and the indices. They are
# those that the published results were made with, so they never change. Names
# that no single experiment uses together may stand for the same numbers.
_STREAMS = {
    # Training: batch number `index` of examples that are made as needed, and
    # the order of the examples in pass number `index` over a training set.
    "batch": (),
    "pass": (),
    # Training and test sets.
    "train": (0,),
    "test": (1,),
    # Test sets and examples next to a stream "batch": with three numbers none
    # of them can be the seed of a batch, which has two.
    "test_beside_batches": (0, 1),
    "train_beside_batches": (0, 2),
    "second_test_beside_batches": (0, 2),
    "sample_beside_batches": (0, 2),
    # A test set for each index: VAEC's regions, how many numbers to add, blocks
    # of intuitive physics.
    "region": (),
    "numbers_to_add": (),
    "block_beside_batches": (0,),
    # PrediNet's transfer protocol.
    "curriculum": (0,),
    "target": (1,),
    "curriculum_test": (2,),
    "target_test": (3,),
    # Images on which a trained PrediNet is looked into.
    "analysed": (2,),
    "analysed_held_out": (3,),
    # Which fillers are withheld in abstract rules.
    "withheld": (2,),
    # Visual analogies: test problems of the two kinds of values.
    "unseen_values": (10**9,),
    "familiar_values": (10**9 + 1,),
}


def stream(seed: int, name: str, *indices: int) -> list[int]:
    """The seed of a named stream, for `numpy.random.default_rng`.

    Args:
        seed: Non-negative integer, the seed of the whole run.
        name: What the numbers are for, such as `"train"`.
        *indices: Non-negative integers that tell streams of one name apart,
            such as the number of a batch.

    Returns:
        List of integers.

    Raises:
        ValueError: If the name is unknown.

    Example:

    >>> stream(7, "test"), stream(7, "batch", 3)
    ([7, 1], [7, 3])
    """
    if name not in _STREAMS:
        raise ValueError(
            f"Unknown stream {name!r}. Expected one of: {', '.join(_STREAMS)}"
        )
    return [seed, *_STREAMS[name], *indices]


def unseen_world_seeds(num_episodes: int) -> list[int]:
    """Seeds of episodes that no training sees, the same for every agent.

    Args:
        num_episodes: Number of episodes.

    Returns:
        List of integers, one an episode.
    """
    first = 10**9
    return list(range(first, first + num_episodes))
