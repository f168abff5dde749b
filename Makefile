# The commands of the README, and what CI runs in addition.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export TORCH ?= torch==2.13.0
# The releases that the tests passed with, of what is installed and of what builds it (docs/decisions/0026-locked-environment.md).
LOCK := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
# Bytecode is kept. Without it every process of the tests compiles every module it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all test-frameworks lint installed docs docs-serve matrix newest release install clean

demo: install
	$(BIN)/wavecast explain examples/matmul.py --arch gfx942,gfx950,gfx1100,sm_90

test: install
	$(PYTEST) -m "not thorough"

test-all: install
	$(PYTEST)

# Tests of frameworks that the others do without: each is installed as its page says, in an environment for itself
# (noxfile.py), and nox says how long it took. SGLang, which changes transformers as it is imported, is tested where it is
# installed beside the tests. Those with Ray share one cluster.
test-frameworks: install
	$(PIP) nox
	$(BIN)/nox --session frameworks
	$(PIP) --editable ".[jax,ray]" "flydsl>=0.5,<0.6" tinygrad==0.14.0
	$(PYTEST) tests/profiles/test_xplane.py tests/runtimes/languages
	$(PYTEST) tests/frameworks/sglang
	$(BIN)/python -m pytest -n 0 tests/tuning/ray

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

# The installation of the README, step by step, in build/installed/.venv, with the locked releases.
installed: install
	$(LOCK) $(BIN)/python -m tests.release.documented_install build/installed

# The documentation site, in build/docs. A broken link fails it, and a command that prints something else than its page
# where Wavecast is installed as the README says.
docs: installed
	$(LOCK) $(PIP) --editable ".[docs]"
	WAVECAST_PAGES=build/installed/.venv/bin $(BIN)/python -m pytest tests/documents/test_executed_pages.py
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs build/docs

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs 8000

# Other versions of Python and Triton, each in its own environment (noxfile.py).
matrix: install
	$(PIP) nox
	$(BIN)/nox

# The newest release of everything within the bounds of pyproject.toml, in build/nox/newest: once a week, and before a
# release. When the tests pass, constraints.txt has these releases; with ARGS, which go to pytest, it stays. PyTorch stays
# TORCH: its newest build brings gigabytes for GPUs.
newest: install
	$(PIP) nox
	$(BIN)/nox --session newest -- $(ARGS)

# Wheel, sdist, SBOM and checksums in dist/, of the tag of this version (docs/releases.md).
release: install
	@version=$$($(BIN)/python -c 'from wavecast.version import __version__ as v; print(v)'); \
	test "$$(git describe --exact-match --dirty 2>/dev/null)" = "v$$version" || \
	{ echo "this tree is not the tag v$$version"; exit 1; }
	$(PIP) build twine cyclonedx-bom
	rm -rf dist build/sbom
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-file dist/wavecast.cdx.json build/sbom/bin/python
	cd dist && sha256sum * > SHA256SUMS
	test -z "$(SIGNING_KEY)" || ssh-keygen -Y sign -f "$(SIGNING_KEY)" -n wavecast dist/SHA256SUMS

install: $(VENV)/.installed

# Builds of PyTorch for GPUs pin their Triton: nothing else of the lock may refuse it.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	grep -v '^triton==' constraints.txt > $(VENV)/torch.txt
	$(PIP) --constraint $(VENV)/torch.txt $(TORCH)
	$(LOCK) $(PIP) --editable ".[hip,test]"
	touch $@

clean:
	rm -rf $(VENV) build/tests
