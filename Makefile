# Every target works from a fresh clone: what it needs, it makes first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development
MODEL := $(VENV)/.model
CHROMIUM := $(VENV)/.chromium
# Where the collections of questions are that quality is measured on. They are not part of this project.
COLLECTIONS ?= ../shared/data
# Where they are kept as books, so that they are embedded only once.
MEASURED ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bythebook/measured

# One more than there are cores: many tests wait for a deadline, a server or a browser.
AT_ONCE = $(shell $(BIN)/python -c "import os; print((os.cpu_count() or 1) + 1)")

.PHONY: demo test check golden fmt lint types bench chaos quality evals lock clean

demo: $(RUNTIME) $(MODEL)
	@$(BIN)/bythebook demo

test: $(DEVELOPMENT) $(MODEL) $(CHROMIUM)
	$(BIN)/python -m pytest --numprocesses $(AT_ONCE) --collections="$(COLLECTIONS)"

check: $(DEVELOPMENT) $(MODEL) $(CHROMIUM)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) --no-print-directory golden
	$(BIN)/python -m pytest --numprocesses $(AT_ONCE) --collections="$(COLLECTIONS)"

# The manual is a book like any other: what readers ask of it must be answered after every edit.
golden: $(RUNTIME) $(MODEL)
	@$(BIN)/bythebook demo >/dev/null
	$(BIN)/bythebook eval golden docs/questions.yaml --data-dir .bythebook/demo

fmt: $(DEVELOPMENT)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DEVELOPMENT) $(MODEL)
	$(BIN)/python -m bench

# At full size, an hour or so. What was counted and timed is printed as it comes.
chaos: $(DEVELOPMENT) $(MODEL) $(CHROMIUM)
	$(BIN)/python -m pytest --full-size --capture=no --verbose --collections="$(COLLECTIONS)" tests/chaos \
		tests/upstream/test_over_sockets.py tests/server/test_hostile_input.py tests/browser/test_attacks.py \
		tests/browser/test_poison.py tests/sources/test_capped.py tests/index/test_qdrant_generations.py

# Every figure beside its floor and its goal; fails below a floor.
quality: $(RUNTIME) $(MODEL)
	$(BIN)/bythebook eval quality "$(COLLECTIONS)" --data-dir "$(MEASURED)" --html "$(MEASURED)/quality.html"

# The same on a hundred questions of each kind: a look in a few minutes.
evals: $(RUNTIME) $(MODEL)
	$(BIN)/bythebook eval quality "$(COLLECTIONS)" --data-dir "$(MEASURED)" --limit 100

# Needs uv; writes no index address. Run it after changing dependencies in pyproject.toml.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		pyproject.toml --group build --output-file requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		pyproject.toml --group build --group dev --output-file requirements-dev.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		pyproject.toml --group build --extra cohere --extra postgres --extra qdrant --extra traces \
		--constraint requirements.lock \
		--output-file requirements-server.lock

clean:
	rm -rf $(VENV) .bythebook .mypy_cache .ruff_cache .hypothesis

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): $(VENV)/pyvenv.cfg requirements.lock pyproject.toml
	$(PIP) install --require-hashes --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEVELOPMENT): $(RUNTIME) requirements-dev.lock
	$(PIP) install --require-hashes --requirement requirements-dev.lock
	@touch $@

# The tests drive the system's own browser. Where there is none and it may be installed, it is; else they are skipped.
$(CHROMIUM): $(VENV)/pyvenv.cfg
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get install --yes --quiet --quiet chromium; } || \
		{ [ "$$(id -u)" = 0 ] && apt-get update --quiet --quiet && apt-get install --yes --quiet --quiet chromium; } || \
		echo "There is no Chromium here: install it, or the tests in a browser are skipped."
	@touch $@

$(MODEL): $(RUNTIME)
	$(BIN)/bythebook model download
	@touch $@
