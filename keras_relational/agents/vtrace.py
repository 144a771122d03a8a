"""V-trace: values and advantages for actors that lag behind their learner."""

from typing import NamedTuple

import keras
from keras import ops


class VTrace(NamedTuple):
    """Value targets v and policy gradient advantages, both `[T, B]`."""

    values: keras.KerasTensor
    advantages: keras.KerasTensor


def vtrace(
    behaviour_log_probs: keras.KerasTensor,
    target_log_probs: keras.KerasTensor,
    rewards: keras.KerasTensor,
    discounts: keras.KerasTensor,
    values: keras.KerasTensor,
    bootstrap_value: keras.KerasTensor,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
) -> VTrace:
    """Off-policy corrected value targets and policy gradient advantages.

    The importance ratios π/μ of target and behaviour policy are cut off at ρ̄
    and c̄. Then, backwards in time,

        δ_t = min(ρ̄, π_t/μ_t) (r_t + γ_t V_{t+1} − V_t)
        v_t = V_t + δ_t + γ_t min(c̄, π_t/μ_t) (v_{t+1} − V_{t+1})
        advantages_t = min(ρ̄, π_t/μ_t) (r_t + γ_t v_{t+1} − V_t)

    where v_T = V_T is the bootstrap value. If both policies are the same and
    neither cut-off is below 1, v is the n-step return. No gradient passes
    through. Reference: equation (1) and section 4.2 of [Espeholt et al., 2018](
    https://arxiv.org/abs/1802.01561).

    All tensors are `[T, B]`, but for the bootstrap value `[B]`. Log
    probabilities are those of the action taken, discounts γ, or 0 where the
    episode ended, and values V of the observation before each action. A
    `ValueError` says if the shapes do not agree.
    """
    shape = tuple(rewards.shape)
    steps = {
        "behaviour_log_probs": behaviour_log_probs,
        "target_log_probs": target_log_probs,
        "discounts": discounts,
        "values": values,
    }
    for name, tensor in steps.items():
        if tuple(tensor.shape) != shape or len(shape) != 2:
            raise ValueError(
                "All arguments are [T, B], like `rewards`. Received: "
                f"rewards.shape={shape}, {name}.shape={tuple(tensor.shape)}"
            )
    if tuple(bootstrap_value.shape) != shape[1:]:
        raise ValueError(
            f"`bootstrap_value` is [B], here {shape[1:]}. Received: "
            f"bootstrap_value.shape={tuple(bootstrap_value.shape)}"
        )
    ratios = ops.exp(target_log_probs - behaviour_log_probs)
    rho = ops.minimum(ratios, clip_rho)
    decays = discounts * ops.minimum(ratios, clip_c)
    last = ops.expand_dims(bootstrap_value, 0)
    next_values = ops.concatenate([values[1:], last], axis=0)
    deltas = rho * (rewards + discounts * next_values - values)

    def step(later, inputs):
        delta, decay = inputs
        difference = delta + decay * later
        return difference, difference

    _, differences = ops.scan(
        step, ops.zeros_like(deltas[0]), (deltas, decays), reverse=True
    )
    targets = values + differences
    next_targets = ops.concatenate([targets[1:], last], axis=0)
    advantages = rho * (rewards + discounts * next_targets - values)
    return VTrace(ops.stop_gradient(targets), ops.stop_gradient(advantages))
