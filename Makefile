# Two commands do everything on a fresh machine: `make run` and `make test`. Each sets up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CORES := 2

.PHONY: run test verify bench lint clean
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
	@$(PIP) install --quiet --constraint constraints.txt --editable ".[dev,train,onnx,sb3]"
	@touch $@ $(VENV)/.core

$(VENV)/.bench: $(VENV)/.dev
	@echo "==> installing the peers that the benchmarks compare with"
	@$(PIP) install --quiet --constraint constraints.txt --editable ".[dev,train,onnx,sb3,bench]"
	@touch $@

run: $(VENV)/.core
	@echo "==> blending the shipped PointGoal1 controllers: five episodes each, performant, safe, blended"
	@$(BIN)/blendctl blend PointGoal1 --controllers PointGoal1/ppo PointGoal1/ppo-lagrangian \
		--episodes 5 --seed 0 --out out/blend

lint: $(VENV)/.dev
	@echo "==> lint, types, import contracts"
	@$(BIN)/ruff check src tests bench
	@$(BIN)/ruff format --check src tests bench
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

test: lint
	@echo "==> tests"
	@$(BIN)/python -m pytest -q -n $(CORES) -m "not slow"

verify: $(VENV)/.dev
	@echo "==> slow proofs"
	@$(BIN)/python -m pytest -q -m slow

bench: $(VENV)/.bench
	@echo "==> benchmarks (leave the machine idle)"
	@for file in bench/*.py; do echo "==> $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) out build .pytest_cache .mypy_cache .ruff_cache .hypothesis
