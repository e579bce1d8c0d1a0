# Two commands for a newcomer: `make demo` and `make test`. Both set up what is missing, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test slow lint types format bench clean

help:
	@echo "make demo    simulate, fit, analyse and report on an embedded cohort"
	@echo "make test    run the tests"
	@echo "make slow    run the long checks"
	@echo "make lint    style; make types checks types; pre-commit runs both"
	@echo "make bench   benchmarks, each beside its naive version"

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(READY)

setup: $(READY)

demo: $(READY)
	$(BIN)/prism demo --out demo

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder -q

slow: $(READY)
	$(BIN)/python -m pytest -m slow -q

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .ruff_cache
