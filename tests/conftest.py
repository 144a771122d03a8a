"""What all tests share: a fixed seed, float32, and figures without a screen."""

import os

os.environ["MPLBACKEND"] = "Agg"
# On JAX nearly all the time goes into compiling what runs once.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import keras
import pytest

# So that a failed `assert` shows its values there too.
pytest.register_assert_rewrite("layer_contract")


@pytest.fixture(autouse=True)
def same_start():
    """Each test draws the same random numbers, whichever ran before it."""
    keras.config.set_dtype_policy("float32")
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture
def float64():
    """That JAX has it too."""
    if keras.backend.backend() != "jax":
        yield
        return
    import jax

    with jax.enable_x64(True):
        yield
