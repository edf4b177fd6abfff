# Two commands are enough: `make up` runs Assay, `make test` checks it. Both install what they need into .venv first.

.DEFAULT_GOAL := help
.PHONY: help up test check lint format types imports openapi-check openapi unit contract integration faults-small faults soak local-model bench quality mutants lock setup dev clean

BIN := .venv/bin
PYTEST := $(BIN)/pytest
T ?=

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: setup ## Run Assay here: API, worker, Redis and a judge; Ctrl-C ends it all
	@exec $(BIN)/assay up

test: check unit contract integration faults-small local-model ## Everything that CI runs

check: lint types imports openapi-check ## Style, types, import directions and the OpenAPI file

lint: dev ## Ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: dev ## Let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: dev ## mypy --strict on app and worker
	$(BIN)/mypy

imports: dev ## Imports point one way
	$(BIN)/lint-imports --no-cache

openapi: dev ## Write openapi/openapi.json from the code
	$(BIN)/python -m app.api.openapi > openapi/openapi.json

openapi-check: dev ## Fail when openapi/openapi.json is not what the code says
	$(BIN)/python -m app.api.openapi | diff -u openapi/openapi.json -

unit: dev ## Unit tests, with 100 % branch coverage of domain, judge and scorers
	$(PYTEST) tests/unit --disable-socket --allow-unix-socket --cov --cov-report=term $(T)

contract: dev ## The HTTP contract: any bytes in, problem+json out
	$(PYTEST) tests/contract $(T)

integration: dev ## Real processes, a real Redis, a stub judge
	$(PYTEST) tests/integration -m "not local_model" $(T)

# Faults mostly wait for leases and outages to end, so that three at once fit on two cores.
faults-small: dev ## Kills, cuts and floods, in small numbers
	$(PYTEST) tests/faults -n 3 --dist worksteal $(T)

faults: dev ## The same in full numbers, on Valkey and on Redis; half an hour
	FAULTS_SCALE=full $(PYTEST) tests/faults $(T)

soak: dev ## Half an hour of mixed load under random faults; ARGS="--minutes 5 --seed 7" for another
	$(BIN)/python -m tests.faults.soak $(ARGS)

local-model: dev ## One run end to end with the real local model
	$(PYTEST) tests/integration -m local_model $(T)

bench: dev ## Throughput and overhead on this machine, with a stub judge
	$(BIN)/python -m bench.inline
	$(BIN)/python -m bench.worker
	$(BIN)/python -m bench.flood
	$(BIN)/python -m bench.sharing

quality: dev ## How well a judge judges labelled texts: DATA=folder MODEL=provider/name ARGS="--strategy labels"
	$(BIN)/python -m bench.quality --data "$(DATA)" --model "$(MODEL)" $(ARGS)

mutants: ## Change formulas, parser and segmenter in 3,000 ways and count how many the tests notice; half an hour
	@scripts/setup mutants
	$(BIN)/python scripts/mutants

lock: dev ## Write the lock files anew; `make lock ARGS=--upgrade` takes newer versions
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/lock $(ARGS)

setup:
	@scripts/setup up

dev:
	@scripts/setup dev

clean: ## Remove the environment and caches; data/ stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
