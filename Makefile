# The commands of the README, and what CI runs in addition.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH ?= torch==2.13.0
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
# Bytecode is kept. Without it every process of the tests compiles every module it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all test-frameworks lint docs docs-serve install clean

demo: install
	$(BIN)/wavecast explain examples/matmul.py --arch gfx942,gfx950,gfx1100,sm_90

test: install
	$(PYTEST) -m "not thorough"

test-all: install
	$(PYTEST)

# Tests of the integrations with frameworks that the others do without.
test-frameworks: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[jax,tensorflow]"
	$(PYTEST) tests/integrations/test_jax.py tests/integrations/test_pallas.py \
		tests/integrations/test_tensorflow.py tests/integrations/test_keras_layers.py \
		tests/integrations/test_xplane.py tests/integrations/vllm

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

# The documentation site, in build/docs. A broken link fails it, and a command that prints something else than its page.
docs: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	$(BIN)/python -m pytest tests/documents/test_executed_pages.py
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs build/docs

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs 8000

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[hip,test]"
	touch $@

clean:
	rm -rf $(VENV)
