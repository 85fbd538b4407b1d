# make quickstart   install into .venv, fetch the small models, print gcg/t3 at sample scale
# make test         install, fetch, run all tests but the slow ones
# make test-slow    these
# TORCH="torch==2.13.0" chooses the torch build, e.g. TORCH="torch==2.13.0+cu130"; PIP_ARGS goes to pip.
# JOBS is the number of processes that run tests.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv
PIP_ARGS ?=
JOBS ?= 2
BIN := $(VENV)/bin

.PHONY: quickstart test test-slow install models lint clean

quickstart: models
	$(BIN)/graphcontext table gcg/t3 scale=sample table.rows=untrained

test: models
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

test-slow: models
	$(BIN)/python -m pytest -m slow

install: $(VENV)/installed

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("graphcontext needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; make PYTHON=python3.11 …") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "python3 -m venv failed: install the package python3-venv (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }

$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@# torch first and by itself: its build is yours to choose
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) "$(TORCH)"
	@grep -v '^torch==' constraints.txt > $(VENV)/constraints.txt
	@echo "$(TORCH)" | grep -q '==' && echo "$(TORCH)" >> $(VENV)/constraints.txt || true
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c $(VENV)/constraints.txt -e '.[dev]'
	@touch $@

models: install # a second or two where they are ready
	@$(BIN)/graphcontext prepare

lint: install
	$(BIN)/ruff check src tests scripts
	$(BIN)/ruff format --check src tests scripts

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist
