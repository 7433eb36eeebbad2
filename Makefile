# Two commands: `make demo` and `make test`. Each sets up what it needs in .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := $(VENV)/.demo
READY  := $(VENV)/.ready
BENCH  := .venv-bench
CUT    := .venv-cut
WHEEL  := .venv-wheel
LOWEST := .venv-lowest
GPU    := .venv-gpu
PIP    := -m pip install --quiet --disable-pip-version-check --no-compile   # Python compiles what it imports, once:
unexport PYTHONDONTWRITEBYTECODE
FAST   := tests/problem tests/datasets tests/graphs tests/io tests/test_package.py tests/test_docstrings.py

.PHONY: help demo paper check test test-slow docs coverage wheel lowest install bench bench-large bench-kernel bench-stream bench-compared bench-gpu test-gpu lint types imports pytest fast clean

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: $(DEMO)    ## set up and fit the paper's network, with a picture
	$(BIN)/coterie demo

paper: $(DEMO)   ## set up and run the paper's experiment again (about three minutes)
	$(BIN)/coterie paper

check: lint imports   ## set up and run the linters and the fast tests, in under a minute
	@$(MAKE) --no-print-directory -j2 types fast

test: lint imports   ## set up and run every check, and every test but the slow ones
	@$(MAKE) --no-print-directory -j2 types pytest

test-slow: $(READY)   ## the slow tests: real servers, whole programs, thousands of problems
	$(BIN)/pytest -n auto --dist worksteal -m slow

docs: $(VENV)/.docs   ## build the documentation site in site/, with warnings as errors
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html docs site
	@echo 'The site is ready: open site/index.html'

coverage: $(READY)   ## every test, and which lines and branches none of them reaches
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest -n auto --dist worksteal --cov --cov-report=term:skip-covered

wheel:           ## build the wheel, install it into an empty environment and try it there
	rm -rf dist $(WHEEL)
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python $(PIP) --constraint constraints.txt dist/*.whl
	$(WHEEL)/bin/python -I tests/smoke.py

lowest:          ## the fast tests with the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python $(PIP) uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[dev]'
	HYPOTHESIS_PROFILE=quick $(LOWEST)/bin/pytest -n auto -m 'not slow' -W ignore::DeprecationWarning $(FAST) tests/estimators

test-gpu: $(GPU)/.ready   ## the GPU engine, on a GPU where there is one, else in Triton's interpreter
	if $(GPU)/bin/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; \
	    then $(GPU)/bin/pytest -n 0 -k 'cuda or gpu' tests/engines; \
	    else TRITON_INTERPRET=1 $(GPU)/bin/pytest -n auto -k 'cpu or gpu' tests/engines; fi

bench-gpu: $(GPU)/.ready   ## the GPU engine beside the bandwidth of the card, and end to end
	$(GPU)/bin/python -m benchmarks.gpu $(ARGS)

$(GPU)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(GPU)
	$(GPU)/bin/python $(PIP) --constraint constraints.txt --editable '.[dev,gpu]'
	@touch $@

install: $(READY)   ## create .venv with the package and its development tools

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo 'Coterie needs Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.12'; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(DEMO): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python $(PIP) --constraint constraints.txt --editable '.[plot]'
	@touch $@

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python $(PIP) --constraint constraints.txt --editable '.[dev]'
	@touch $(DEMO) $@

$(VENV)/.docs: $(DEMO)
	$(BIN)/python $(PIP) --constraint constraints.txt --editable '.[docs]'
	@touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

pytest: $(READY)
	$(BIN)/pytest -n auto --dist worksteal -m 'not slow'

fast: $(READY)
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest -q -n auto --dist worksteal -m 'not slow' $(FAST)

bench: $(BENCH)/.ready $(CUT)/.ready   ## compare with other solvers, see benchmarks/README.md (half an hour)
	$(BENCH)/bin/python -m benchmarks.table --cut-python $(CUT)/bin/python $(ARGS)

bench-large: $(READY)   ## a million nodes and ten million edges on two threads
	$(BIN)/python -m benchmarks.table --families f $(ARGS)

bench-kernel: $(READY)   ## the kernels beside the memory bandwidth
	$(BIN)/python -m benchmarks.kernel $(ARGS)

bench-stream: $(READY)   ## rows larger than memory: 50 million, beside a bare scan (needs 4 GB of disk)
	$(BIN)/python -m benchmarks.stream $(ARGS)

bench-compared: $(BENCH)/.compared   ## mgwr, mixed models, strat_models and Flower beside Coterie (half an hour)
	$(BENCH)/bin/python -m benchmarks.compared $(ARGS)

$(BENCH)/.compared: $(BENCH)/.ready benchmarks/requirements-compared.txt
	$(BENCH)/bin/python $(PIP) --constraint constraints.txt --requirement benchmarks/requirements-compared.txt
	@touch $@

$(BENCH)/.ready: pyproject.toml constraints.txt benchmarks/requirements.txt benchmarks/requirements-proxtv.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python $(PIP) --constraint constraints.txt --editable . --requirement benchmarks/requirements.txt
	@$(BENCH)/bin/python $(PIP) --requirement benchmarks/requirements-proxtv.txt >$(BENCH)/proxtv.log 2>&1 || \
	    echo 'proxTV could not be built and is left out; it needs LAPACKE (Debian: apt install liblapacke-dev).'
	@touch $@

$(CUT)/.ready: pyproject.toml benchmarks/requirements-cut-pursuit.txt
	$(PYTHON) -m venv $(CUT)
	$(CUT)/bin/python $(PIP) --editable . --requirement benchmarks/requirements-cut-pursuit.txt
	@touch $@

clean:           ## remove the environments and what tools left behind
	rm -rf site docs/tutorials docs/reference/generated
	rm -rf $(VENV) $(BENCH) $(CUT) $(WHEEL) $(LOWEST) $(GPU) dist .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
