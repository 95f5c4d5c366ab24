# Two commands matter: `make run` and `make test`. `make` alone lists them all.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run setup setup-dev test format lint types imports dependencies policies verifier verifier-tests tests reference bench clean

BIN := .venv/bin
OPA := .tools/opa
FONT := .tools/report-font
REGO := $(wildcard rego/rules rego/lib rego/nodes rego/approvals)
# Percent of the lines of all rules that their tests reach.
COVERAGE := 95
# How many processes the tests are spread over, whole files each: half of them wait for servers at any moment.
TEST_PROCESSES ?= 2
# Where Go's own archive is unpacked, whether or not a profile says so; distributions turn the fetching of newer Go off.
GO := PATH="$$PATH:/usr/local/go/bin" GOTOOLCHAIN="$${GOTOOLCHAIN:-auto}"

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s%s\n", $$1, $$2 }' Makefile

run: setup ## Start Sluice with everything it needs, for trying: database, OPA, two stand-in engines
	@exec $(BIN)/sluice serve

setup: .venv/requirements.txt.done .tools/opa.done ## Install what running needs: .venv, OPA, a font for the reports
	@$(MAKE) -s $(FONT).done || echo '    (everything but the reports works without it)' >&2

setup-dev: .venv/requirements-dev.txt.done .tools/opa.done ## Install what testing needs, too
	@SLUICE_FONT= $(MAKE) -s $(FONT).done

test: format lint types imports dependencies policies verifier-tests tests ## Check everything; nothing else decides whether a change is good

format: setup-dev ## Is the code formatted? (`.venv/bin/ruff format` does it)
	@echo '==> format' && $(BIN)/ruff format --check .

lint: setup-dev ## House rules that a linter can hold
	@echo '==> lint' && $(BIN)/ruff check .

types: setup-dev ## mypy, strict
	@echo '==> types' && $(BIN)/mypy

imports: setup-dev ## The arrows between rooms point down only
	@echo '==> imports' && $(BIN)/lint-imports --no-cache --no-logo

dependencies: setup-dev ## Every dependency is declared and used
	@echo '==> dependencies' && $(BIN)/deptry .

policies: .tools/opa.done ## Rules: format, strict check against the schemas, tests, coverage
	@echo '==> policies'
	@$(OPA) fmt --fail --list $(REGO)
	@$(OPA) check --strict --schema rego/schemas $(REGO)
	@$(OPA) test $(REGO)
	@$(OPA) test --coverage --threshold $(COVERAGE) $(REGO) > /dev/null

verifier: .tools/verifier.done ## Build .tools/sluice-verify, which checks the log and reports without Sluice; needs Go

verifier-tests: verifier ## Its format, go vet, its own tests
	@echo '==> verifier-tests'
	@cd verifier && unformatted=$$($(GO) gofmt -l .) && [ -z "$$unformatted" ] || { echo "gofmt -w $$unformatted"; exit 1; }
	@cd verifier && $(GO) go vet ./... && $(GO) go test ./...

# Many tests start whole servers, and on a busy machine one of thousands is late. A few that fail beside others must pass by themselves.
LATE_AT_MOST := 5
FAILED := .pytest_cache/v/cache/lastfailed
tests: setup-dev verifier ## pytest: unit, integration on real OPA and PostgreSQL, faults
	@echo '==> tests' && $(BIN)/pytest --cache-clear -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder -m 'not alone' || { \
	  [ $$? -eq 1 ] && [ "$$(grep -c :: $(FAILED))" -le $(LATE_AT_MOST) ] && \
	  echo '==> by themselves: what failed beside others' && cat $(FAILED) && $(BIN)/pytest --last-failed --last-failed-no-failures none --maxfail 1; }
	@$(BIN)/pytest -m alone

reference: setup ## Write docs/reference from the code
	@$(BIN)/python -m docs.generate

bench: setup-dev ## Measure the budgets beside OPA alone and a bare route
	@$(BIN)/python -m bench

clean: ## Remove what set-up and tests made; var/ (data and keys) stays
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find app tests bench migrations -name __pycache__ -type d -prune -exec rm -rf {} +

# Scripts in .venv hold absolute paths: a checkout that was moved needs a new one.
MOVED := $(if $(filter $(CURDIR),$(shell cat .venv/made-in 2>/dev/null)),,FORCE)

.venv/%.done: % pyproject.toml setup/python.sh $(MOVED)
	@setup/python.sh $*

.tools/opa.done: setup/opa.sh $(if $(wildcard $(OPA)),,FORCE)
	@setup/opa.sh

$(FONT).done: setup/font.sh $(if $(wildcard $(FONT).ttf),,FORCE)
	@setup/font.sh

.tools/verifier.done: setup/verifier.sh $(wildcard verifier/*.go verifier/go.*) $(if $(wildcard .tools/sluice-verify),,FORCE)
	@setup/verifier.sh

FORCE:
