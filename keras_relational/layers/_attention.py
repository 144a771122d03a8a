"""Dot-product attention: scores, softmax under a mask, and heads."""

import math
from collections.abc import Callable
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_relational.layers._operations import at_least_float32


def dot_product_attention(
    queries: keras.KerasTensor,
    keys: keras.KerasTensor,
    values: keras.KerasTensor,
    mask: keras.KerasTensor | None = None,
    dropout_mask: keras.KerasTensor | None = None,
) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """Scaled dot-product attention of several heads.

    Each head computes `softmax(queries keysᵀ / √d) values`. Reference:
    equation (1) of [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762).

    Args:
        queries: Float tensor `(batch, num_heads, n, d)`.
        keys: Float tensor `(batch, num_heads, k, d)`.
        values: Float tensor `(batch, num_heads, k, size)`.
        mask: Optional boolean tensor `(batch, k)`. `True` marks a valid key.
            The other keys get no attention.
        dropout_mask: Optional float tensor that broadcasts to the scores
            `(batch, num_heads, n, k)`. The scores are multiplied by it.

    Returns:
        A tensor `(batch, n, num_heads * size)`, and the attention scores
        `(batch, num_heads, n, k)` before dropout. The scores have at least
        float32 precision, because half precision may round the two largest
        scores to the same number.
    """
    if mask is not None:
        mask = mask[:, None, None]
    scores = masked_softmax(scaled_dot_products(queries, keys), mask)
    return weighted_sum(scores, values, dropout_mask), scores


def dot_products(
    queries: keras.KerasTensor, keys: keras.KerasTensor
) -> keras.KerasTensor:
    """The dot product of every query with every key.

    Args:
        queries: Float tensor `(..., n, d)`.
        keys: Float tensor `(..., k, d)`.

    Returns:
        Tensor `(..., n, k)` of at least float32 precision.
    """
    queries, keys = at_least_float32(queries), at_least_float32(keys)
    return ops.matmul(queries, ops.swapaxes(keys, -2, -1))


def dot_products_of_few(
    queries: keras.KerasTensor, keys: keras.KerasTensor
) -> keras.KerasTensor:
    """`dot_products` for a few queries.

    On JAX they are multiplications and sums, which are one launch with the
    softmax on a GPU. Small products of matrices are launches of their own, and
    so are the transposes around them. Without a compiler, all pairs would be
    written to memory.
    """
    if keras.backend.backend() != "jax":
        return dot_products(queries, keys)
    pairs = at_least_float32(queries)[..., None, :] * keys[..., None, :, :]
    return ops.sum(pairs, axis=-1)


def scaled_dot_products(
    queries: keras.KerasTensor, keys: keras.KerasTensor
) -> keras.KerasTensor:
    """The dot product of every query with every key, divided by √d.

    Args:
        queries: Float tensor `(..., n, d)`.
        keys: Float tensor `(..., k, d)`.

    Returns:
        Tensor `(..., n, k)` of at least float32 precision.
    """
    return dot_products(queries, keys) / math.sqrt(queries.shape[-1])


def masked_softmax(
    logits: keras.KerasTensor, mask: keras.KerasTensor | None = None
) -> keras.KerasTensor:
    """Softmax over the valid entries of the last axis.

    Args:
        logits: Float tensor.
        mask: Optional boolean tensor that broadcasts to the shape of `logits`.
            `True` marks a valid entry.

    Returns:
        Tensor like `logits`. Masked entries are zero. A row sums to one, or to
        zero if all its entries are masked.
    """
    if logits.shape[-1] == 1:  # Keras warns of a softmax over one entry.
        ones = ops.ones_like(logits)
        return ones if mask is None else ops.where(mask, ones, 0)
    if mask is None:
        return ops.softmax(logits, axis=-1)
    # A finite number takes the place of −∞. A row of −∞ would give NaN.
    dtype = keras.backend.standardize_dtype(logits.dtype)
    lowest = -3e4 if dtype == "float16" else -1e30
    scores = ops.softmax(ops.where(mask, logits, lowest), axis=-1)
    return ops.where(mask, scores, 0)


def weighted_sum(
    scores: keras.KerasTensor,
    values: keras.KerasTensor,
    dropout_mask: keras.KerasTensor | None = None,
) -> keras.KerasTensor:
    """The sum of the values, weighted by the attention scores.

    Args:
        scores: Float tensor `(batch, num_heads, n, k)`.
        values: Float tensor `(batch, num_heads, k, size)`.
        dropout_mask: Optional float tensor that broadcasts to `scores`. The
            scores are multiplied by it.

    Returns:
        Tensor `(batch, n, num_heads * size)` in the dtype of `values`.
    """
    weights = ops.cast(scores, values.dtype)
    if dropout_mask is not None:
        weights = weights * dropout_mask
    return merge_heads(ops.matmul(weights, values))


