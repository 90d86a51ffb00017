# `make run` and `make test` work on a fresh machine. Each creates the virtual environment .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CORES := 2
CHECKED := src tests bench docs examples
EXTRAS := dev,docs,train,onnx,export,sb3,ray
# What `make check` tests: the parts that need no browser, training, experiment or worker processes; and all doctests.
UNIT := tests/bandit tests/features tests/controllers tests/switches tests/test_atomic.py tests/test_pareto.py \
	tests/test_statistics.py src

.PHONY: run check lint test test-all coverage verify bench docs dist sbom audit setup-browser browser setup-compilers compilers clean
.DEFAULT_GOAL := run

# Tests run in $(CORES) processes; more threads of numpy's BLAS would only wait for each other.
check test coverage: export OPENBLAS_NUM_THREADS = 1

$(BIN)/python:
	@echo "==> creating the virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The locks hold the digests of every package; pip refuses a file that differs. `.ci/lock` writes them.
$(VENV)/.core: pyproject.toml requirements.lock | $(BIN)/python
	@echo "==> installing blendctl (one to two minutes the first time)"
	@$(PIP) install --quiet --require-hashes --no-deps --requirement requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# The lock lists every package that is needed, but torch, hence --no-deps. torch is pinned by version alone: see .ci/lock.
$(VENV)/.dev: pyproject.toml constraints.txt requirements-dev.lock | $(BIN)/python
	@echo "==> installing blendctl with the packages for its tests (a few minutes the first time)"
	@$(PIP) install --quiet --require-hashes --no-deps --requirement requirements-dev.lock
	@$(PIP) install --quiet --constraint constraints.txt --no-build-isolation --editable ".[$(EXTRAS)]"
	@touch $@ $(VENV)/.core

$(VENV)/.bench: $(VENV)/.dev
	@echo "==> installing the libraries that the benchmarks compare with"
	@$(PIP) install --quiet --constraint constraints.txt --editable ".[$(EXTRAS),bench]"
	@touch $@

run: $(VENV)/.core
	@echo "==> blending the shipped PointGoal1 controllers within a cost budget of 25: five episodes by each of them, then by the blend"
	@$(BIN)/blendctl blend PointGoal1 --cost-budget 25 --episodes 5 --seed 0 --out out/blend --replace
	@$(BIN)/blendctl report out/blend -o out/blend/report.html

# The hooks of .pre-commit-config.yaml run the same four checks.
lint: $(VENV)/.dev
	@echo "==> lint, format, types, import contracts"
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

# Fast feedback while editing: under a minute once the kernels are compiled.
check: lint
	@echo "==> unit tests"
	@$(BIN)/python -m pytest -q -n $(CORES) -m "not slow" $(UNIT)

test: lint browser compilers
	@echo "==> tests"
	@$(BIN)/python -m pytest -q -n $(CORES) -m "not slow" --durations=15

# One virtual environment per Python, .venv-3.11 to .venv-3.13. See .ci/test-all for its variables.
test-all:
	@.ci/test-all

# The floor is `fail_under` in pyproject.toml, which also says what is not measured.
coverage: $(VENV)/.dev browser compilers
	@echo "==> tests with branch coverage"
	@$(BIN)/python -m pytest -q -n $(CORES) -m "not slow" --cov --cov-report=term:skip-covered --cov-report=html:out/coverage

# `.venv/bin/python tests/verify.py WORD...` runs the checks whose names contain a word.
verify: $(VENV)/.dev compilers
	@echo "==> every promise at its full size, into verify.json (up to an hour)"
	@$(BIN)/python tests/verify.py

bench: $(VENV)/.bench
	@echo "==> benchmarks (leave the machine idle)"
	@for file in bench/[a-z]*.py; do echo "==> $$file"; $(BIN)/python $$file || exit 1; done

docs: $(VENV)/.dev
	@echo "==> the documentation, into site/"
	@$(BIN)/python docs/commands.py
	@$(BIN)/python docs/results.py
	@$(BIN)/python docs/guarantees.py
	@$(BIN)/python docs/pictures.py
	@$(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

# Build dist/*.tar.gz and, from it, dist/*.whl; then install the wheel in a fresh environment and use it.
dist: $(VENV)/.dev
	@rm -rf dist build
	@git rev-parse HEAD > src/blendctl/_commit.txt
	@$(BIN)/python -m build --outdir dist . >/dev/null; built=$$?; rm -f src/blendctl/_commit.txt; exit $$built
	@.ci/check-dist

# List every installed package with its version, licence and digests as CycloneDX JSON.
sbom: $(VENV)/.dev
	@$(BIN)/python .ci/sbom out/sbom.json

# Look the locked packages up in the database of known weaknesses; it needs the network.
audit: $(VENV)/.dev
	@$(BIN)/python .ci/audit

# The tests of the report page need a Chromium, which is a system package: only root may install it.
setup-browser:
	@if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "install Chromium with your package manager, e.g. as root: apt-get install chromium fonts-dejavu-core"; exit 1; fi
	@echo "==> installing Chromium for the tests of the report page"
	@apt-get update -qq >/dev/null
	@DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null

# The tests of exported C files need gcc; clang and a compiler for ARM with an emulator are tried if they are there.
setup-compilers:
	@if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "install the compilers with your package manager, e.g. as root: apt-get install gcc libc6-dev clang gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user"; exit 1; fi
	@echo "==> installing compilers for the tests of exported C files"
	@apt-get update -qq >/dev/null
	@DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends gcc libc6-dev clang \
		gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user >/dev/null

compilers:
	@command -v gcc >/dev/null 2>&1 && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "==> installing gcc for the tests of exported C files; for clang and ARM: make setup-compilers"; \
		apt-get update -qq >/dev/null; \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends gcc libc6-dev >/dev/null && exit 0; fi; \
	echo "==> no gcc: the tests of exported C files are skipped. See: make setup-compilers"

# Containers and CI machines run as root and get the browser here. Nothing asks for a password.
browser:
	@for name in $${BLENDCTL_CHROMIUM:-chromium} chromium-browser google-chrome google-chrome-stable chrome; do \
		command -v $$name >/dev/null 2>&1 && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then $(MAKE) --no-print-directory setup-browser && exit 0; fi; \
	echo "==> no Chromium: the tests of the report page are skipped. See: make setup-browser"

clean:
	rm -rf $(VENV) $(VENV)-3.* out site build dist .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
