import inspect
from collections.abc import Sequence

import keras
from keras import ops

from keras_relational.layers._operations import shapes_match


@keras.saving.register_keras_serializable(package="keras_relational")
class TimeFolded(keras.layers.TimeDistributed):
    """Applies a layer to all steps of all sequences as one batch.

    `outputs[i, j] = layer(inputs[i, j])`, as with
    `keras.layers.TimeDistributed`. Batch normalization, and any other layer
    that reads its whole batch, gets all steps of all sequences as one batch.
    With `unroll` a batch is one step of all sequences.

    Args:
        layer: A `keras.layers.Layer`, such as the encoder of an image.
        unroll: Boolean. If `True` and the number of steps is fixed, the layer
            is applied to one step after the other. This is faster for
            convolutions that XLA compiles for a CPU, if a batch of all steps
            does not fit the cache.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: Tensor `(batch, time, ...)`, of any number of steps.
        training: Boolean, given to the layer.
        mask: Optional boolean tensor. A mask of steps `(batch, time)` is passed
            on and not given to the layer. A mask with more axes is given to the
            layer, step by step, if its `call` takes one.

    Returns:
        Tensor `(batch, time, ...)`. If the outputs have all axes of the mask,
        the mask is passed on unchanged. Otherwise, for example after a layer
        that pools a set, it becomes a mask of steps: a step is valid if any
        part of it is.

    Raises:
        ValueError: If the inputs have fewer than 3 axes, or if the mask has
            another batch size or number of steps than the inputs.

    Example:

    >>> TimeFolded(keras.layers.Flatten())(keras.Input((7, 4, 4, 3))).shape
    (None, 7, 48)
    """

    def __init__(
        self,
        layer: keras.layers.Layer,
        unroll: bool = False,
        **kwargs: object,
    ):
        # The layer inside casts its inputs, if it wants them cast.
        super().__init__(layer, autocast=False, **kwargs)
        self.unroll = unroll

    def build(self, input_shape: Sequence[int | None]) -> None:
        if len(input_shape) < 3:
            raise ValueError(
                f"{self.name} takes sequences (batch, time, ...) of at least 3 "
                f"axes. Received: inputs.shape={tuple(input_shape)}"
            )
        super().build(input_shape)
        self.input_spec = keras.layers.InputSpec(min_ndim=3)

    def call(
        self,
        inputs: keras.KerasTensor,
        training: bool | None = None,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor:
        if mask is not None and not shapes_match(
            mask.shape[:2], inputs.shape[:2]
        ):
            raise ValueError(
                f"{self.name} takes a mask (batch, time) or (batch, time, ...),"
                " with the inputs' batch and time. Received: mask.shape="
                f"{tuple(mask.shape)}, inputs.shape={tuple(inputs.shape)}"
            )
        batch, time, *rest = ops.shape(inputs)
        takes_mask = "mask" in inspect.signature(self.layer.call).parameters
        if mask is not None and (len(mask.shape) < 3 or not takes_mask):
            mask = None

        def outputs_of(steps, mask):
            masks = {} if mask is None else {"mask": mask}
            return self.layer(steps, training=training, **masks)

        if self.unroll and isinstance(time, int):
            outputs = [
                outputs_of(
                    inputs[:, step], None if mask is None else mask[:, step]
                )
                for step in range(time)
            ]
            return ops.stack(outputs, axis=1)
        if mask is not None:
            mask = ops.reshape(mask, (batch * time, *ops.shape(mask)[2:]))
        outputs = outputs_of(ops.reshape(inputs, (batch * time, *rest)), mask)
        return ops.reshape(outputs, (batch, time, *ops.shape(outputs)[1:]))

    def compute_mask(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor | None:
        if mask is None:
            return None
        rank = len(mask.shape)
        outputs_shape = self.compute_output_shape(tuple(inputs.shape))
        if shapes_match(mask.shape, outputs_shape[:-1][:rank]):
            return mask
        return ops.any(mask, axis=tuple(range(2, rank)))

    def get_config(self) -> dict:
        return {**super().get_config(), "unroll": self.unroll}
