"""The recurrent cores that Goyal et al., 2020, compare as video predictors."""

import keras

from keras_relational import layers
from keras_relational import models

CORES = ("scoff", "scoff_sparse", "rims", "relational_memory", "gru")


def predictor(options, num_slots, num_heads=None, **arguments):
    """A `video_predictor` with the core and the sizes of a command's options.

    SCOFF and RIMs attend to the positions of a frame. Others get one vector.
    """
    of_scoff = {"gated_messages": True} if options.gated_messages else {}
    core = video_core(
        options.core,
        options.units,
        num_slots,
        num_schemata=options.num_schemata,
        num_heads=num_heads,
        **of_scoff,
    )
    return models.video_predictor(
        core,
        positions=options.core.startswith(("scoff", "rims")),
        image_size=options.image_size,
        networks=options.networks,
        **arguments,
    )


def video_core(
    name,
    units=100,
    num_slots=4,
    num_schemata=4,
    num_heads=None,
    value_dim=None,
    **of_scoff,
):
    """Makes a recurrent layer of `num_slots` × `units` units, one of `CORES`.

    `"scoff"` updates all of its object files in each step (SCOFF-ab in the
    paper), `"scoff_sparse"` and `"rims"` half of them. By default one head
    attends to the input, in a relational memory four.
    """
    if of_scoff and not name.startswith("scoff"):
        raise ValueError(
            f"These arguments are for SCOFF alone: {', '.join(of_scoff)}. "
            f"Received: name={name!r}"
        )
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
        **{**shared, **of_scoff},
    )
