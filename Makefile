# `make help` lists the targets. They install what they need; a bare machine
# needs only Go, git, make and root.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export KO_CONFIG_PATH := $(CURDIR)/ko.yaml
# Clones in other folders share what is compiled.
export GOFLAGS ?= -trimpath
CLUSTER := $(CURDIR)/bin/cluster
# Number of simulated nodes.
NODES ?= 10

.PHONY: help demo chapter demo-record up down status kubeconfig apply install uninstall release test-release test test-unit test-models test-rates test-cost test-cluster test-alone test-controlplane test-e2e test-upgrade test-chaos chaos fuzz soak bench mutations generate verify vuln lint cluster modules judge-record site

help: ## List the targets.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-17s %s\n", $$1, $$2}'

demo: chapter up ## Show releases, Knative Services, the judge, protection and permissions on the embedded cluster; CHAPTER=protection shows one part.
	@$(CLUSTER) exec -- go run ./test/demo -chapter "$(CHAPTER)" -record "$(CAST)"

# Checks CHAPTER before `up`, which takes minutes.
chapter:
	@[[ -z "$(CHAPTER)" ]] || go run ./test/demo -check -chapter "$(CHAPTER)"

# One chapter of each part of Breakwater. The recording lasts about eight minutes.
demo-record: ## Record the demo again for the README: docs/recordings; ten minutes.
	@$(MAKE) --no-print-directory demo CHAPTER='judge protection permissions' CAST=docs/recordings/demo.cast

# INSTALLED=true, which hack/test.sh sets, says that this version is installed already.
up: cluster modules ## Start the embedded cluster and install Breakwater on it.
	@$(CLUSTER) up --nodes $(NODES)
	@[[ -n "$(INSTALLED)" ]] || $(CLUSTER) exec -- $(MAKE) --no-print-directory install

down: cluster ## Remove the embedded cluster; keep its cache.
	@$(CLUSTER) down

status: cluster ## Print the processes and log files of the embedded cluster.
	@$(CLUSTER) status

kubeconfig: cluster ## Print the path of a kubeconfig for the embedded cluster.
	@$(CLUSTER) kubeconfig

PARTS ?= config/core config/judge config/protection config/permission

apply: ## Install Breakwater on the cluster of KUBECONFIG (set KO_DOCKER_REPO; OVERLAY=kafka, strict, ...).
	@OVERLAY=$(OVERLAY) REPLACE_CRDS=$(REPLACE_CRDS) hack/apply.sh $(PARTS)

uninstall: ## Remove Breakwater from the cluster of KUBECONFIG (ARGS=--yes, '--yes --resume' or '--yes --part NAME'; without --yes, show what it would remove).
	@hack/uninstall.sh $(ARGS)

# Runs only on a clean working tree. COSIGN_KEY names the signing key.
release: ## Push images to KO_DOCKER_REPO and write the files of release VERSION=v0.1.0 to dist.
	@go -C tools/release run . -root $(CURDIR) -version "$(VERSION)"

install: apply
	@hack/wait-ready.sh

# Targets that are joined by + run at the same time. test-cluster compares the state of this
# machine before and after, so no target beside it may start a cluster; verify writes files.
test: ## Lint, verify, unit, release, end-to-end, chaos and upgrade tests, with a summary.
	@hack/test.sh lint+test-alone verify test-unit test-rates+test-cost test-models+test-release+test-cluster test-controlplane test-e2e test-chaos test-upgrade

# Tests of some packages mostly wait, for example for a rate limit, so more packages are tested at
# once than there are cores. The longest package begins first. test/property and judge/evaluate, whose code
# starts no goroutines, run in test-models. SQLite and its C library are C code that was translated to Go: with the race detector they
# would be slower, and the code that calls them has it.
test-unit: ## Unit tests, with the race detector.
	@hack/packages.sh
	@packages=$$(go list ./... | grep -vE '/(test/property|judge/evaluate)$$'); \
	  hack/gotest.sh unit -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false -p 4 ./permission/centre $$packages
	@cd test/cluster && ../../hack/gotest.sh unit-cluster ./...
	@cd test/overlays && ../../hack/gotest.sh unit-overlays ./...
	@cd test/gitops && ../../hack/gotest.sh unit-gitops ./...
	@cd test/shop && ../../hack/gotest.sh unit-shop ./...
	@cd tools/site && ../../hack/gotest.sh unit-site -count 1 ./...

