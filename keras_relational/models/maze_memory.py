"""Memories for agents that search a maze."""

import keras

from keras_relational import layers
from keras_relational.validation import check_choice

MAZE_MEMORIES = ("scoff", "gru", "gru_of_equal_size")
_INPUT_SIZE = 256  # Of the dense layer before the memory.


def maze_memory(name: str = "scoff", units: int = 128) -> keras.layers.Layer:
    """Makes an RNN cell, the memory of an agent of `boxworld_agent`.

    Sizes as in Table 5 of [Goyal et al., 2020](
    https://arxiv.org/abs/2006.16225), which has 510 units. The schemata are
    LSTMs: with GRUs, to whose state messages are added, the state grew beyond
    all bounds in episodes of 324 steps.

    Args:
        name: `"scoff"`, with one object file and four schemata; `"gru"`, with
            as many units; or `"gru_of_equal_size"`, with about as many
            parameters as that SCOFF after a layer of 256.
        units: Number of units of the object file, and of `"gru"`.

    Returns:
        Keras RNN cell.

    Raises:
        ValueError: If the name is unknown, or `units` is not a positive
            integer.

    Example:

    >>> maze_memory("gru_of_equal_size").units
    433
    """
    check_choice("memory", name, MAZE_MEMORIES)
    if name == "gru":
        return keras.layers.GRUCell(units)
    scoff = layers.SCOFFCell(
        units,
        num_object_files=1,
        num_schemata=4,
        dynamics="lstm",
        num_heads=4,
        value_dim=256,
        message_key_dim=16,
    )
    if name == "scoff":
        return scoff
    # A GRU has 3 (u² + 256 u + 2 u) parameters; solved for u.
    scoff.build((None, _INPUT_SIZE))
    half = _INPUT_SIZE // 2 + 1
    return keras.layers.GRUCell(
        round((half**2 + scoff.count_params() / 3) ** 0.5 - half)
    )
