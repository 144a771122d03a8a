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
    limit = fan_in**-0.5
    return {
        f"{name}_initializer": keras.initializers.RandomUniform(-limit, limit)
        for name in ("kernel", "bias")
    }
