"""Symbols: vectors that name entities, and do not show what they look like."""

import math

import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._entities import check_entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._entities import no_mask
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers._operations import at_least_float32
from keras_relational.validation import check_positive_integers

UNIT_NORMAL = keras.initializers.RandomNormal(stddev=1.0)


class _Symbols(keras.layers.Layer):
    """A layer with learned symbols of the size of the entities."""

    def __init__(self, symbols_initializer, **kwargs):
        super().__init__(**kwargs)
        self.symbols_initializer = keras.initializers.get(symbols_initializer)
        self.supports_masking = True

    def _features(self, input_shape):
        """Checks the shape at build, and keeps its last axis from then on."""
        features = check_entities_shape(self, input_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: features})
        return features

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return tuple(input_shape)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "symbols_initializer": serialize(self.symbols_initializer),
        }


@keras.saving.register_keras_serializable(package="keras_relational")
class PositionalSymbols(_Symbols):
    """A learned symbol for each position of a sequence.

    `outputs[b, i] = symbols[i]`. The entity at position i has symbol i,
    whatever it looks like. The layer goes before `RelationalCrossAttention`
    and `Abstractor`.

    Reference: positional symbols of [Altabaa et al., 2024](
    https://arxiv.org/abs/2304.00195).

    Args:
        max_length: Positive integer, length of the longest sequence.
        symbols_initializer: Initializer of the symbols `(max_length, m)`. The
            default is a normal distribution of deviation 1.

    Call arguments:
        inputs: Float tensor `(batch, n, m)`. Only its shape is used.
        mask: Optional boolean tensor `(batch, n)`. `True` marks a valid entity.
            The symbols of the others are zero.

    Returns:
        Tensor `(batch, n, m)` in the compute dtype.

    Raises:
        ValueError: If `max_length` is not a positive integer, the inputs are
            not 3D with a last axis of known size, or `n > max_length`.

    Example:

    >>> PositionalSymbols(10)(keras.Input((10, 64))).shape
    (None, 10, 64)
    """

    def __init__(
        self,
        max_length: int,
        symbols_initializer: InitializerLike = UNIT_NORMAL,
        **kwargs: object,
    ) -> None:
        super().__init__(symbols_initializer, **kwargs)
        check_positive_integers(max_length=max_length)
        self.max_length = max_length

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        features = self._features(input_shape)
        shape = (self.max_length, features)
        add_weights(self, self.symbols_initializer, symbols=shape)

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor:
        n = inputs.shape[1]
        if n is not None and n > self.max_length:
            raise ValueError(
                f"{self.name} has symbols for {self.max_length} positions. "
                f"Received: inputs.shape={tuple(inputs.shape)}. Build it with "
                f"max_length={n}."
            )
        shape = ops.shape(inputs)
        symbols = ops.broadcast_to(self.symbols[: shape[1]], shape)
        if mask is not None:
            symbols = ops.where(ops.expand_dims(mask, -1), symbols, 0)
        return symbols

    def get_config(self) -> dict:
        return {**super().get_config(), "max_length": self.max_length}


@keras.saving.register_keras_serializable(package="keras_relational")
class PositionRelativeSymbols(_Symbols):
    """A learned symbol for each distance between two positions.

    `outputs[0, i, j] = symbols[clip(j − i, −max_distance, max_distance)]`. So
    to entity i, entity j has the name "so many places after me", whatever it
    looks like and wherever both are. The layer goes before
    `RelationalCrossAttention` and `Abstractor`.

    Reference: position-relative symbols of [Altabaa et al., 2024](
    https://arxiv.org/abs/2304.00195). The clip follows the authors' program.

    Args:
        max_distance: Positive integer. Larger distances have the same symbol.
        symbols_initializer: Initializer of the symbols
            `(2 max_distance + 1, m)`. The default is a normal distribution of
            deviation 1.

    Call arguments:
        inputs: Float tensor `(batch, n, m)`. Only its shape is used.
        mask: Optional boolean tensor `(batch, n)`. It changes nothing, and is
            not passed on.

    Returns:
        Tensor `(1, n, n, m)` in the compute dtype. It is the same for all
        examples.

    Raises:
        ValueError: If `max_distance` is not a positive integer, or the inputs
            are not 3D with a last axis of known size.

    Example:

    >>> PositionRelativeSymbols(4)(keras.Input((10, 64))).shape
    (1, 10, 10, 64)
    """

    def __init__(
        self,
        max_distance: int,
        symbols_initializer: InitializerLike = UNIT_NORMAL,
        **kwargs: object,
    ) -> None:
        super().__init__(symbols_initializer, **kwargs)
        check_positive_integers(max_distance=max_distance)
        self.max_distance = max_distance

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        features = self._features(input_shape)
        shape = (2 * self.max_distance + 1, features)
        add_weights(self, self.symbols_initializer, symbols=shape)

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor:
        positions = ops.arange(ops.shape(inputs)[1])
        distances = positions[None] - positions[:, None]
        limit = self.max_distance
        rows = ops.clip(distances, -limit, limit) + limit
        return ops.take(self.symbols, rows, axis=0)[None]

    compute_mask = no_mask

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        _, n, features = input_shape
        return (1, n, n, features)

    def get_config(self) -> dict:
        return {**super().get_config(), "max_distance": self.max_distance}


