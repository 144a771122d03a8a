"""Heads of attention as the first axis: `(heads, batch, n, size)`.

Some of the heads then are one piece of memory. So heads of several kinds come
from one product and share the next ones, and are told apart without a copy.
"""

import itertools
from collections.abc import Sequence

import keras
from keras import ops

from keras_relational.layers._attention import project

# So many sums for a pair of entities are faster than a product, whose axes are
# transposed first.
FEW_SUMS = 16


def joined(*kernels: keras.KerasTensor) -> keras.KerasTensor:
    """Kernels `(m, k)` side by side.

    Joined as rows, since XLA fuses what is done to the parts of a gradient if
    each of them is one piece of memory.
    """
    return ops.transpose(
        ops.concatenate([ops.transpose(x) for x in kernels], axis=0)
    )


def block_diagonal(
    first: keras.KerasTensor, second: keras.KerasTensor
) -> keras.KerasTensor:
    """Two square kernels as one, which multiplies each part by its own."""
    sizes = first.shape[0], second.shape[0]
    rows = [
        ops.pad(first, ((0, 0), (0, sizes[1]))),
        ops.pad(second, ((0, 0), (sizes[0], 0))),
    ]
    return ops.concatenate(rows, axis=0)


def to_heads(x: keras.KerasTensor, size: int) -> keras.KerasTensor:
    """`(batch, n, heads * size)` → `(heads, batch, n, size)`."""
    batch, n, width = ops.shape(x)[0], ops.shape(x)[1], x.shape[-1]
    heads = ops.reshape(x, (batch, n, width // size, size))
    return ops.transpose(heads, (2, 0, 1, 3))


def from_heads(heads: keras.KerasTensor) -> keras.KerasTensor:
    """`(heads, batch, n, size)` → `(batch, n, heads * size)`."""
    num_heads, batch, n, size = ops.shape(heads)
    merged = ops.transpose(heads, (1, 2, 0, 3))
    return ops.reshape(merged, (batch, n, num_heads * size))


def heads_of(
    x: keras.KerasTensor, size: int, *groups: Sequence[keras.KerasTensor]
) -> list[keras.KerasTensor]:
    """Heads of several groups of kernels `(m, heads * size)`, by one product.

    Returns:
        A tensor `(heads, batch, n, size)` for each group.
    """
    kernels = [kernel for group in groups for kernel in group]
    heads = to_heads(project(x, joined(*kernels)), size)
    counts = [sum(x.shape[1] for x in group) // size for group in groups]
    ends = list(itertools.accumulate(counts))[:-1]
    return ops.split(heads, ends, axis=0)


def sum_over_keys(
    scores: keras.KerasTensor, relations: keras.KerasTensor
) -> keras.KerasTensor:
    """`Σ_j scores[h, b, i, j] relations[r, b, i, j]`, `(h, r, b, i)`."""
    if scores.shape[0] * relations.shape[0] <= FEW_SUMS:
        return ops.sum(scores[:, None] * relations, axis=-1)
    return ops.einsum("hbij,rbij->hrbi", scores, relations)


def pair_mask(
    mask: keras.KerasTensor | None, n: int, causal: bool
) -> keras.KerasTensor | None:
    """Which entity may attend to which.

    Args:
        mask: Optional boolean tensor `(batch, n)`, `True` for a valid entity.
        n: Number of entities.
        causal: If `True`, no entity may attend to later ones.

    Returns:
        Boolean tensor that broadcasts to `(num_heads, batch, n, n)`, or `None`
        if all may attend to all.
    """
    pairs = None if mask is None else mask[None, :, None]
    if not causal:
        return pairs
    places = ops.arange(n)
    earlier = (places[None] <= places[:, None])[None, None]
    return earlier if pairs is None else pairs & earlier


def examples_first(scores, dtype):
    """Scores `(batch, heads, n, n)`, as layers return them."""
    return tuple(ops.cast(ops.swapaxes(x, 0, 1), dtype) for x in scores)
