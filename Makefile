# Two commands for everybody: `make demo` and `make test`. Each installs what is missing, once.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
RUN := $(VENV)/bin/python
# On a terminal pip shows its bars; elsewhere it says what goes wrong and no more.
PIP := $(RUN) -m pip --disable-pip-version-check install $(if $(MAKE_TERMOUT),,--quiet) --constraint constraints.txt
CORE := $(VENV)/.molgraph-core
DEV := $(VENV)/.molgraph-dev
WORKERS ?= 2
# One thread a worker: two workers of two threads each would wait for each other. A file goes to one of them, which makes
# what its tests share once; and tests as pytest rewrites them are kept, which spares each worker seconds.
PYTEST := OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} PYTHONDONTWRITEBYTECODE= $(RUN) -m pytest -q -n $(WORKERS) \
	--dist loadfile $(ARGS)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check format speed boards systems systems-check clean
.DELETE_ON_ERROR:

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(CORE)  ## set up, then train, compare, predict and report on 1,017 measured molecules
	@$(RUN) -m molgraph demo --out demo

test: $(DEV)  ## set up, then run the fast tests, examples in docstrings included
	@$(PYTEST) -m "not slow"

test-all: $(DEV)  ## set up, then run every test
	@$(PYTEST)

check: $(DEV)  ## format, lint, types, tests: what has to pass before a change lands
	@$(RUN) -m ruff format --check .
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy
	@$(PYTEST)

format: $(DEV)  ## put the code into the house's shape
	@$(RUN) -m ruff format .
	@$(RUN) -m ruff check --fix .

speed: $(DEV)  ## measure molgraph and its peers side by side; write docs/speed.md
	$(RUN) pipelines/speed/run.py

boards: $(DEV)  ## write docs/boards/index.html, the leaderboard and picture from stored records and the runs in bench/
	$(RUN) pipelines/boards/run.py

systems-check: $(DEV)  ## run the checks of systems [ID=maml,acn] [WAVE=craft]; write pipelines/systems.csv, docs/systems.md
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -q -n $(WORKERS) --dist loadfile tests/systems --system "$(ID)" --wave "$(WAVE)" --results pipelines/systems.csv $(ARGS); \
		code=$$?; $(RUN) -m molgraph systems --markdown > docs/systems.md; $(RUN) -m molgraph systems | tail -1; exit $$code

systems: $(CORE)  ## write docs/systems.md from the table, the registry and the results
	$(RUN) -m molgraph systems --markdown > docs/systems.md

clean:  ## remove what was made, the environment included
	rm -rf $(VENV) demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(RUN):
	@test -n "$(PYTHON)" || { echo "no python3 was found: install Python 3.11 or name it: make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than 3.11: name another one: make PYTHON=python3.11"; exit 1; }
	@echo "making an environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml constraints.txt | $(RUN)
	@echo "installing molgraph and what it stands on: some minutes, once"
	@$(PIP) torch
	@$(PIP) --editable .
	@touch $@

$(DEV): $(CORE)
	@echo "installing what the tests and peers need, once"
	@$(PIP) --editable '.[bench,generate,peers,notebooks,ray,ase,serve,dev]'
	@touch $@
