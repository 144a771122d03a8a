import keras
import numpy as np
import pytest
from keras import ops

from keras_relational.agents.vtrace import vtrace

TIME, BATCH = 7, 5


def vtrace_in_loops(
    behaviour, target, rewards, discounts, values, bootstrap, rho_bar, c_bar
):
    """Equation (1) of the paper: a sum over the steps to come."""
    values = np.concatenate([values, bootstrap[None]])
    v = values.copy()
    advantages = np.zeros_like(rewards)
    ratio = np.exp(target - behaviour)
    for b in range(rewards.shape[1]):
        for s in range(len(rewards)):
            factor = 1.0
            for t in range(s, len(rewards)):
                delta = min(rho_bar, ratio[t, b]) * (
                    rewards[t, b]
                    + discounts[t, b] * values[t + 1, b]
                    - values[t, b]
                )
                v[s, b] += factor * delta
                factor *= discounts[t, b] * min(c_bar, ratio[t, b])
    for s, b in np.ndindex(rewards.shape):
        advantages[s, b] = min(rho_bar, ratio[s, b]) * (
            rewards[s, b] + discounts[s, b] * v[s + 1, b] - values[s, b]
        )
    return v[:-1], advantages


def random_arguments(seed=0):
    rng = np.random.default_rng(seed)
    behaviour, target = -rng.exponential(size=(2, TIME, BATCH))
    rewards, values = rng.normal(size=(2, TIME, BATCH))
    discounts = 0.9 * (rng.random((TIME, BATCH)) > 0.2)
    bootstrap = rng.normal(size=BATCH)
    return [behaviour, target, rewards, discounts, values, bootstrap]


def as_tensors(arguments):
    return [ops.convert_to_tensor(x.astype("float32")) for x in arguments]


@pytest.mark.parametrize(
    ("rho_bar", "c_bar"), [(1, 1), (0.5, 2), (2, 0.5), (1e9, 1e9)]
)
def test_equals_the_paper_in_loops(rho_bar, c_bar):
    arguments = random_arguments()
    expected = vtrace_in_loops(*arguments, rho_bar, c_bar)
    found = vtrace(*as_tensors(arguments), rho_bar, c_bar)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_no_gradient_passes_through():
    arguments = as_tensors(random_arguments())
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(arguments)
            found = vtrace(*arguments)
            total = ops.sum(found.values) + ops.sum(found.advantages)
        assert tape.gradient(total, arguments) == [None] * 6
        return
    if keras.backend.backend() == "torch":
        found = vtrace(*(x.requires_grad_() for x in arguments))
        assert not any(x.requires_grad for x in found)
        return
    import jax

    gradients = jax.grad(lambda x: sum(ops.sum(y) for y in vtrace(*x)))(
        arguments
    )
    assert not any(np.any(gradient) for gradient in gradients)


@pytest.mark.parametrize("wrong", range(6))
def test_refuses_other_shapes(wrong):
    arguments = random_arguments()
    arguments[wrong] = arguments[wrong][..., :-1]
    with pytest.raises(ValueError, match=r"\[(T, )?B\].*Received: "):
        vtrace(*as_tensors(arguments))
