"""Attention between slots, and the choice of active slots.

A slot is a part of a recurrent state: an object file of SCOFF, a module of
RIMs, a row of a relational memory.
"""

import math

import keras
from keras import ops

from keras_relational.layers._attention import dot_product_attention
from keras_relational.layers._attention import dot_products_of_few
from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._attention import merge_heads
from keras_relational.layers._attention import split_heads

# Of a reader and a slot, for attention without products of matrices.
MOST_PAIRS = 64


def attend_to_slots(
    queries: keras.KerasTensor,
    keys: keras.KerasTensor,
    values: keras.KerasTensor,
    num_heads: int,
    dropout_mask: keras.KerasTensor | None = None,
) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """The sum that each reader reads from all slots, and the attention scores.

    Queries, keys and values are `(batch, slots, heads * size)`. The scores,
    `(batch, heads, readers, slots)`, are multiplied by the dropout mask.
    """
    queries, keys, values = (
        split_heads(x, num_heads) for x in (queries, keys, values)
    )
    num_pairs = queries.shape[2] * keys.shape[2]
    if keras.backend.backend() != "jax" or num_pairs > MOST_PAIRS:
        return dot_product_attention(queries, keys, values, None, dropout_mask)
    logits = dot_products_of_few(queries, keys)
    scores = masked_softmax(logits / math.sqrt(queries.shape[-1]))
    weights = scores if dropout_mask is None else scores * dropout_mask
    read = ops.sum(weights[..., None] * values[:, :, None], axis=3)
    return merge_heads(ops.cast(read, values.dtype)), scores


def most_relevant(
    relevance: keras.KerasTensor, num_active: int
) -> keras.KerasTensor:
    """The slots with the largest relevance, as one-hot rows.

    From `(batch, slots)` to booleans `(batch, num_active, slots)`. Among
    equally relevant slots the first are taken. This matters at the first step
    of RIMs, where all modules are equal. On torch `ops.top_k` does not promise
    this order.
    """
    chosen = ops.argsort(-relevance, axis=-1)[:, :num_active]
    # ONNX has no one-hot rows of booleans.
    slots = ops.cast(ops.arange(relevance.shape[-1]), chosen.dtype)
    return ops.expand_dims(chosen, -1) == slots


def gather_active(
    x: keras.KerasTensor | None,
    active: keras.KerasTensor | None,
    axis: int = 1,
) -> keras.KerasTensor | None:
    """Selects the active slots along the axis of slots.

    `active` is that of `most_relevant`, or `None` for all slots. It masks the
    slots and sums them, and `scatter_active` does the same in reverse. A
    product with one-hot rows would round on some GPUs, and
    `ops.take_along_axis` makes SCOFF's training no faster.
    """
    if x is None or active is None:
        return x
    x = ops.expand_dims(x, axis)
    before, after = [1] * (axis - 1), [1] * (len(x.shape) - axis - 2)
    shape = (-1, *before, *active.shape[1:], *after)
    return ops.sum(ops.where(ops.reshape(active, shape), x, 0), axis=axis + 1)


def scatter_active(
    x: keras.KerasTensor,
    active: keras.KerasTensor | None,
    others: keras.KerasTensor | int = 0,
    axis: int = 1,
) -> keras.KerasTensor:
    """Puts the active slots back among all slots.

    The slots that are not active have the values of `others`: a tensor of all
    slots, or a number.
    """
    if active is None:
        return x
    active = ops.swapaxes(active, 1, 2)
    is_active = ops.any(active, axis=2)
    shape = [1] * len(x.shape)
    shape[0], shape[axis] = -1, is_active.shape[1]
    x = gather_active(x, active, axis)
    return ops.where(ops.reshape(is_active, shape), x, others)
