# Everything happens in .venv, made on first use and kept up to date with pyproject.toml.
PYTHON ?= python3
BIN := .venv/bin
PIP := pip install --quiet --disable-pip-version-check
PYTEST := -m pytest -q
# A worker a core; tests/__init__.py gives each of them one thread and its own compiled kernels.
PARALLEL := -n auto --dist worksteal
export MPLBACKEND := Agg
export LTOCF_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: demo test quick bench faults kills states audit portable coverage reproduce oldest docs release check format clean
demo: .venv/installed
	$(BIN)/ltocf demo

test: check
	$(BIN)/python $(PYTEST) $(PARALLEL)

# Under three minutes on two cores.
quick: check
	$(BIN)/python $(PYTEST) $(PARALLEL) -m "not slow"

# Kills, full disks, two at once, damage and hostile input, many times: half an hour, from a seed.
# Its last line is one JSON object; WRITE=--write puts the counts into docs/reliability.md.
faults: .venv/installed-dev
	$(BIN)/python -m tests.faults --seed $(or $(SEED),0) --seconds $(or $(SECONDS),1800) $(WRITE)

# A service under load, killed twenty times, with readers and without: what it acknowledged is there.
kills: .venv/installed-dev
	LTOCF_KILLS=20 $(BIN)/python $(PYTEST) -s tests/service/test_kills.py

# Three thousand steps of a service's life against a dict, on SQLite and PostgreSQL: half an hour.
states: .venv/installed-dev
	LTOCF_STEPS=3000 $(BIN)/python $(PYTEST) -s tests/service/test_states.py

# Whether the installed versions suit each other; and, with a network, whether any has a known hole.
audit: .venv/installed-dev
	$(BIN)/pip check
	$(BIN)/python tools/audit.py

# What computes, where other instructions and other numbers of threads round otherwise. Each line is
# one kind of machine, an old one and one in between: what ATen (torch), OpenBLAS (NumPy, SciPy), MKL
# (torch) and Numba may use. `make test` has run the same tests on this one.
NUMERICAL := tests/graph tests/filters tests/ode tests/ranking tests/models tests/recommend/test_new_users.py tests/recommend/test_recommender.py
portable: .venv/installed-dev
	ATEN_CPU_CAPABILITY=default OPENBLAS_CORETYPE=Haswell OMP_NUM_THREADS=1 \
		NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=.pytest_cache/numba-generic \
		$(BIN)/python $(PYTEST) $(PARALLEL) $(NUMERICAL)
	ATEN_CPU_CAPABILITY=avx2 OPENBLAS_CORETYPE=Zen MKL_ENABLE_INSTRUCTIONS=AVX2 OMP_NUM_THREADS=2 \
		$(BIN)/python $(PYTEST) $(PARALLEL) $(NUMERICAL)

# The ratios of docs/results/ratios.json again; fails where one is worse by a fifth, or none is kept.
bench: .venv/installed-dev
	$(BIN)/python -m benchmarks.guard

# Every study of the paper on built-in data, pictures included: under four minutes on two cores.
reproduce: .venv/installed
	$(BIN)/ltocf reproduce all --data town --budget quick -o runs/paper-town

coverage: .venv/installed-dev
	$(BIN)/python $(PYTEST) $(PARALLEL) -m "not slow" --cov --cov-report=term:skip-covered

# The lower bounds of pyproject.toml, as constraints-oldest.txt pins them. That old libraries call
# what newer ones beside them deprecate is no fault of ours.
oldest: .venv-oldest/installed
	.venv-oldest/bin/python $(PYTEST) $(PARALLEL) -m "not slow" -W ignore::DeprecationWarning

# Into site/, searchable offline; a broken link or a public name without documentation fails.
docs: .venv/installed-dev
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --quiet --strict

# Into dist/, built twice to the same bytes, and tried from the wheel alone in an empty environment.
release: .venv/installed-dev
	$(BIN)/python tools/release.py

check: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ltocf needs Python 3.11 or later: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/$(PIP) -c constraints.txt -e .
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/$(PIP) -c constraints.txt -e '.[dev]'
	touch $@

.venv-oldest/installed: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/$(PIP) -c constraints-oldest.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv .venv-oldest build dist site src/*.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
