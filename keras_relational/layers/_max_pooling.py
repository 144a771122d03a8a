import keras
from keras import ops

from keras_relational.layers._operations import custom_gradient


@keras.saving.register_keras_serializable(package="keras_relational")
class EntityMaxPooling(keras.layers.Layer):
    """The maximum over entities, `(batch, n, m)` → `(batch, m)`.

    The gradient of a feature goes to the first entity that has its maximum.
    `keras.layers.GlobalMaxPooling1D` divides it by the number of entities that
    equal the maximum. XLA may compute the entities once for the maximum and
    once more for the comparison, rounded otherwise. If then no entity is equal,
    the gradient is 0 / 0.
    """

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        return _maximum(inputs)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], input_shape[-1])


@custom_gradient
def _maximum(entities):
    def gradient(upstream):
        first = ops.expand_dims(ops.argmax(entities, axis=1), 1)
        places = ops.arange(ops.shape(entities)[1], dtype=first.dtype)
        upstream = ops.expand_dims(upstream, 1)
        return (ops.where(places[:, None] == first, upstream, 0),)

    return ops.max(entities, axis=1), gradient
