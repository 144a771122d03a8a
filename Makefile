# Every target makes what it needs: Python 3.11 and make are enough to start.
PYTHON ?= python3.11
VENV := .venv
VENV_TORCH := .venv-torch
BIN := $(VENV)/bin
PYTEST := TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

# TensorFlow leaves oneDNN off on CPUs without AVX-512; convolutions and their
# gradients then take about twice as long.
export TF_ENABLE_ONEDNN_OPTS ?= 1

# Most of the time goes into compiling what runs once.
QUICK_XLA := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"

# A test that hangs says where, and fails.
NO_HANG := -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

# What is not run on torch needs TensorFlow, or an environment to play in.
TORCH_TESTS := tests/layers tests/models tests/datasets tests/runs \
	$(filter-out %/test_block_attention.py %/test_episodes.py,\
	$(wildcard tests/analysis/test_*.py)) \
	tests/test_backends.py tests/test_layer_contract.py \
	tests/test_counter_based_random.py tests/test_file_io.py \
	tests/test_random_streams.py tests/test_tables.py \
	$(addprefix tests/training/test_,analogies.py dynamic_objects.py \
	minibatches.py rules.py supervised.py transfer.py video.py \
	visual_analogies.py vtrace.py) \
	keras_relational/layers keras_relational/models \
	keras_relational/datasets

LAYER_TESTS := tests/layers tests/test_layer_contract.py keras_relational/layers

.PHONY: demo test test-all test-torch lint bench fuzz clean

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
	@KERAS_BACKEND=jax $(QUICK_XLA) $(PYTEST) $(NO_HANG) -m "not slow" -k "contract or killed or any_machine" tests/layers tests/test_counter_based_random.py tests/environments/test_boxworld.py tests/environments/test_goto_object_maze.py tests/training/test_analogies.py

test-all: $(VENV)/installed
	@echo "Running every test, learning runs included ..."
	@$(PYTEST)
	@KERAS_BACKEND=jax $(QUICK_XLA) $(PYTEST) $(LAYER_TESTS)

# Beside tf-agents there is no room for torch: an environment of its own.
$(VENV_TORCH)/installed: setup.cfg pyproject.toml
	@echo "Installing keras_relational and torch into $(VENV_TORCH) (a minute or two; pip's own torch for Linux brings gigabytes of CUDA) ..."
	@$(PYTHON) -m venv $(VENV_TORCH)
	@$(VENV_TORCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[plots,test,torch]'
	@touch $@

test-torch: $(VENV_TORCH)/installed
	@echo "Running on torch the layers, models, data, supervised training and analysis (five to ten minutes on two cores) ..."
	@KERAS_BACKEND=torch TF_CPP_MIN_LOG_LEVEL=3 $(VENV_TORCH)/bin/python -m pytest --numprocesses=auto --dist=worksteal $(NO_HANG) -m "not slow" $(TORCH_TESTS)

lint: $(VENV)/installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@PYTHONPATH=. $(BIN)/lint-imports --no-cache

bench: $(VENV)/installed
	@TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m benchmarks

fuzz: $(VENV)/installed
	@echo "Attacking the server and the readers (about ten minutes on two cores) ..."
	@TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m fuzz

clean:
	rm -rf $(VENV) $(VENV_TORCH) build dist *.egg-info
