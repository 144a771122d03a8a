# Every target makes what it needs: make and a supported Python are enough.
# It takes the newest Python that it finds; PYTHON=python3.12 names another.

# $(call find,3.13 3.12): the first of these versions that can be started, under
# its own name or as `python3`, and that can make environments.
find = $(shell for version in $(1); do \
	for python in python$$version python3 python; do \
		$$python -c "import ensurepip, sys; \
			sys.exit('%d.%d' % sys.version_info[:2] != '$$version')" \
			2>/dev/null && echo $$python && exit; \
	done; done)
version = $(if $(1),$(shell $(1) -c "import sys; print('%d.%d' % sys.version_info[:2])"))

ifdef PYTHON
OLDEST_PYTHON := $(PYTHON)
else
PYTHON := $(call find,3.13 3.12 3.11)
# NumPy 2.0, the oldest, has no build for Python 3.13.
OLDEST_PYTHON := $(call find,3.11 3.12)
endif

VENVS := .venv .venv-newest .venv-torch .venv-gpu .venv-lint .venv-docs

# In an environment, after its installation. Another Python makes it anew.
DONE := installed-$(call version,$(PYTHON))
OLDEST_DONE := installed-$(call version,$(OLDEST_PYTHON))

# TensorFlow leaves oneDNN off on CPUs without AVX-512; convolutions and their
# gradients then take about twice as long.
export TF_ENABLE_ONEDNN_OPTS ?= 1

# The first silences TensorFlow's log during its import, the second afterwards.
export PYTHONPATH := $(CURDIR)/tools/quiet_tensorflow
export TF_CPP_MIN_LOG_LEVEL := 3

PYTEST := -m pytest --numprocesses=auto --dist=worksteal

# Most of the time goes into compiling what runs once. JAX 0.12 does not know
# the last flag, and ends.
QUICK_XLA := --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true
QUICK_TENSORFLOW := XLA_FLAGS="$(QUICK_XLA) --xla_cpu_use_fusion_emitters=false"
QUICK_JAX := XLA_FLAGS="$(QUICK_XLA)"