# Most run in one goroutine, so the race detector would only make them slower.
test-models: ## Simulations and models of decisions, without the race detector.
	@hack/gotest.sh models ./test/property ./judge/evaluate
	@hack/gotest.sh models-decisions -run 'NoGrantOutlives|BrokerWasUnreachable|NeverExceed' ./permission/centre/lifecycle ./reconciler/change/changepod ./reconciler/protection/budget

# One package at a time: others would take the CPU that rates and loads need. The first package
# mostly waits; test/cost ends before the others begin.
test-rates: ## Unit tests of rates and loads, without the race detector.
	@hack/gotest.sh rates -p 1 -run 'Thousand|Killed|Replicas|Flood|Backlogs' ./permission/centre ./permission/centre/lifecycle ./permission/initaction/server ./functions/callback

# Requests increase on a busy machine, so of the other tests only test-rates runs beside it.
test-cost: cluster ## Count the requests of a release on a control plane; one minute.
	@$(CLUSTER) build collector >/dev/null
	@BREAKWATER_CLUSTER_TOOL=$(CLUSTER) hack/gotest.sh cost -tags controlplane -timeout 10m -count 1 ./test/cost

test-release: ## Make a release twice, and render the Helm chart.
	@cd tools/release && ../../hack/gotest.sh release -timeout 30m -count 1 ./...

test-cluster: ## Test the cluster tool on a second cluster: `down` removes everything, `up` recovers from a kill.
	@cd test/cluster && ../../hack/gotest.sh cluster -tags cluster -timeout 60m -count 1 .

test-alone: cluster modules ## Install protection and permission on a second cluster without Knative, and run six of their tests.
	@CLUSTER=$(CLUSTER) hack/alone.sh

# Waits take most of the time, so more tests run in parallel than there are cores. Packages begin in this
# order, a long one first and short ones last. The controllers of other projects are built first: a build
# beside the tests would slow them down.
# The time limit includes the first build of Kubernetes.
test-controlplane: cluster ## Tests on a control plane without containers, with the race detector; no root.
	@for family in rollouts kruise; do echo "==> build $$family"; $(CLUSTER) build $$family >/dev/null || exit 1; done
	@BREAKWATER_CLUSTER_TOOL=$(CLUSTER) hack/gotest.sh controlplane -race -tags controlplane -p 2 -parallel 6 -timeout 40m -count 1 ./test/change ./test/uninstall ./test/e2e/protection ./test/load ./test/attack ./test/openkruise

# Two packages run at once: those of protection and permission, one after the other, beside that of
# change. They mostly wait, each disturbs only its own part of Breakwater, and each has its own
# namespaces.
test-e2e: up ## End-to-end tests on the embedded cluster.
	@$(CLUSTER) build kn >/dev/null
	@GOTESTSUM_FORMAT=testname $(CLUSTER) exec -- hack/gotest.sh e2e -tags e2e -p 2 -timeout 40m -count 1 ./test/e2e ./test/e2e/protection ./test/e2e/permission

# It installs an earlier version first, so nothing else may use the cluster. UPGRADE_FROM=commit replaces test/upgrade/from.
test-upgrade: up modules ## Install an earlier version, and upgrade while releases, a drain and applications are in progress; 4 minutes.
	@CLUSTER=$(CLUSTER) UPGRADE_FROM=$(UPGRADE_FROM) hack/upgrade.sh

# A pinned seed, so that CI repeats the same faults. With this one the server is killed first, and the
# first releases have every kind of ending, so timeouts expire while the other components are killed.
test-chaos: up ## Kill every component and pause a third of them during releases and deletions; two to three minutes.
	@CHAOS_SEED=$${CHAOS_SEED:-2388073} GOTESTSUM_FORMAT=standard-verbose $(CLUSTER) exec -- hack/gotest.sh chaos -tags e2e -timeout 12m -count 1 -v -run 'TestEveryRelease' ./test/chaos