@keras.saving.register_keras_serializable(package="keras_relational")
class SymbolicAttention(_Symbols):
    """Finds for each entity a symbol in a learned library.

    With the entities x, each head h computes

        symbol_h = softmax((x W_Q + b)_h templates_hᵀ / √size) symbols_h

    The library has num_symbols templates and as many symbols. An entity gets
    the symbols whose templates are like a part of it, and the same symbol
    wherever it is. So symbols say of which kind an entity is, and hide the
    rest. The outputs are the symbols of all heads, side by side.

    Reference: symbolic attention of [Altabaa et al., 2024](
    https://arxiv.org/abs/2304.00195). Heads, b and the division by √size are
    those of the same authors' [dual attention](
    https://arxiv.org/abs/2405.16727).

    Args:
        num_symbols: Positive integer, size of the library.
        num_heads: Positive integer that divides m, number of heads.
        kernel_initializer: Initializer of W_Q.
        symbols_initializer: Initializer of the templates and of the symbols,
            both `(num_symbols, m)`. The default is a normal distribution of
            deviation 1.

    Call arguments:
        inputs: Float tensor `(batch, n, m)`.
        mask: Optional boolean tensor `(batch, n)`. `True` marks a valid entity.
            The symbols of the others are zero.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            attention to the templates.

    Returns:
        Tensor `(batch, n, m)` in the compute dtype. With
        `return_attention_scores`, a pair: this tensor, and the scores
        `(batch, num_heads, n, num_symbols)`.

    Raises:
        ValueError: If a size is not a positive integer, the inputs are not 3D
            with a last axis of known size, or `num_heads` does not divide m.

    Example:

    >>> SymbolicAttention(32, num_heads=4)(keras.Input((10, 64))).shape
    (None, 10, 64)
    """

    def __init__(
        self,
        num_symbols: int,
        num_heads: int = 1,
        kernel_initializer: InitializerLike = "glorot_uniform",
        symbols_initializer: InitializerLike = UNIT_NORMAL,
        **kwargs: object,
    ) -> None:
        super().__init__(symbols_initializer, **kwargs)
        check_positive_integers(num_symbols=num_symbols, num_heads=num_heads)
        self.num_symbols = num_symbols
        self.num_heads = num_heads
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        features = self._features(input_shape)
        if features % self.num_heads:
            raise ValueError(
                f"{self.name} splits the features of an entity into "
                f"num_heads={self.num_heads} equal parts. Received: "
                f"inputs.shape={tuple(input_shape)}. Choose a num_heads that "
                f"divides {features}."
            )
        kernel, library = (features, features), (self.num_symbols, features)
        add_weights(self, self.kernel_initializer, query_kernel=kernel)
        add_weights(self, "zeros", query_bias=(features,))
        add_weights(
            self, self.symbols_initializer, templates=library, symbols=library
        )

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        entities, mask = flatten_entities(self, inputs, mask)
        queries = ops.matmul(entities, self.query_kernel) + self.query_bias
        queries, templates, symbols = (
            self._in_heads(x) for x in (queries, self.templates, self.symbols)
        )
        # An einsum, because `matmul` would broadcast the library to the batch.
        # With one head TensorFlow's does that wrongly on a CPU with oneDNN.
        logits = ops.einsum(
            "bnhd,shd->bhns",
            at_least_float32(queries),
            at_least_float32(templates),
        )
        scores = masked_softmax(logits / math.sqrt(queries.shape[-1]))
        symbols = ops.einsum(
            "bhns,shd->bnhd", ops.cast(scores, symbols.dtype), symbols
        )
        symbols = ops.reshape(symbols, ops.shape(entities))
        if mask is not None:
            symbols = ops.where(ops.expand_dims(mask, -1), symbols, 0)
        if return_attention_scores:
            return symbols, ops.cast(scores, self.compute_dtype)
        return symbols

    def _in_heads(self, x):
        """`(..., m)` → `(..., num_heads, m / num_heads)`."""
        size = x.shape[-1] // self.num_heads
        return ops.reshape(x, (*ops.shape(x)[:-1], self.num_heads, size))

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> keras.KerasTensor | tuple:
        outputs = keras.KerasTensor(inputs.shape, self.compute_dtype)
        if not return_attention_scores:
            return outputs
        batch, n, _ = inputs.shape
        shape = (batch, self.num_heads, n, self.num_symbols)
        return outputs, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_symbols": self.num_symbols,
            "num_heads": self.num_heads,
            "kernel_initializer": serialize(self.kernel_initializer),
        }
