import inspect

import keras
from keras import ops

from keras_relational.layers.operations import shapes_match


@keras.saving.register_keras_serializable(package="keras_relational")
class TimeFolded(keras.layers.TimeDistributed):
    """Applies a layer to all steps of its sequences, as one batch.

    `outputs[i, j] = layer(inputs[i, j])`. What `keras.layers.TimeDistributed`
    computes, for layers that look at each example alone. Where the layer looks
    at its whole batch, as batch normalization does, that is all steps of all
    sequences, and with `unroll` one step of all sequences.

    Args:
        layer: A `keras.layers.Layer`, such as the encoder of an image.
        unroll: Whether to take one step after the other, where it is known when
            compiling how many there are. For the convolutions that XLA makes
            for a CPU, which are slower where a batch does not fit the cache.

    Call arguments:
        inputs: Tensor `(batch, time, ...)`, of any number of steps.
        training: Passed to the layer.
        mask: Optional boolean tensor `(batch, time)`, which is passed on alone,
            or `(batch, time, ...)`, of which a layer that takes masks gets its
            part.

    Returns:
        Tensor `(batch, time, ...)`. A mask is passed on, and where the outputs
        do not have its axes, as of sets that are pooled, that of steps at which
        anything is there.

    Raises:
        ValueError: If the inputs have fewer than 3 axes, or the mask other
            sequences or steps.

    Example:

    >>> TimeFolded(keras.layers.Flatten())(keras.Input((7, 4, 4, 3))).shape
    (None, 7, 48)
    """

    def __init__(self, layer, unroll=False, **kwargs):
        super().__init__(layer, **kwargs)
        self.unroll = unroll

    def build(self, input_shape):
        if len(input_shape) < 3:
            raise ValueError(
                f"{self.name} takes sequences (batch, time, ...) of at least 3 "
                f"axes. Received: inputs.shape={tuple(input_shape)}"
            )
        super().build(input_shape)
        self.input_spec = keras.layers.InputSpec(min_ndim=3)

    def call(self, inputs, training=None, mask=None):
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

        def outputs_of(steps, there):
            masks = {} if there is None else {"mask": there}
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

    def compute_mask(self, inputs, mask=None):
        if mask is None:
            return None
        rank = len(mask.shape)
        outputs_shape = self.compute_output_shape(tuple(inputs.shape))
        if shapes_match(mask.shape, outputs_shape[:-1][:rank]):
            return mask
        return ops.any(mask, axis=tuple(range(2, rank)))

    def get_config(self):
        return {**super().get_config(), "unroll": self.unroll}
