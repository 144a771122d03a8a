"""Seeds for the random numbers of a run, one stream for each use."""

# Each name stands for some numbers, which go between the seed and the indices.
# The published results were made with these numbers, so they never change. Two
# names may stand for the same numbers if no experiment uses both.
_STREAMS = {
    # Training. "batch", index: a batch of examples that are generated on
    # demand. "pass", index: the order of examples in one pass over a training
    # set.
    "batch": (),
    "pass": (),
    # Training and test sets.
    "train": (0,),
    "test": (1,),
    # Test sets and examples of a run that also uses "batch". The seed of a
    # batch has two numbers. These have three, so they cannot be equal.
    "test_beside_batches": (0, 1),
    "train_beside_batches": (0, 2),
    "objects_beside_batches": (0, 3),
    "validation_beside_batches": (0, 4),
    "second_test_beside_batches": (0, 2),
    "sample_beside_batches": (0, 2),
    # One test set for each index: a region of VAEC, a number of values to add,
    # a block of intuitive physics.
    "region": (),
    "numbers_to_add": (),
    "block_beside_batches": (0,),
    # PrediNet's transfer protocol.
    "curriculum": (0,),
    "target": (1,),
    "curriculum_test": (2,),
    "target_test": (3,),
    # Images for the analysis of a trained PrediNet.
    "analysed": (2,),
    "analysed_held_out": (3,),
    # Abstract rules: the fillers that are withheld, or if none are, how
    # problems are divided between training and test.
    "withheld": (2,),
    "divided": (2,),
    # Visual analogies: test problems with unseen or with familiar values.
    "unseen_values": (10**9,),
    "familiar_values": (10**9 + 1,),
}


def stream(seed: int, name: str, *indices: int) -> list[int]:
    """The seed of a named stream, for `numpy.random.default_rng`.

    Indices, such as the number of a batch, distinguish streams of one name. For
    NumPy zeros at the end do not count: `[seed, 0]` is the same as `seed`. A
    `ValueError` says if the name is unknown.

    >>> stream(7, "test"), stream(7, "batch", 3)
    ([7, 1], [7, 3])
    """
    if name not in _STREAMS:
        raise ValueError(
            f"Unknown stream {name!r}. Expected one of: {', '.join(_STREAMS)}"
        )
    return [seed, *_STREAMS[name], *indices]


def unseen_world_seeds(num_episodes: int) -> list[int]:
    """Seeds of test episodes, the same for every agent, and in no training."""
    first = 10**9
    return list(range(first, first + num_episodes))
