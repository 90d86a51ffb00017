# Two commands do everything on a fresh machine: `make run` and `make test`. Each sets up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CORES := 2

.PHONY: run test verify bench lint docs chromium clean
.DEFAULT_GOAL := run

$(BIN)/python:
	@echo "==> creating the virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	@echo "==> installing blendctl (one to two minutes the first time)"
	@$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "==> installing blendctl with everything its tests need (a few minutes the first time)"
	@$(PIP) install --quiet --constraint constraints.txt --editable ".[dev,docs,train,onnx,sb3,ray]"
	@touch $@ $(VENV)/.core

$(VENV)/.bench: $(VENV)/.dev
	@echo "==> installing the peers that the benchmarks compare with"
	@$(PIP) install --quiet --constraint constraints.txt --editable ".[dev,docs,train,onnx,sb3,ray,bench]"
	@touch $@

run: $(VENV)/.core
	@echo "==> blending the shipped PointGoal1 controllers: five episodes each, performant, safe, blended"
	@$(BIN)/blendctl blend PointGoal1 --controllers PointGoal1/ppo PointGoal1/ppo-lagrangian \
		--episodes 5 --seed 0 --out out/blend
	@$(BIN)/blendctl report out/blend -o out/blend/report.html

lint: $(VENV)/.dev
	@echo "==> lint, types, import contracts"
	@$(BIN)/ruff check src tests bench docs examples
	@$(BIN)/ruff format --check src tests bench docs examples
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

# The page is tested in a real browser, which apt brings where it may; otherwise those tests say how to get it.
chromium:
	@for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do \
		command -v $$name >/dev/null 2>&1 && exit 0; done; \
	command -v apt-get >/dev/null 2>&1 || exit 0; \
	if [ "$$(id -u)" = 0 ]; then as=""; elif sudo -n true 2>/dev/null; then as="sudo -n"; else exit 0; fi; \
	echo "==> installing Chromium for the tests of the page"; \
	{ $$as apt-get update -qq && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
		--no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 || \
		echo "    apt-get could not install it; the tests of the page are skipped"

test: lint chromium
	@echo "==> tests"
	@$(BIN)/python -m pytest -q -n $(CORES) -m "not slow"

verify: $(VENV)/.dev
	@echo "==> slow proofs"
	@$(BIN)/python -m pytest -q -m slow

bench: $(VENV)/.bench
	@echo "==> benchmarks (leave the machine idle)"
	@for file in bench/[a-z]*.py; do echo "==> $$file"; $(BIN)/python $$file || exit 1; done

docs: $(VENV)/.dev
	@echo "==> the documentation, into site/"
	@$(BIN)/python docs/commands.py
	@$(BIN)/python docs/zoo.py
	@$(BIN)/python docs/pictures.py
	@$(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

clean:
	rm -rf $(VENV) out site build .pytest_cache .mypy_cache .ruff_cache .hypothesis
