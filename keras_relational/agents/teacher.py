"""A teacher's share of the actions, and the likelihood of expert actions."""

import keras
from keras import ops


def taught_logits(
    logits: keras.KerasTensor, expert_actions: keras.KerasTensor, share: float
) -> keras.KerasTensor:
    """Logits of the mixture (1 − share) π + share u.

    u is uniform over the expert actions. Where there is none, u is π. The share
    is β of DAgger (https://arxiv.org/abs/1011.0686).

    Args:
        logits: Float tensor `(batch, num_actions)`, of π.
        expert_actions: Boolean tensor `(batch, num_actions)`.
        share: Number from 0 to 1.

    Returns:
        Float tensor `(batch, num_actions)`, all finite.
    """
    own = ops.softmax(logits)
    experts = ops.cast(expert_actions, own.dtype)
    count = ops.sum(experts, axis=-1, keepdims=True)
    experts = ops.where(count > 0, experts / ops.maximum(count, 1), own)
    mixture = (1 - share) * own + share * experts
    return ops.log(ops.maximum(mixture, 1e-8))


def expert_log_probs(
    log_probs: keras.KerasTensor, expert_actions: keras.KerasTensor
) -> keras.KerasTensor:
    """log Σ π(action) over the expert actions.

    Args:
        log_probs: Float tensor `(..., num_actions)`, log π.
        expert_actions: Boolean tensor of the same shape.

    Returns:
        Float tensor `(...)`. Without expert actions it is a large negative
        number.
    """
    return ops.logsumexp(ops.where(expert_actions, log_probs, -1e9), axis=-1)
