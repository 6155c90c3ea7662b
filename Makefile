# The vocabulary of people and CI. Every target sets up what it needs; a second run is quick.
SHELL := /bin/sh
ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
export PATH := $(ROOT)/.tools/node/bin:$(ROOT)/node_modules/.bin:$(PATH)
NODE := node --disable-warning=ExperimentalWarning

.DEFAULT_GOAL := help
.PHONY: help up down cluster images install demo test test-unit test-repo test-integration test-harness test-fuzz test-contract test-e2e check generate verify fix golden schema chart bench setup setup-harness setup-cluster setup-test

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:
	@tools/bootstrap.sh packages
setup-harness: setup
	@tools/bootstrap.sh harness
setup-cluster: setup
	@tools/bootstrap.sh cluster
setup-test: setup
	@tools/bootstrap.sh test

up: setup-cluster ## run the main job on a fresh machine: cluster, images, chart, sample session (REPO=<url or path>)
	@$(NODE) tools/up.ts $(if $(REPO),--repo '$(REPO)')
down: setup ## remove what up made
	@$(NODE) tools/down.ts
cluster: setup-cluster ## only the cluster of up
	@$(NODE) tools/up.ts --until cluster
images: setup-cluster ## only the two images
	@$(NODE) tools/images.ts
install: setup-cluster ## cluster, images and chart
	@$(NODE) tools/up.ts --until install
demo: up ## the same as up

test: setup-test ## check, verify, then every test tier that this machine can run
	@$(NODE) tools/test.ts all
test-unit: setup ## tests beside the code
	@$(NODE) tools/test.ts unit
test-repo: setup ## tests of the tree: imports, generated files, chart, examples
	@$(NODE) tools/test.ts repo
test-integration: setup-test ## tests against a real API server and a real Postgres
	@$(NODE) tools/test.ts integration
test-harness: setup-harness ## tests with the real harness programs
	@$(NODE) tools/test.ts harness
test-fuzz: setup-test ## a fuzzer from PyPI against the public API
	@$(NODE) tools/test.ts fuzz
test-contract: setup-test ## the contract of a session on both harnesses, in containers of the sandbox image
	@$(NODE) tools/test.ts contract
test-e2e: setup-test ## tests on a whole one-node cluster
	@$(NODE) tools/test.ts e2e

check: setup ## format, lint, types, unit and repo tests
	@$(NODE) tools/test.ts check unit repo
generate: setup ## write every generated file
	@$(NODE) tools/generate.ts
verify: setup ## fail when a generated file is not what generate would write
	@$(NODE) tools/verify.ts
fix: setup ## format and lint with repair
	@biome check --write . && oxlint --fix
golden: setup ## rewrite golden files
	@$(NODE) tools/test.ts --update-golden unit repo
schema: setup ## rewrite the dump of the database schema
	@$(NODE) tools/dump-schema.ts
chart: setup-cluster ## lint and render the chart
	@$(NODE) tools/test.ts chart
bench: setup-cluster ## each published number beside its floor and a peer
	@$(NODE) tools/bench.ts
