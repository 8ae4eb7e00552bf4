PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
JOBS ?= 2

.PHONY: setup demo test test-all lint clean

setup: $(STAMP)

# moshi --no-deps: it runs with the pinned torch and numpy, but was released with pins below them, which pip would not join.
# --no-compile: Python compiles what is imported when it is; compiling everything takes longer than the rest.
# --clear: an installation that was broken off leaves an environment that pip cannot mend.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --no-deps speech-to-speech==1.1.0 \
	  || echo "speech-to-speech 1.1.0 could not be had: tests/adapters/test_realtime_peer.py will be skipped"
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --no-deps moshi==0.2.13
	@touch $@

# A failed probe is a finding about the agent, not a fault of the demo: only an exit status above 1 is.
demo: setup
	$(BIN)/pytest cases/ifeval --sample=9 --levels=L0,L1,L2 -n $(JOBS) --tb=no -rN -o console_output_style=count || test $$? -eq 1

test: setup lint
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m "not thorough"

# With the tests that take long and vary what others show (tests/thorough.txt).
test-all: setup lint
	$(BIN)/pytest -n $(JOBS) --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
