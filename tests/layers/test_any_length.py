import keras
import numpy as np
import pytest

from keras_relational import layers

CORES = {
    "scoff": lambda: layers.SCOFF(6, 3, 2, dynamics="lstm", dropout=0.1),
    "rims": lambda: layers.RIMs(6, 3, 2, dropout=0.1),
    "relational_memory": lambda: keras.layers.RNN(
        layers.RelationalMemoryCell(6, 3, num_heads=2)
    ),
    "esbn": lambda: layers.ESBN(6, 4, confidence=True),
}


@pytest.mark.parametrize("core", CORES)
def test_trained_with_xla_where_batch_and_time_are_not_fixed(core):
    """XLA must know all shapes in the gradient of a loop.

    On torch the same is tested without a compiler.
    """
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((None, 4)), CORES[core](), keras.layers.Dense(1)]
    )
    xla = keras.backend.backend() != "torch"
    model.compile("sgd", "mse", jit_compile=xla)
    before = [weight.numpy() for weight in model.trainable_weights]
    x = np.random.default_rng(0).normal(size=(6, 5, 4)).astype("float32")
    model.fit(x, np.ones((6, 1)), batch_size=4, verbose=0)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert np.abs(weight.numpy() - old).max() > 0, weight.path
