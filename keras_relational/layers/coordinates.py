import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_relational")
class AppendCoordinates(keras.layers.Layer):
    """Appends to each feature vector of an image its position in the image.

    `outputs[b, i, j] = concat(inputs[b, i, j], (x_j, y_i))`, where x runs over
    the columns and y over the rows in equal steps from `low` to `high`, ends
    included. Reference: the "pair of xy co-ordinates" of [Shanahan et al.,
    2020](https://arxiv.org/abs/1905.10307), section 4, which in the authors'
    model run from 0 to 0.8 in steps of 0.2 over a 5×5 image.

    Args:
        low: Number, the position of the first row and column.
        high: Number, the position of the last row and column. An axis of
            length 1 is at `low`.
        order: `"xy"`, column first, or `"yx"`, row first.

    Call arguments:
        inputs: Float tensor `(batch, height, width, channels)`; height and
            width fixed.

    Returns:
        Tensor `(batch, height, width, channels + 2)` in the compute dtype. A
        mask is passed on.

    Raises:
        ValueError: If `order` is neither `"xy"` nor `"yx"`, or `inputs` is not
            4D with a fixed height, width and number of channels.

    Example:

    >>> AppendCoordinates(high=0.8)(keras.Input((5, 5, 32))).shape
    (None, 5, 5, 34)
    """

    def __init__(self, low=0.0, high=1.0, order="xy", **kwargs):
        super().__init__(**kwargs)
        if order not in ("xy", "yx"):
            raise ValueError(
                f"`order` must be 'xy' or 'yx'. Received: order={order!r}"
            )
        self.low = low
        self.high = high
        self.order = order
        self.input_spec = keras.layers.InputSpec(ndim=4)
        self.supports_masking = True

    def build(self, input_shape):
        if None in input_shape[1:]:
            raise ValueError(
                "Height, width and channels of `inputs` must be fixed. "
                f"Received: inputs.shape={tuple(input_shape)}"
            )

    def call(self, inputs):
        _, height, width, _ = inputs.shape
        x = ops.linspace(self.low, self.high, width, dtype=self.compute_dtype)
        y = ops.linspace(self.low, self.high, height, dtype=self.compute_dtype)
        xy = ops.meshgrid(x, y)
        grid = ops.stack(xy if self.order == "xy" else xy[::-1], axis=-1)
        shape = (ops.shape(inputs)[0], height, width, 2)
        return ops.concatenate([inputs, ops.broadcast_to(grid, shape)], axis=-1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], input_shape[-1] + 2)

    def get_config(self):
        return {
            **super().get_config(),
            "low": self.low,
            "high": self.high,
            "order": self.order,
        }
