# Two commands: `make demo` and `make test`. Each sets up what it needs in .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help demo paper test install lint types imports pytest clean

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: $(READY)   ## set up and fit the paper's network, with a picture
	$(BIN)/coterie demo

paper: $(READY)  ## set up and run the paper's experiment again (about three minutes)
	$(BIN)/coterie paper

test: lint types imports pytest   ## set up and run every check

install: $(READY)   ## create .venv with the package and its development tools

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo 'Coterie needs Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.12'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

pytest: $(READY)
	$(BIN)/pytest -n auto

clean:           ## remove the environment and what tools left behind
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
