# Every target makes what it needs: Python 3.11 and make are enough to start.
PYTHON ?= python3.11
VENVS := .venv .venv-jax .venv-oldest .venv-torch .venv-lint .venv-docs

# TensorFlow leaves oneDNN off on CPUs without AVX-512; convolutions and their
# gradients then take about twice as long.
export TF_ENABLE_ONEDNN_OPTS ?= 1

# The first silences TensorFlow's log during its import, the second afterwards.
export PYTHONPATH := $(CURDIR)/tools/quiet_tensorflow
export TF_CPP_MIN_LOG_LEVEL := 3

PYTEST := -m pytest --numprocesses=auto --dist=worksteal

# Most of the time goes into compiling what runs once.
QUICK_XLA := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"

# A test that hangs says where, and fails.
NO_HANG := -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

# What is not run on torch needs TensorFlow, or an environment to play in.
TORCH_TESTS := tests/layers tests/datasets tests/runs \
	$(filter-out %/test_declared_roles.py,$(wildcard tests/models/test_*.py)) \
	$(filter-out %/test_agents.py,$(wildcard tests/analysis/test_*.py)) \
	tests/test_backends.py tests/test_layer_contract.py \
	tests/test_file_io.py tests/test_random_numbers.py \
	tests/test_tables.py \
	$(addprefix tests/training/test_,analogies.py minibatches.py rules.py \
	supervised.py transfer.py video.py vtrace.py) \
	keras_relational/layers keras_relational/models \
	keras_relational/datasets

LAYER_TESTS := tests/layers tests/test_layer_contract.py keras_relational/layers

.PHONY: demo test test-all test-oldest test-torch lint dist docs bench fuzz clean

# What goes into each environment, with the time and the space that it takes.
.venv/installed: EXTRAS := dev
.venv/installed: COST := about a minute, 2.5 GB
# The newest releases, with JAX alone.
.venv-jax/installed: EXTRAS := gymnasium,jax,plots,test
.venv-jax/installed: COST := half a minute, 0.7 GB
# The oldest releases, with JAX alone.
.venv-oldest/installed: EXTRAS := oldest
.venv-oldest/installed: COST := half a minute, 0.7 GB
# tf-agents, in `dev`, excludes torch. TensorFlow is for the tests that compare.
.venv-torch/installed: EXTRAS := plots,tensorflow,test,torch
.venv-torch/installed: COST := a minute or two; torch for Linux brings gigabytes of CUDA
.venv-lint/installed: EXTRAS := lint
.venv-lint/installed: COST := half a minute, 0.3 GB
# The site reads docstrings without importing the package.
.venv-docs/installed: EXTRAS := docs
.venv-docs/installed: COST := half a minute, 0.3 GB

$(VENVS:%=%/installed): setup.cfg pyproject.toml
	@echo "Installing keras_relational[$(EXTRAS)] into $(@D) ($(COST)) ..."
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

demo: .venv/installed
	@.venv/bin/python examples/demo.py

test: .venv/installed .venv-jax/installed
	@echo "Running the tests (20 to 45 minutes on two cores) ..."
	@$(QUICK_XLA) .venv/bin/python $(PYTEST) $(NO_HANG) -m "not slow"
	@echo "Running on JAX, without TensorFlow, what must run on any backend ..."
	@KERAS_BACKEND=jax $(QUICK_XLA) .venv-jax/bin/python $(PYTEST) $(NO_HANG) -m "any_backend and not slow" tests

test-all: .venv/installed .venv-jax/installed
	@echo "Running every test, learning runs included ..."
	@.venv/bin/python $(PYTEST)
	@KERAS_BACKEND=jax $(QUICK_XLA) .venv-jax/bin/python $(PYTEST) $(LAYER_TESTS)

test-oldest: .venv-oldest/installed
	@echo "Running layers and training on JAX with the oldest releases of Keras and NumPy (two to three minutes on two cores) ..."
	@KERAS_BACKEND=jax $(QUICK_XLA) .venv-oldest/bin/python $(PYTEST) $(NO_HANG) -m "any_backend and not slow" tests/layers tests/training

test-torch: .venv-torch/installed
	@echo "Running on torch the layers, models, data, supervised training and analysis (five to ten minutes on two cores) ..."
	@KERAS_BACKEND=torch .venv-torch/bin/python $(PYTEST) $(NO_HANG) -m "not slow" $(TORCH_TESTS)

lint: .venv-lint/installed
	@.venv-lint/bin/ruff check .
	@.venv-lint/bin/ruff format --check .
	@PYTHONPATH=. .venv-lint/bin/lint-imports --no-cache
	@.venv-lint/bin/mypy

# The wheel and the source distribution, each installed alone and used on JAX.
dist: .venv-lint/installed
	@echo "Building into dist/, then installing and trying both (a minute or two) ..."
	@rm -rf build dist
	@.venv-lint/bin/python -m build --quiet
	@$(PYTHON) -m venv build/venv
	@for file in dist/*.whl dist/*.tar.gz; do \
		build/venv/bin/python -m pip install --quiet --disable-pip-version-check "$$file[jax]" && \
		(cd build && KERAS_BACKEND=jax venv/bin/python ../tests/smoke.py) && \
		build/venv/bin/python -m pip uninstall --quiet --yes keras_relational && \
		echo "$$file works" || exit 1; \
	done

# Strict: a broken link or a missing docstring is an error.
docs: .venv-docs/installed
	@.venv-docs/bin/python tools/gather_pages.py
	@.venv-docs/bin/zensical build --strict --clean
	@echo "The site is in build/site. Look at it with: $(PYTHON) -m http.server --bind 127.0.0.1 --directory build/site"

bench: .venv/installed
	@.venv/bin/python -m benchmarks

fuzz: .venv/installed
	@echo "Attacking the server and the readers, and trying layers (about forty minutes on two cores) ..."
	@.venv/bin/python -m fuzz

clean:
	rm -rf $(VENVS) build dist *.egg-info