def over_rows(layer: Callable, x: keras.KerasTensor) -> keras.KerasTensor:
    """Applies a layer of `(rows, m)` to each row of `(batch, n, m)`.

    TensorFlow would transpose a tensor with three axes before it multiplies,
    and XLA cannot tell the order of the axes then, in the gradient of a loop
    over batches of any size.
    """
    rows = layer(ops.reshape(x, (-1, x.shape[-1])))
    return ops.reshape(rows, (-1, *ops.shape(x)[1:-1], rows.shape[-1]))


def project(
    x: keras.KerasTensor, kernel: keras.KerasTensor
) -> keras.KerasTensor:
    """`(batch, n, m)` times `(m, ...)`: the same kernel for all n."""
    matrix = ops.reshape(kernel, (kernel.shape[0], -1))
    rows = over_rows(lambda rows: ops.matmul(rows, matrix), x)
    return ops.reshape(rows, (-1, ops.shape(x)[1], *kernel.shape[1:]))


def project_to_heads(
    inputs: keras.KerasTensor, kernel: keras.KerasTensor, num_heads: int
) -> keras.KerasTensor:
    """Multiplies by a kernel, and splits the result into heads.

    In one einsum: training under XLA is a fifth faster than with
    `split_heads(matmul(inputs, kernel))`.

    Args:
        inputs: Float tensor `(batch, n, m)`.
        kernel: Float tensor `(m, num_heads * d)`.
        num_heads: Number of heads.

    Returns:
        Tensor `(batch, num_heads, n, d)`.
    """
    features, width = kernel.shape
    kernel = ops.reshape(kernel, (features, num_heads, width // num_heads))
    return ops.einsum("bnm,mhd->bhnd", inputs, kernel)


def projections(
    inputs: keras.KerasTensor, kernels: Sequence[keras.KerasTensor]
) -> list[keras.KerasTensor]:
    """Multiplies by several kernels of the same size, in one product.

    Args:
        inputs: Float tensor `(batch, n, m)`.
        kernels: Float tensors `(m, size)`.

    Returns:
        A tensor `(batch, n, size)` for each kernel.
    """
    projected = project(inputs, ops.concatenate(kernels, axis=-1))
    return ops.split(projected, len(kernels), axis=-1)


def project_heads(
    heads: keras.KerasTensor, kernel: keras.KerasTensor
) -> keras.KerasTensor:
    """Concatenates heads, and multiplies by a kernel.

    Args:
        heads: Float tensor `(batch, num_heads, n, d)`.
        kernel: Float tensor `(num_heads * d, m)`.

    Returns:
        Tensor `(batch, n, m)`.
    """
    _, num_heads, _, size = heads.shape
    kernel = ops.reshape(kernel, (num_heads, size, kernel.shape[1]))
    return ops.einsum("bhnd,hdm->bnm", heads, kernel)


def split_heads(
    projected: keras.KerasTensor, num_heads: int
) -> keras.KerasTensor:
    """Splits the last axis into an axis of heads and an axis of features.

    Args:
        projected: Tensor `(batch, n, num_heads * d)`.
        num_heads: Number of heads.

    Returns:
        Tensor `(batch, num_heads, n, d)`.
    """
    batch, n = ops.shape(projected)[:2]
    size = projected.shape[-1] // num_heads
    projected = ops.reshape(projected, (batch, n, num_heads, size))
    return ops.swapaxes(projected, 1, 2)


def merge_heads(heads: keras.KerasTensor) -> keras.KerasTensor:
    """Concatenates the heads: the inverse of `split_heads`.

    Args:
        heads: Tensor `(batch, num_heads, n, d)`.

    Returns:
        Tensor `(batch, n, num_heads * d)`.
    """
    batch, num_heads, n, size = ops.shape(heads)
    return ops.reshape(ops.swapaxes(heads, 1, 2), (batch, n, num_heads * size))


def rotated(heads: keras.KerasTensor) -> keras.KerasTensor:
    """Rotary positions: turns each pair of features by an angle of its place.

    Features 2 k and 2 k + 1 of position i are turned by `i / 10000^(2 k / d)`.
    Then the dot product of two vectors depends on their distance, and not on
    where both are. Reference: [Su et al., 2021](
    https://arxiv.org/abs/2104.09864), equations (14) and (15).

    Args:
        heads: Float tensor `(batch, num_heads, n, d)` with an even d.

    Returns:
        Tensor like `heads`.
    """
    n, size = ops.shape(heads)[2], heads.shape[-1]
    dtype = keras.backend.result_type(heads.dtype, "float32")
    speeds = 10_000.0 ** (-np.arange(0, size, 2) / size)
    places = ops.cast(ops.arange(n), dtype)
    angles = places[:, None] * ops.convert_to_tensor(speeds, dtype)
    cosines, sines = (
        ops.cast(x, heads.dtype) for x in (ops.cos(angles), ops.sin(angles))
    )
    even, odd = heads[..., ::2], heads[..., 1::2]
    turned = (even * cosines - odd * sines, even * sines + odd * cosines)
    return ops.reshape(ops.stack(turned, axis=-1), ops.shape(heads))