# A process keeps all that it compiles, up to 8 GB over all tests. So the tests
# run in parts, each in processes of its own.
PART_1 := tests/agents tests/environments
PART_2 := tests/analysis tests/experiments
PART_3 := tests/examples tests/models tests/playground tests/serving
PART_4 := tests/layers tests/training
PART_5 := keras_relational $(filter-out $(PART_1) $(PART_2) $(PART_3) $(PART_4) \
	%__pycache__,$(patsubst %/,%,$(wildcard tests/*/ tests/test_*.py)))
IN_PARTS = failed=0; \
	for part in "$(PART_1)" "$(PART_2)" "$(PART_3)" "$(PART_4)" "$(PART_5)"; do \
		$(1) $$part || failed=1; \
	done; exit $$failed

# A test that hangs says where, and fails.
NO_HANG := -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

# What is not run on torch needs TensorFlow, or an environment to play in.
TORCH_TESTS := tests/layers tests/datasets tests/runs \
	$(filter-out %/test_declared_roles.py,$(wildcard tests/models/test_*.py)) \
	$(filter-out %/test_agents.py,$(wildcard tests/analysis/test_*.py)) \
	tests/test_backends.py tests/test_layer_contract.py \
	tests/test_file_io.py tests/test_random_numbers.py \
	tests/test_tables.py tests/training tests/agents/test_vtrace.py \
	$(addprefix tests/experiments/,context_normalization esbn predinet) \
	keras_relational/layers keras_relational/models \
	keras_relational/datasets

JAX_TESTS := tests/layers tests/training
LAYER_TESTS := tests/layers tests/test_layer_contract.py keras_relational/layers

.PHONY: demo test test-all test-newest test-oldest test-torch lint dist docs bench gpu fuzz clean

# What goes into each environment, with the time and the space that it takes.
.venv/$(DONE): EXTRAS := dev
.venv/$(DONE): COST := about a minute, 2.5 GB
# tf-agents' own requirements, of 2023, exclude Python 3.12, NumPy 2.4 and
# PyTorch. `dev` has what it uses.
.venv/$(DONE): WITHOUT_REQUIREMENTS := tf-agents==0.19.0
# The newest releases, with JAX alone.
.venv-newest/$(DONE): EXTRAS := gymnasium,jax,plots,test
.venv-newest/$(DONE): COST := half a minute, 0.7 GB
# The oldest releases, with JAX alone.
.venv-oldest/$(OLDEST_DONE): EXTRAS := oldest
.venv-oldest/$(OLDEST_DONE): COST := half a minute, 0.7 GB
.venv-oldest/$(OLDEST_DONE): PYTHON := $(OLDEST_PYTHON)
# TensorFlow is for the tests that compare.
.venv-torch/$(DONE): EXTRAS := plots,tensorflow,test,torch
.venv-torch/$(DONE): COST := a minute or two; torch for Linux brings gigabytes of CUDA
# XLA's compiler for GPUs, which needs none.
.venv-gpu/$(DONE): EXTRAS := gpu,test
.venv-gpu/$(DONE): COST := a minute, 1.4 GB
.venv-lint/$(DONE): EXTRAS := lint
.venv-lint/$(DONE): COST := half a minute, 0.3 GB
# The site reads docstrings without importing the package.
.venv-docs/$(DONE): EXTRAS := docs
.venv-docs/$(DONE): COST := half a minute, 0.5 GB

PIP = $(@D)/bin/python -m pip install --quiet --disable-pip-version-check

$(VENVS:%=%/$(DONE)) .venv-oldest/$(OLDEST_DONE): setup.cfg pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python of a supported version with the module venv was found. Install Python 3.11, 3.12 or 3.13 (on Debian and Ubuntu, python3.12 and python3.12-venv), or say where it is: make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Installing keras_relational[$(EXTRAS)] into $(@D), with $(PYTHON) ($$($(PYTHON) --version); $(COST)) ..."
	@$(PYTHON) -m venv $(if $(wildcard $(@D)/installed*),--clear) $(@D)
	@$(PIP) --editable '.[$(EXTRAS)]'
	@$(if $(WITHOUT_REQUIREMENTS),$(PIP) --no-deps $(WITHOUT_REQUIREMENTS))
	@touch $@

demo: .venv/$(DONE)
	@.venv/bin/python examples/demo.py

test: .venv/$(DONE) .venv-newest/$(DONE)
	@echo "Running the tests (10 to 20 minutes on two cores) ..."
	@$(call IN_PARTS,$(QUICK_TENSORFLOW) .venv/bin/python $(PYTEST) $(NO_HANG) --durations=7 -m "not slow")
	@echo "Running layers and training on JAX, without TensorFlow ..."
	@KERAS_BACKEND=jax $(QUICK_JAX) .venv-newest/bin/python $(PYTEST) $(NO_HANG) --durations=7 -m "any_backend and not slow" $(JAX_TESTS)

test-all: .venv/$(DONE) .venv-newest/$(DONE)
	@echo "Running every test, learning runs included ..."
	@$(call IN_PARTS,.venv/bin/python $(PYTEST) --durations=7)
	@KERAS_BACKEND=jax $(QUICK_JAX) .venv/bin/python $(PYTEST) tests/test_backends.py tests/training/test_several_devices.py
	@test ! -e .venv-gpu/$(DONE) || JAX_PLATFORMS=cpu KERAS_BACKEND=jax .venv-gpu/bin/python -m pytest tests/test_launches.py
	@KERAS_BACKEND=jax $(QUICK_JAX) .venv-newest/bin/python $(PYTEST) $(LAYER_TESTS)
	@KERAS_BACKEND=jax $(QUICK_JAX) .venv-newest/bin/python $(PYTEST) -m "any_backend and not slow" $(LAYER_TESTS:%=--ignore=%) tests

test-newest: .venv-newest/$(DONE)
	@echo "Running on JAX, without TensorFlow, what must run on any backend, with the newest releases (ten minutes on two cores) ..."
	@KERAS_BACKEND=jax $(QUICK_JAX) .venv-newest/bin/python $(PYTEST) $(NO_HANG) --durations=20 -m "any_backend and not slow" tests

test-oldest: .venv-oldest/$(OLDEST_DONE)
	@echo "Running layers, training and experiments on JAX with the oldest releases of Keras and NumPy (two to three minutes on two cores) ..."
	@KERAS_BACKEND=jax $(QUICK_JAX) .venv-oldest/bin/python $(PYTEST) $(NO_HANG) -m "any_backend and not slow" $(JAX_TESTS) tests/experiments

test-torch: .venv-torch/$(DONE)
	@echo "Running on torch the layers, models, data, supervised training and analysis (five to ten minutes on two cores) ..."
	@KERAS_BACKEND=torch .venv-torch/bin/python $(PYTEST) $(NO_HANG) -m "not slow" $(TORCH_TESTS)

lint: .venv-lint/$(DONE)
	@.venv-lint/bin/ruff check .
	@.venv-lint/bin/ruff format --check .
	@PYTHONPATH=. .venv-lint/bin/lint-imports --no-cache
	@.venv-lint/bin/mypy

# The wheel and the source distribution, each installed alone and used on JAX.
dist: .venv-lint/$(DONE)
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

# What the site takes from npm, with the hashes of the lock file: KaTeX, and ONNX
# Runtime for the playground.
NODE_MODULES := build/node_modules/.package-lock.json
$(NODE_MODULES): tools/site/package.json tools/site/package-lock.json | .venv-docs/$(DONE)
	@echo "Installing KaTeX and ONNX Runtime Web into build/node_modules (some seconds, 0.2 GB) ..."
	@mkdir -p build
	@cp tools/site/package.json tools/site/package-lock.json build
	@PATH="$(CURDIR)/.venv-docs/bin:$$PATH" npm ci --prefix build --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Strict: a broken link, a missing docstring or a guide that fails is an error.
docs: .venv/$(DONE) .venv-docs/$(DONE) $(NODE_MODULES)
	@echo "Running the code of the pages that are new or changed (about five minutes for all of them on two cores) ..."
	@.venv/bin/python -m tools.run_pages
	@.venv-docs/bin/python tools/gather_pages.py
	@.venv/bin/python -m tools.write_playground build/pages/play build/node_modules/onnxruntime-web/dist
	@.venv-docs/bin/zensical build --strict --clean
	@echo "The site is in build/site. Look at it with: $(PYTHON) -m http.server --bind 127.0.0.1 --directory build/site"

bench: .venv/$(DONE)
	@.venv/bin/python -m benchmarks

gpu: .venv-gpu/$(DONE)
	@echo "Compiling a step of every layer and preset for a GPU, which needs none (ten minutes) ..."
	@mkdir -p build
	@.venv-gpu/bin/python -m benchmarks.launches --write build/launches.json

fuzz: .venv/$(DONE)
	@echo "Attacking the server and the readers, and trying layers (about forty minutes on two cores) ..."
	@.venv/bin/python -m fuzz

clean:
	rm -rf $(VENVS) .venv-oldest build dist *.egg-info
