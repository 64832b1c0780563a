# `make demo` and `make test` each work as the only command on a fresh clone.
PYTHON ?= python3.11
BIN := .venv/bin
EXTRAS := all,dev

.PHONY: demo test lint bench docs clean

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	touch $@

demo: .venv/installed
	$(BIN)/python examples/demo.py

test: .venv/installed
	$(BIN)/python -m pytest

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

docs: .venv/installed
	$(BIN)/python -m mkdocs build --strict

clean:
	rm -rf .venv build dist runs demo site
