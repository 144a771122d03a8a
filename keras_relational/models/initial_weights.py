"""Initial weights as PyTorch draws them, for papers that used it."""

import keras


def uniform(fan_in):
    """Kernel and bias uniform within ±1/√fan_in.

    Args:
        fan_in: Number of inputs of a unit of the layer.

    Returns:
        Dictionary of `kernel_initializer` and `bias_initializer`.
    """
    return {
        f"{name}_initializer": _within(fan_in**-0.5)
        for name in ("kernel", "bias")
    }


def uniform_lstm(units):
    """All weights of an LSTM uniform within ±1/√units.

    Args:
        units: Number of its units.

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
