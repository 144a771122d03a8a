"""Recurrent layers for models that predict videos."""

import keras

from keras_relational import layers
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

VIDEO_CORES = ("scoff", "scoff_sparse", "rims", "relational_memory", "gru")


def video_core(
    name: str,
    units: int = 100,
    num_slots: int = 4,
    num_schemata: int = 4,
    num_heads: int | None = None,
    value_dim: int | None = None,
    temperature: float = 1.0,
) -> keras.layers.RNN:
    """Makes a recurrent layer for `video_predictor`, of any of five kinds.

    Goyal et al., 2020, compare these on bouncing balls and intuitive physics.
    All have `num_slots` × `units` units, so that they are of like size.

    Args:
        name: `"scoff"`, whose object files are all updated in each step
            (SCOFF-ab in the paper); `"scoff_sparse"`, of whose object files
            half are; `"rims"`, of whose modules half are;
            `"relational_memory"`; or `"gru"`.
        units: Number of units of each slot, which is an object file, a module
            or a row of the memory.
        num_slots: Number of slots. Half of them are updated where the name says
            so, which needs two or more.
        num_schemata: Number of schemata of SCOFF.
        num_heads: Number of heads of the attention to the input. By default 1
            for SCOFF and RIMs, and 4 for the relational memory.
        value_dim: Size of a value in the attention of SCOFF and RIMs. It is
            `units` by default.
        temperature: Temperature of SCOFF's choice of schemata in training.

    Returns:
        Keras RNN layer that returns sequences and states.

    Raises:
        ValueError: If the name is unknown, if a number is not a positive
            integer, or if half of one slot would be updated.

    Example:

    >>> video_core("gru").units
    400
    """
    check_choice("core", name, VIDEO_CORES)
    check_positive_integers(units=units, num_slots=num_slots)
    returned = {"return_sequences": True, "return_state": True}
    if name == "gru":
        return keras.layers.GRU(units * num_slots, **returned)
    if name == "relational_memory":
        cell = layers.RelationalMemoryCell(units, num_slots, num_heads or 4)
        return keras.layers.RNN(cell, **returned)
    if name != "scoff" and num_slots < 2:
        raise ValueError(
            f"Half of the slots of a {name!r} core are updated in a step, so "
            f"it needs 2 or more. Received: num_slots={num_slots}"
        )
    shared = {
        "num_heads": num_heads or 1,
        "value_dim": value_dim or units,
        "dropout": 0.1,
        **returned,
    }
    if name == "rims":
        return layers.RIMs(units, num_slots, num_slots // 2, **shared)
    return layers.SCOFF(
        units,
        num_slots,
        num_schemata,
        # All files, without the choice, or half of them.
        num_active=None if name == "scoff" else num_slots // 2,
        temperature=temperature,
        **shared,
    )
