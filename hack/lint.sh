#!/usr/bin/env bash
# Lints Go with golangci-lint and shell with bash -n.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p bin
[[ -x bin/golangci-lint ]] || go build -C tools/lint -o "$PWD/bin/" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
for script in hack/*.sh .ci/run cmd/kubectl-breakwater/kubectl_complete-breakwater; do bash -n "$script"; done
bin/golangci-lint run --build-tags e2e,bench,controlplane ./...
(cd test/cluster && ../../bin/golangci-lint run --config ../../.golangci.yaml --build-tags cluster ./...)
(cd test/overlays && ../../bin/golangci-lint run --config ../../.golangci.yaml ./...)
(cd tools/release && ../../bin/golangci-lint run --config ../../.golangci.yaml ./...)
(cd tools/site && ../../bin/golangci-lint run --config ../../.golangci.yaml ./...)
(cd test/gitops && ../../bin/golangci-lint run --config ../../.golangci.yaml ./...)
(cd test/shop && ../../bin/golangci-lint run --config ../../.golangci.yaml ./...)