chaos: up ## Like test-chaos, for 20 minutes, with 20 pods a release and a random seed. CHAOS_SEED repeats a run.
	@CHAOS_DURATION=20m CHAOS_RELEASES=30 CHAOS_PODS=20 CHAOS_DEPLOYMENTS=6 CHAOS_LIMIT=40m CHAOS_ROUNDS=0 CHAOS_INTERVAL=5s CHAOS_KILLS_PER_TARGET=0 CHAOS_SERVER_KILLS=4 GOTESTSUM_FORMAT=standard-verbose \
	  $(CLUSTER) exec -- hack/gotest.sh chaos -tags e2e -timeout 45m -count 1 -v -run 'TestEveryRelease' ./test/chaos

fuzz: ## Run each fuzz target for FUZZTIME (30s); stop at the first failure.
	@hack/fuzz.sh

# Nightly: each fault is built into its package, and the tests of the package have to fail.
mutations: ## Inject faults into decisions and verify that tests notice each; twenty minutes.
	@go run ./test/mutation

# A million steps of the models of grants and of budgets; then 50 releases of 50 pods, one
# of 1000, and releases of 50 Knative Services.
soak: up ## Long property and load runs (nightly), an hour or two.
	@go test -count 1 -timeout 3h -v -run TestNoGrantOutlivesItsPod ./permission/centre/lifecycle -rapid.checks 20000 -rapid.steps 50
	@go test -count 1 -timeout 3h -v -run TestDeletionsNeverExceedABudget ./reconciler/protection/budget -rapid.checks 10000 -rapid.steps 100
	@LOAD_RELEASES=50 LOAD_PODS=50 LOAD_LARGE=1000 go test -count 1 -timeout 3h -v -tags controlplane ./test/load
	@KNATIVE_SERVICES=50 go test -count 1 -timeout 60m -v -tags controlplane -run TestManyKnativeServices ./test/change
	@$(CLUSTER) exec -- go test -count 1 -timeout 60m -v -tags e2e,soak -run TestFiftyKnativeServices ./test/e2e

# Runs the binary without `go test`, so that an interrupt reaches it and it
# cleans up. The number of simulated nodes is restored at the end.
# BENCH is a pattern of tests; all of them take about an hour and a half.
bench: up ## Run the benchmarks and write docs/performance.md; BENCH=quick takes five minutes.
	@go test -c -tags bench -o bin/perf.test ./test/perf
	@$(CLUSTER) nodes 100; trap '$(CLUSTER) nodes $(NODES)' EXIT; cd test/perf; \
	  export AUDIT_LOG=$$($(CLUSTER) status | awk '/^audit log/ {print $$3}'); \
	  case "$${BENCH:-.}" in quick) export BENCH_QUICK=true; run='Releases|Protection|Permission';; *) run="$${BENCH:-.}";; esac; \
	  $(CLUSTER) exec -- ../../bin/perf.test -test.v -test.timeout 3h -test.run "$$run"

# About 25 minutes and one CPU; see test/shop/README.md.
judge-record: ## Record releases of the sample shop again, for the judge's figures.
	@cd test/shop && go run ./cmd/record -run a -half 0 -seed $${SEED_A:-1125} -out ../recording/testdata/tuning
	@cd test/shop && go run ./cmd/record -run b -half 1 -seed $${SEED_B:-2411} -out ../recording/testdata/tuning-b
	@cd test/shop && go run ./cmd/record -run c -half 1 -seed $${SEED_C:-2611} -out ../recording/testdata/test

generate: ## Write generated code and manifests.
	@hack/generate.sh

site: ## Make a site of the pages, with search: dist/site/index.html.
	@go -C tools/site run . -root $(CURDIR) -out $(CURDIR)/dist/site

# Needs https://vuln.go.dev.
vuln: ## Look for known vulnerabilities in the modules of the product.
	@go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

verify: ## Write generated code, manifests, pages and go.mod again; fail if that changed a file, or if the tests of the pages fail.
	@hack/verify.sh

lint: ## Lint Go and shell.
	@hack/lint.sh

# The cluster's network namespace cannot reach a module proxy.
modules:
	@go mod download && go -C tools/test mod download && go -C test/shop mod download

cluster:
	@mkdir -p bin && go -C test/cluster build -o $(CLUSTER) .
