"""Layers that take entities, and symbols that name them."""

import keras
from keras import ops

from keras_relational.layers._attention import project_to_heads
from keras_relational.layers._operations import shapes_match


class EntitiesAndSymbols(keras.layers.Layer):
    """A layer of entities `(batch, n, m)` and their symbols.

    Its outputs have the mask of the entities. A subclass has
    `compute_output_shape(entities_shape, symbols_shape)`.
    """

    def __init__(self, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def specs(
        self,
        entities: keras.KerasTensor,
        symbols: keras.KerasTensor,
        scores: object,
    ) -> keras.KerasTensor | tuple:
        """Specs of the outputs, and of attention scores if there are any.

        Args:
            entities: Spec of the entities.
            symbols: Spec of the symbols.
            scores: `None`, or how many matrices `(n, n)` the scores of an
                example are: a shape such as `(num_heads,)`, or a list of such
                shapes if the layer returns a tuple of tensors.

        Raises:
            ValueError: If the shapes of entities and symbols do not fit.
        """
        check_symbols(self, entities.shape, symbols.shape)
        shape = self.compute_output_shape(entities.shape, symbols.shape)
        outputs = keras.KerasTensor(shape, self.compute_dtype)
        if scores is None:
            return outputs
        batch, n, _ = entities.shape

        def of_pairs(sizes):
            shape = (batch, *sizes, n, n)
            return keras.KerasTensor(shape, self.compute_dtype)

        if isinstance(scores, list):
            return outputs, tuple(map(of_pairs, scores))
        return outputs, of_pairs(scores)


def check_symbols(
    layer: keras.layers.Layer,
    entities_shape: tuple[int | None, ...],
    symbols_shape: tuple[int | None, ...],
) -> int:
    """Checks that symbols name each entity, or each pair of entities.

    Args:
        layer: The layer that reads both. An error names it.
        entities_shape: `(batch, n, m)`.
        symbols_shape: Expected to be `(batch, n, s)` or `(1, n, n, s)`.

    Returns:
        `s`, the size of a symbol.

    Raises:
        ValueError: If it is neither, or `s` is unknown.
    """
    batch, n = entities_shape[:2]
    size = symbols_shape[-1]
    fits = ((batch, n, size), (1, n, n, size))
    if size is None or not any(shapes_match(symbols_shape, x) for x in fits):
        raise ValueError(
            f"{layer.name} takes a symbol for each entity, of shape "
            f"{(batch, n)} and a fixed size, or for each pair of entities, of "
            f"shape {(1, n, n)} and a fixed size. Received: entities.shape="
            f"{tuple(entities_shape)}, symbols.shape={tuple(symbols_shape)}"
        )
    return size


def sum_of_symbols(
    weights: keras.KerasTensor,
    symbols: keras.KerasTensor,
    kernel: keras.KerasTensor,
) -> keras.KerasTensor:
    """`Σ_j weights[b, h, i, j] symbols[b, j] kernel_h` of all b, h and i.

    Args:
        weights: Float tensor `(batch, num_heads, n, n)`.
        symbols: Float tensor `(batch, n, s)`. Or `(1, n, n, s)`, which gives
            `symbols[0, i, j]` in place of `symbols[b, j]`.
        kernel: Float tensor `(s, num_heads * size)`.

    Returns:
        Tensor `(batch, num_heads, n, size)`.
    """
    num_heads = weights.shape[1]
    if len(symbols.shape) == 3:
        values = project_to_heads(symbols, kernel, num_heads)
        return ops.matmul(ops.cast(weights, values.dtype), values)
    values = project_to_heads(symbols[0], kernel, num_heads)
    weights = ops.transpose(ops.cast(weights, values.dtype), (2, 1, 0, 3))
    # `(n, num_heads, batch, size)`: one product for each entity i.
    return ops.transpose(ops.matmul(weights, values), (2, 1, 0, 3))
