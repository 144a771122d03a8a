import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_relational")
class TimeFolded(keras.layers.TimeDistributed):
    """Applies a layer to all steps of its sequences, as one batch.

    `outputs[i, j] = layer(inputs[i, j])`. What `keras.layers.TimeDistributed`
    computes step by step, for layers that look at each example alone.

    Args:
        layer: A `keras.layers.Layer`, such as the encoder of an image.

    Call arguments:
        inputs: Tensor `(batch, time, ...)`, of any number of steps.
        training: Passed to the layer.

    Returns:
        Tensor `(batch, time, ...)`. A mask `(batch, time)` is passed on.

    Raises:
        ValueError: If the inputs have fewer than 3 axes.

    Example:

    >>> TimeFolded(keras.layers.Flatten())(keras.Input((7, 4, 4, 3))).shape
    (None, 7, 48)
    """

    def call(self, inputs, training=None):
        batch, time, *rest = ops.shape(inputs)
        steps = ops.reshape(inputs, (batch * time, *rest))
        outputs = self.layer(steps, training=training)
        return ops.reshape(outputs, (batch, time, *ops.shape(outputs)[1:]))
