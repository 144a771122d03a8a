"""A teacher's share of the moves, and the likelihood of the right ones."""

import keras
from keras import ops


def taught_logits(
    logits: keras.KerasTensor, right: keras.KerasTensor, share: float
) -> keras.KerasTensor:
    """Logits of a policy of which a teacher has a share.

    It is (1 − share) π + share u, where u draws from the right moves. Where no
    move is right, it is π.

    Args:
        logits: Float tensor `(batch, num_actions)`, of π.
        right: Boolean tensor `(batch, num_actions)`, the right moves.
        share: Number from 0 to 1.

    Returns:
        Float tensor `(batch, num_actions)`, all finite.
    """
    own = ops.softmax(logits)
    moves = ops.cast(right, own.dtype)
    number = ops.sum(moves, axis=-1, keepdims=True)
    moves = ops.where(number > 0, moves / ops.maximum(number, 1), own)
    shares = (1 - share) * own + share * moves
    return ops.log(ops.maximum(shares, 1e-8))


def right_log_probs(
    log_probs: keras.KerasTensor, right: keras.KerasTensor
) -> keras.KerasTensor:
    """log Σ_right moves π(move).

    Args:
        log_probs: Float tensor `(..., num_actions)`, log π.
        right: Boolean tensor of the same shape, the right moves.

    Returns:
        Float tensor `(...)`. Where no move is right it is a large negative
        number.
    """
    return ops.logsumexp(ops.where(right, log_probs, -1e9), axis=-1)
