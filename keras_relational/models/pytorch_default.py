"""PyTorch's initial weights, for papers that used PyTorch."""

import keras


def pytorch_default(fan_in: int) -> dict[str, keras.initializers.Initializer]:
    """Arguments of a layer: kernel and bias are uniform within ±1/√fan_in."""
    limit = fan_in**-0.5
    return {
        f"{name}_initializer": keras.initializers.RandomUniform(-limit, limit)
        for name in ("kernel", "bias")
    }
