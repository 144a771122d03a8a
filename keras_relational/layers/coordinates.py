from typing import Any

import keras
from keras import ops

from keras_relational.validation import check_choice


@keras.saving.register_keras_serializable(package="keras_relational")
class AppendCoordinates(keras.layers.Layer):
    """Appends the position in the image to each feature vector of an image.

    `outputs[b, i, j] = concat(inputs[b, i, j], (x_j, y_i))`. x runs over the
    columns and y over the rows, in equal steps from `low` to `high`, both
    included. A set is read as an image of one row: entity i gets `(x_i, low)`.
    Reference: the "pair of xy co-ordinates" in section 4 of [Shanahan
    et al., 2020](https://arxiv.org/abs/1905.10307). In the authors' model the
    coordinates of a 5×5 image run from 0 to 0.8 in steps of 0.2.

    Args:
        low: Number, the position of the first row and column.
        high: Number, the position of the last row and column. If an axis has
            length 1, its only position is `low`.
        order: `"xy"` appends the column first, `"yx"` the row first.

    Call arguments:
        inputs: Float tensor `(batch, height, width, channels)`, or a set
            `(batch, n, channels)`. The number of channels is fixed. The other
            sizes may be unknown in a graph.

    Returns:
        Tensor `(batch, height, width, channels + 2)`, or `(batch, n, channels +
        2)`, in the compute dtype. The layer passes a mask on unchanged.

    Raises:
        ValueError: If `order` is neither `"xy"` nor `"yx"`, or `inputs` is
            neither 3D nor 4D, with a fixed number of channels.

    Example:

    >>> AppendCoordinates(high=0.8)(keras.Input((5, 5, 32))).shape
    (None, 5, 5, 34)
    """

    def __init__(
        self,
        low: float = 0.0,
        high: float = 1.0,
        order: str = "xy",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("order", order, ("xy", "yx"))
        self.low = low
        self.high = high
        self.order = order
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if len(input_shape) not in (3, 4) or input_shape[-1] is None:
            raise ValueError(
                f"{self.name} takes an image (batch, height, width, channels) "
                "or a set (batch, n, channels), with a fixed number of "
                f"channels. Received: inputs.shape={tuple(input_shape)}"
            )
        features = input_shape[-1]
        self.input_spec = keras.layers.InputSpec(
            ndim=len(input_shape), axes={-1: features}
        )

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        *sizes, _ = ops.shape(inputs)
        height, width = sizes[1:] if len(sizes) == 3 else (1, sizes[1])
        xy = ops.meshgrid(self._positions(width), self._positions(height))
        grid = ops.stack(xy if self.order == "xy" else xy[::-1], axis=-1)
        if len(sizes) == 2:
            grid = grid[0]
        grid = ops.broadcast_to(grid, (*sizes, 2))
        inputs = ops.cast(inputs, self.compute_dtype)
        return ops.concatenate([inputs, grid], axis=-1)

    def _positions(self, size):
        """`size` equal steps from `low` to `high`, rounded once."""
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        if isinstance(size, int):
            positions = ops.linspace(self.low, self.high, size, dtype=dtype)
        else:  # The size is a tensor, which `linspace` does not take.
            last = ops.cast(ops.maximum(size - 1, 1), dtype)
            step = (self.high - self.low) / last
            positions = self.low + step * ops.cast(ops.arange(size), dtype)
        return ops.cast(positions, self.compute_dtype)

    def compute_output_shape(
        self, input_shape: tuple[Any, ...]
    ) -> tuple[int | None, ...]:
        return (*input_shape[:-1], input_shape[-1] + 2)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "low": self.low,
            "high": self.high,
            "order": self.order,
        }
