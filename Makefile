# Every target makes the environment first, or finds that it is ready; see scripts/setup-environment.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?=
export PYTHON

BIN := .venv/bin
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)
# Where worker processes or XLA fill the cores already, threads of BLAS only contend for them.
ONE_BLAS_THREAD := OPENBLAS_NUM_THREADS=1

.PHONY: help demo test test-all lint format bench clean environment environment-lint
.DEFAULT_GOAL := help

help:
	@echo "make demo       the whole road on simulated trips with known truth -> out/demo"
	@echo "make test       style and the fast tests"
	@echo "make test-all   all tests that need no network, real data included where it is present"
	@echo "make lint       style, format and types"
	@echo "make format     format the sources"
	@echo "make bench      benchmarks, printed to the terminal"
	@echo "make clean      remove the environment, caches and the results of the demo"

environment:
	@scripts/setup-environment

environment-lint: environment
	@scripts/setup-environment lint

demo: environment
	@$(ONE_BLAS_THREAD) $(BIN)/prisma demo -o out/demo

test: environment
	@$(BIN)/ruff check --quiet
	@$(ONE_BLAS_THREAD) $(PYTEST) -m "not slow and not realdata and not network"

test-all: environment
	@$(ONE_BLAS_THREAD) $(PYTEST) -m "not network"

# Warnings of pyright about its own releases would ask the network.
lint: environment-lint
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

format: environment
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: environment
	@for file in benchmarks/*.py; do \
		echo "== $$file" && $(ONE_BLAS_THREAD) $(BIN)/python "$$file" || exit 1; \
	done

clean:
	rm -rf .venv build dist out/demo .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
