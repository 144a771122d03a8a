"""A model that adds the marked numbers of a sequence."""

import keras

from keras_relational import layers
from keras_relational.validation import check_choice

ADDING_CORES = ("scoff", "rims", "lstm")


def adding_model(
    core: str = "scoff", num_active: int | None = None
) -> keras.Model:
    """Builds a model of the adding task, with 300 units in all.

    A dense layer of 64 encodes each step, then comes the recurrent core, and a
    dense layer gives the sum from its last output. Sizes as in appendix B of
    [Goyal et al., 2020](https://arxiv.org/abs/2006.16225): five object files or
    modules of 60 units, or one LSTM of 300; sizes of attention are those of a
    head. The paper says neither how large the encoder is nor how many object
    files and modules are updated in a step.

    Args:
        core: `"scoff"`, `"rims"` or `"lstm"`. SCOFF has two schemata.
        num_active: Number of object files or modules, of 5, that are updated in
            a step. By default 1 for SCOFF and 3 for RIMs.

    Returns:
        `keras.Model` from float sequences `(batch, time, 2)` of numbers and
        marks to sums `(batch, 1)`.

    Raises:
        ValueError: If `core` is unknown, if `num_active` is given for an LSTM,
            or if it is not a number from 1 to 5.

    Example:

    >>> adding_model("rims").output_shape
    (None, 1)
    """
    check_choice("core", core, ADDING_CORES)
    if core == "lstm":
        if num_active is not None:
            raise ValueError(
                "`num_active` is for SCOFF and RIMs: an LSTM updates all of "
                f"its units. Received: core='lstm', num_active={num_active}"
            )
        recurrent = keras.layers.LSTM(300, name="core")
    else:
        shared = {
            "num_heads": 4,
            "key_dim": 64,
            "value_dim": 60,
            "dynamics": "lstm",
            "dropout": 0.1,
            "name": "core",
        }
        if core == "rims":
            active = 3 if num_active is None else num_active
            recurrent = layers.RIMs(60, 5, active, **shared)
        else:
            active = 1 if num_active is None else num_active
            recurrent = layers.SCOFF(60, 5, 2, num_active=active, **shared)
    return keras.Sequential(
        [
            keras.Input((None, 2), name="sequence"),
            # For vectors an MLP encodes what SCOFF sees (section 3).
            keras.layers.Dense(64, "relu", name="encoder"),
            recurrent,
            keras.layers.Dense(1, name="sum"),
        ],
        name="adding",
    )
