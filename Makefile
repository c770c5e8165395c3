# make help tells what there is. Everything happens in .venv and build/; nothing is installed elsewhere but Debian's
# packages, and those only where this user may.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Three for two cores: tests wait for processes and servers.
PYTEST_FLAGS ?= -n 3
CPP_FILES = $$(git ls-files '*.h' '*.cpp')

.DEFAULT_GOAL := help
.PHONY: help setup setup-test setup-check package build test check checks format lint types stubs man includes sanitize tidy wheel wheel-old docs budget model adapters formats soma ray ray-nodes peers-tests bench bench-quick bench-peers bench-cells demo faults soak mutations wait fuzz format clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup:  ## Debian's packages and .venv: what the build and the demo need
	@scripts/setup

setup-test:  ## the same, with servers, browser and packages of `make test`
	@scripts/setup test

setup-check:  ## the same, with the compilers and linters of `make check`
	@scripts/setup check

package: setup  ## library and extension in build/release; the package into .venv
	@scripts/timed package scripts/build

build: setup-test  ## the same, with native tests and benchmarks
	@scripts/build tests

test: build  ## native and Python tests
	ctest --test-dir build/release --output-on-failure -j $$(nproc) --timeout 300 | tail -n 12
	scripts/timed pytest python -m pytest $(PYTEST_FLAGS) tests/python --doctest-modules --pyargs penstock

check: test checks  ## everything that CI asks

checks: setup-check build lint types stubs includes sanitize tidy budget bench-quick wheel docs

wait:  ## how long the last builds and tests took, beside what they may take
	python scripts/check_wait.py

lint:  ## formatting of C++ and Python, ruff, long sentences of the pages
	clang-format --dry-run -Werror $(CPP_FILES)
	ruff format --check -q
	ruff check -q
	python scripts/check_prose.py

types:  ## mypy --strict over the package and what a user writes
	mypy

stubs:  ## _native.pyi is what the extension says
	scripts/stubs --check

man:  ## writes bindings/share again: the manual pages and completion scripts of a wheel
	scripts/share

includes:  ## folders are layers; modules import each other in no circle; benchmarks and scripts use public names
	python scripts/check_includes.py
	python scripts/check_imports.py
	python scripts/check_public_names.py

sanitize:  ## native tests under ASan + UBSan, core's under TSan
	scripts/sanitize dev
	scripts/sanitize tsan

tidy:  ## clang-tidy
	scripts/tidy

wheel: setup-test  ## a repaired wheel, used in an empty environment without torch
	scripts/wheel

wheel-old: setup-test  ## a wheel for systems as old as glibc 2.28, by Zig's compiler (about 10 minutes, 700 MB)
	scripts/wheel_old

docs: build  ## the documentation into site/
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict -q

bench: build  ## the figures and charts of docs/benchmarks.md, measured here; ONLY=text: one measurement
	python -m pip install -q --disable-pip-version-check -r benchmarks/numba.txt
	python benchmarks/run.py $(if $(ONLY),$(addprefix --only ,$(ONLY))) --json benchmark.json --markdown benchmark.md --charts docs/images

bench-quick: build  ## every measurement of `make bench` in its smallest form (about a minute): shows that it runs
	python -m pytest -m bench tests/python/project/test_benchmarks.py

bench-peers: build  ## other loaders and writers of text beside penstock, each in an environment of its own (100 minutes, 33 GB)
	python benchmarks/peers/run.py --json build/peers/results.json --markdown build/peers/results.md --charts docs/images
	python benchmarks/peers/text/run.py --json build/peers/text.json --markdown build/peers/text.md

bench-cells: build  ## scDataset, annbatch and SLAF beside dataset.cells (about 35 minutes, 16 GB)
	python benchmarks/peers/cells/run.py --json build/peers/cells.json --markdown build/peers/cells.md

budget: setup-check build  ## instructions of the hot paths against benchmarks/budget.json
	python benchmarks/budget.py build/release/benchmarks/penstock_budget

model: build  ## 20,000 random jobs beside a plain model of the documentation (about 12 minutes)
	python tests/model/run.py --random 20000 --shrink --json build/model.json

adapters: build  ## the adapters inside their frameworks, in an environment of its own (20 minutes, 3 GB); TORCHTITAN=path: torchtitan's main too
	python tests/adapters/run.py --json build/adapters/results.json --markdown build/adapters/results.md
	$(if $(TORCHTITAN),python tests/adapters/run.py --torchtitan $(TORCHTITAN) --markdown build/adapters/torchtitan.md)

formats: build  ## importers and exporters against the packages whose formats they are (about 10 minutes, 3 GB)
	python tests/formats/run.py --markdown build/formats/results.md

soma: build  ## SOMA experiments that tiledbsoma wrote, in an environment of its own (about 2 minutes, 700 MB)
	python tests/soma/run.py

ray: build  ## on a Ray cluster of two nodes here, killed workers and nodes, in an environment of its own (about 8 minutes, 1.2 GB)
	python tests/ray/run.py --json build/ray/results.json --markdown build/ray/results.md

ray-nodes: build  ## nodes of a Ray cluster here, killed at many moments of a shuffle, imports, writes and a read (about an hour; goes on where it stopped; NODES="--only shuffle": a part)
	python tests/ray/run.py --nodes --json build/ray/nodes.json --markdown build/ray/nodes.md $(NODES)

peers-tests: build  ## tests of other loaders of cells, over penstock: their packages' own, from their sources (5 minutes, and 15 to build penstock for Python 3.12)
	python tests/peers/run.py --markdown build/peers-tests/results.md

demo: package  ## train, kill, resume on other numbers of processes, compare every token and loss
	python examples/demo/run.py --out demo-output

faults: build  ## the table of docs/reliability.md: damaged and hostile files, killed writers, every call failing, real limits, servers that lie (about an hour)
	python tests/faults/run.py --writers --json build/faults.json --markdown build/faults.md
	python -W ignore tests/faults/h5ad.py --trials 2000
	python tests/faults/calls/every_k.py --json build/every_k.json --markdown build/every_k.md
	python tests/faults/crash/run.py --json build/crash.json --markdown build/crash.md
	python tests/faults/limits/run.py --json build/limits.json --markdown build/limits.md
	python -W ignore tests/faults/servers/run.py --json build/servers.json --markdown build/servers.md

soak: build  ## schedules of the engine's threads, full rate, loaders of every store, resumes, signals (2 hours; goes on where it stopped; ONLY=schedules, rate, loaders, resumes or signals)
	$(if $(filter-out schedules,$(ONLY)),,build/release/tests/native/schedules/penstock_schedules_tests --schedules=1000000 --small=50000 --json=build/schedules.json)
	$(if $(filter schedules,$(ONLY)),,python tests/soak/soak.py $(if $(ONLY),--only $(ONLY)))

mutations: build  ## 74 bugs, one after the other, each against its room's tests (about 50 minutes; goes on where it stopped)
	python tests/mutations/run.py

fuzz: setup-check package  ## a million inputs of each fuzz target (3 hours); FUZZ="--inputs 10000 --only index": fewer
	scripts/fuzz --json build/fuzz.json --markdown build/fuzz.md $(FUZZ)

format:  ## rewrites what lint would refuse
	clang-format -i $(CPP_FILES)
	ruff format -q
	ruff check -q --fix

clean:  ## removes what was built; .venv stays
	rm -rf build site demo-output dist
