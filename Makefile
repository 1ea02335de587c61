# Every target works from a fresh clone: it first builds what it depends on.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development
MODEL := $(VENV)/.model
CHROMIUM := $(VENV)/.chromium
# The datasets that `make quality` evaluates. They are not part of this project.
COLLECTIONS ?= ../shared/data
# Indexes of the datasets, kept between runs so that each dataset is embedded only once.
MEASURED ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bythebook/measured

# Test processes: one more than there are cores, because many tests wait for a deadline, a server or a browser.
JOBS = $(shell $(BIN)/python -c "import os; print((os.cpu_count() or 1) + 1)")

.PHONY: demo test fast check golden fmt browser bench chaos quality evals docs release lock clean

demo: $(RUNTIME) $(MODEL)
	@$(BIN)/bythebook demo

test: $(DEVELOPMENT) $(MODEL) browser
	$(BIN)/python -m pytest --numprocesses $(JOBS) --collections="$(COLLECTIONS)"

# The tests that need no browser, PostgreSQL, model or index: under a minute.
fast: $(DEVELOPMENT) $(MODEL)
	$(BIN)/python -m pytest --numprocesses $(JOBS) -m fast

check: $(DEVELOPMENT) $(MODEL) browser
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) --no-print-directory golden
	$(BIN)/python -m pytest --numprocesses $(JOBS) --collections="$(COLLECTIONS)"

# Golden questions of the manual: each must still be answered after an edit.
golden: $(RUNTIME) $(MODEL)
	@$(BIN)/bythebook demo >/dev/null
	$(BIN)/bythebook eval golden docs/questions.yaml --data-dir .bythebook/demo

fmt: $(DEVELOPMENT)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DEVELOPMENT) $(MODEL)
	$(BIN)/python -m bench

# The chaos tests at full size: about an hour. Counts and times are printed while they run.
chaos: $(DEVELOPMENT) $(MODEL) browser
	$(BIN)/python -m pytest --full-size --capture=no --verbose --collections="$(COLLECTIONS)" tests/chaos tests/server/test_http_fuzz.py \
		tests/test_growth.py tests/upstream/test_over_sockets.py tests/server/test_hostile_input.py tests/browser/test_attacks.py \
		tests/browser/test_poison.py tests/sources/readers/test_sandbox.py tests/index/test_qdrant_generations.py

# Every quality metric with its floor and its goal; fails below a floor.
quality: $(RUNTIME) $(MODEL)
	$(BIN)/python -m bench.quality "$(COLLECTIONS)" --data-dir "$(MEASURED)" --html "$(MEASURED)/quality.html"

# The same with a hundred questions of each kind: a few minutes.
evals: $(RUNTIME) $(MODEL)
	$(BIN)/python -m bench.quality "$(COLLECTIONS)" --data-dir "$(MEASURED)" --limit 100

# Needs uv. The lock files name no package index. Run it after changing dependencies in pyproject.toml.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		pyproject.toml --group build --output-file requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		pyproject.toml --group build --group dev --output-file requirements-dev.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		pyproject.toml --group build --extra cohere --extra postgres --extra qdrant --extra traces \
		--constraint requirements.lock \
		--output-file requirements-server.lock

# The manual as a site in `site/`. A broken link or a page without a place in the navigation is an error.
docs: $(DEVELOPMENT)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file website/mkdocs.yml

# Builds the distributions, installs the wheel in an empty environment, and asks it a question there.
release: $(DEVELOPMENT)
	@test -z "$(VERSION)" || grep -q '^version = "$(VERSION)"$$' pyproject.toml || \
		{ echo "pyproject.toml has another version than $(VERSION)."; exit 1; }
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	rm -rf $(VENV)/release && $(PYTHON) -m venv $(VENV)/release
	$(VENV)/release/bin/python -m pip --quiet --disable-pip-version-check install dist/*.whl
	cd $(VENV)/release && bin/bythebook --version && bin/bythebook demo --data-dir book

clean:
	rm -rf $(VENV) .bythebook dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): $(VENV)/pyvenv.cfg requirements.lock pyproject.toml
	$(PIP) install --require-hashes --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEVELOPMENT): $(RUNTIME) requirements-dev.lock
	$(PIP) install --require-hashes --requirement requirements-dev.lock
	@touch $@

# The browser tests use the Chromium of the system. As root it is installed with apt-get if it is missing; without it
# those tests are skipped.
browser: $(CHROMIUM)

$(CHROMIUM): $(VENV)/pyvenv.cfg
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get install --yes --quiet --quiet chromium; } || \
		{ [ "$$(id -u)" = 0 ] && apt-get update --quiet --quiet && apt-get install --yes --quiet --quiet chromium; } || \
		echo "Chromium is not installed: the browser tests will be skipped."
	@touch $@

$(MODEL): $(RUNTIME)
	$(BIN)/bythebook model download
	@touch $@
