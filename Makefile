# Every target makes what it needs: Python 3.11 and make are enough to start.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PYTEST := TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

# TensorFlow leaves oneDNN off on CPUs without AVX-512; convolutions and their
# gradients then take about twice as long.
export TF_ENABLE_ONEDNN_OPTS ?= 1

# Most of the time goes into compiling what runs once.
QUICK_XLA := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"

# A test that hangs says where, and fails.
NO_HANG := -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

LAYER_TESTS := tests/layers tests/test_layer_contract.py keras_relational/layers

.PHONY: demo test test-all lint bench fuzz clean

$(VENV)/installed: setup.cfg pyproject.toml
	@echo "Installing keras_relational and what it needs into $(VENV) (about a minute, 2.5 GB) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/installed
	@TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python examples/demo.py

test: $(VENV)/installed
	@echo "Running the tests, on JAX the contract of every layer, episodes and a continued run (ten to fifteen minutes on two cores) ..."
	@$(QUICK_XLA) $(PYTEST) $(NO_HANG) -m "not slow"
	@KERAS_BACKEND=jax $(QUICK_XLA) $(PYTEST) $(NO_HANG) -m "not slow" -k "contract or killed or any_machine" tests/layers tests/test_random_bits.py tests/environments/test_boxworld.py tests/environments/test_goto_object_maze.py tests/training/test_analogies.py

test-all: $(VENV)/installed
	@echo "Running every test, learning runs included ..."
	@$(PYTEST)
	@KERAS_BACKEND=jax $(QUICK_XLA) $(PYTEST) $(LAYER_TESTS)

lint: $(VENV)/installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@PYTHONPATH=. $(BIN)/lint-imports --no-cache

bench: $(VENV)/installed
	@TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m benchmarks

fuzz: $(VENV)/installed
	@echo "Attacking the server and the readers (about fifteen minutes on two cores) ..."
	@TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m fuzz

clean:
	rm -rf $(VENV) build dist *.egg-info
