"""PyTorch's initial weights, for papers that used PyTorch."""

import keras


def uniform(fan_in: int) -> dict[str, keras.initializers.Initializer]:
    """Initializers that draw kernel and bias uniformly within ±1/√fan_in.

    Args:
        fan_in: Number of inputs of a unit.

    Returns:
        Dictionary of the arguments `kernel_initializer` and `bias_initializer`
        of a layer.
    """
    return {
        f"{name}_initializer": _within(fan_in**-0.5)
        for name in ("kernel", "bias")
    }


def uniform_lstm(
    units: int,
) -> dict[str, keras.initializers.Initializer | bool]:
    """Initializers that draw all weights of an LSTM within ±1/√units.

    Args:
        units: Number of units of the LSTM.

    Returns:
        Dictionary of arguments of `keras.layers.LSTM`.
    """
    names = ("kernel", "recurrent", "bias")
    return {
        **{f"{name}_initializer": _within(units**-0.5) for name in names},
        "unit_forget_bias": False,
    }


def _within(limit):
    return keras.initializers.RandomUniform(-limit, limit)
