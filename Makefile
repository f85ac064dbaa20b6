# `make help` lists the targets. Everything that is needed is installed by
# them: on a bare machine Go, git, make and root are enough.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export KO_CONFIG_PATH := $(CURDIR)/ko.yaml
CLUSTER := $(CURDIR)/bin/cluster
# Simulated nodes beside the real one.
NODES ?= 10

.PHONY: help demo up down status kubeconfig apply install test test-unit test-cluster test-alone test-e2e test-chaos chaos fuzz soak bench generate verify lint cluster modules

help: ## List the targets.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

demo: up ## Tell the story of a guarded release on the embedded cluster; leaves it up.
	@$(CLUSTER) exec -- go run ./test/demo

up: cluster modules ## Bring up the embedded cluster with Breakwater installed.
	@$(CLUSTER) up --nodes $(NODES)
	@$(CLUSTER) exec -- $(MAKE) --no-print-directory install

down: cluster ## Remove the embedded cluster; only caches stay.
	@$(CLUSTER) down

status: cluster ## Say what of the embedded cluster runs, and where its logs are.
	@$(CLUSTER) status

kubeconfig: cluster ## Print the path of a kubeconfig for the embedded cluster.
	@$(CLUSTER) kubeconfig

apply: ## Install Breakwater on the cluster of KUBECONFIG (set KO_DOCKER_REPO; OVERLAY=kafka, strict, ...).
	@OVERLAY=$(OVERLAY) hack/apply.sh config/core config/protection config/permission

install: apply
	@hack/wait-ready.sh

test: ## Lint, verify, unit, end-to-end and chaos tests, with a summary.
	@hack/test.sh lint verify test-unit test-cluster test-alone test-e2e test-chaos

test-unit: ## Unit tests, with the race detector.
	@hack/packages.sh
	@hack/gotest.sh unit -race ./...
	@hack/gotest.sh unit-load -run 'Thousand|Killed|Replicas' ./permission/centre
	@cd test/cluster && ../../hack/gotest.sh unit-cluster ./...
	@cd test/overlays && ../../hack/gotest.sh unit-overlays ./...

test-cluster: ## Prove on a second cluster that down leaves nothing and up survives a kill.
	@cd test/cluster && ../../hack/gotest.sh cluster -tags cluster -timeout 1h -count 1 .

test-alone: cluster modules ## Prove on a second cluster, without Knative, that protection and permission work alone.
	@CLUSTER=$(CLUSTER) hack/alone.sh

# One package after the other: a test of protection takes webhooks down that the
# others need.
test-e2e: up ## End-to-end tests on the embedded cluster.
	@$(CLUSTER) exec -- hack/gotest.sh e2e -tags e2e -p 1 -timeout 60m -count 1 ./test/e2e/...

test-chaos: up ## Release under random kills for two or three minutes; CHAOS_SEED repeats a run.
	@GOTESTSUM_FORMAT=standard-verbose $(CLUSTER) exec -- hack/gotest.sh chaos -tags e2e -timeout 12m -count 1 -v -run 'TestEveryRelease' ./test/chaos

chaos: up ## The same with 50 releases of 20 pods; about a quarter of an hour.
	@CHAOS_RELEASES=50 CHAOS_PODS=20 CHAOS_LANES=6 CHAOS_LIMIT=40m CHAOS_DEATHS=0 CHAOS_SERVER_DEATHS=4 GOTESTSUM_FORMAT=standard-verbose \
	  $(CLUSTER) exec -- hack/gotest.sh chaos -tags e2e -timeout 45m -count 1 -v -run 'TestEveryRelease' ./test/chaos

fuzz: ## Run each fuzz target for FUZZTIME (30s); stops at the first finding.
	@hack/fuzz.sh

soak: ## Run the model of a grant for a million random steps; about half an hour.
	@go test -count 1 -timeout 3h -v -run TestNoGrantOutlivesItsPod ./permission/centre/lifecycle -rapid.checks 20000 -rapid.steps 50

# The binary is run without `go test` around it, so that an interrupt reaches it
# and it tidies up; the simulated nodes go back to what they were.
bench: up ## Measure; results go to docs/performance.md.
	@go test -c -tags bench -o bin/perf.test ./test/perf
	@$(CLUSTER) nodes 100; trap '$(CLUSTER) nodes $(NODES)' EXIT; cd test/perf; \
	  AUDIT_LOG=$$($(CLUSTER) status | awk '/^audit log/ {print $$3}') \
	  $(CLUSTER) exec -- ../../bin/perf.test -test.v -test.timeout 45m -test.run "$${BENCH:-.}"

generate: ## Write generated code and manifests.
	@hack/generate.sh

verify: ## Fail when generated code, manifests, golden files or go.mod are not current.
	@hack/verify.sh

lint: ## Lint Go and shell.
	@hack/lint.sh

# Nothing inside the cluster's namespace reaches a module proxy.
modules:
	@go mod download && go -C tools/test mod download

cluster:
	@mkdir -p bin && go -C test/cluster build -o $(CLUSTER) .
