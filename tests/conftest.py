"""What all tests share: a fixed seed, float32, and figures without a screen."""

import gc
import importlib.util
import os

os.environ["MPLBACKEND"] = "Agg"
# On JAX nearly all the time goes into compiling what runs once.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import keras
import numpy as np
import pytest

# So that a failed `assert` shows its values there too.
pytest.register_assert_rewrite("layer_contract", "environment_contract")

# Some environments lack an optional package. These files cannot run there.
NEEDS = {
    "griffe": ["test_site.py"],
    "gymnasium": ["environments/test_gymnasium_environment.py"],
    "tensorflow": [
        "agents/test_distributed.py",
        "agents/test_impala.py",
        "agents/test_several_hosts.py",
        "agents/test_training.py",
        "agents_for_tests.py",
        "environments/test_tf_agents_environment.py",
        "examples/test_examples.py",
        "experiments/scoff/test_maze.py",
        "models/test_declared_roles.py",
        "serving",
        "test_fuzz.py",
        "tiny_servable.py",
    ],
    "tornado": ["playground/test_networks.py", "playground/test_server.py"],
}
collect_ignore = [
    file
    for package, files in NEEDS.items()
    if importlib.util.find_spec(package) is None
    for file in files
]


def pytest_configure(config):
    if "not slow" in config.option.markexpr:
        import layer_contract

        layer_contract.left_out.update(layer_contract.SLOW_CHECKS)
        if keras.backend.backend() != "tensorflow":
            layer_contract.left_out.update(
                set(layer_contract.CHECKS)
                - set(layer_contract.NUMERICAL_CHECKS)
            )


def pytest_collection_finish():
    """Spares garbage collection what was imported."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def same_start():
    """Each test draws the same random numbers, whichever ran before it."""
    keras.config.set_dtype_policy("float32")
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture(autouse=True)
def numpy_compares_tensors(monkeypatch):
    """Lets NumPy's comparisons take torch tensors that have gradients.

    The tests' own comparisons are converted, and nothing in the package.
    """
    if keras.backend.backend() != "torch":
        return

    def on_arrays(compare):
        def converted(*arguments, **kwargs):
            return compare(*map(as_array, arguments), **kwargs)

        return converted

    def as_array(value):
        if keras.ops.is_tensor(value):
            return keras.ops.convert_to_numpy(value)
        if isinstance(value, list | tuple):
            return type(value)(map(as_array, value))
        return value

    for name in ("assert_allclose", "assert_array_equal", "assert_array_less"):
        compare = getattr(np.testing, name)
        monkeypatch.setattr(np.testing, name, on_arrays(compare))


@pytest.fixture
def float64():
    """Allows float64 on JAX, which has it off by default."""
    if keras.backend.backend() != "jax":
        yield
        return
    import jax

    with jax.enable_x64(True):
        yield
