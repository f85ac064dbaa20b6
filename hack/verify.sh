#!/usr/bin/env bash
# Fails if a file that hack/generate.sh writes differs from what it writes now, if `go mod tidy` changes the
# go.mod of the product, of test/overlays or of test/shop, or if a page does not pass its tests
# (test/docs). It compares the tree before and after, so it works with
# uncommitted changes.
set -euo pipefail
cd "$(dirname "$0")/.."
state() { git ls-files -co --exclude-standard -- . ':!test/cluster' | sort | xargs -d '\n' sha256sum 2>/dev/null || true; }
before=$(state)
hack/generate.sh
go mod tidy
go -C test/overlays mod tidy # its module replaces that of the product
go -C test/shop mod tidy
go test -count 1 ./test/docs
after=$(state)
if changed=$(diff <(echo "$before") <(echo "$after")); then
  echo "the files that make generate writes and go.mod are up to date"
else
  echo "generated files are out of date: run 'make generate' and 'go mod tidy', and commit:" >&2
  awk '/^[<>]/ {print "  " $3}' <<<"$changed" | sort -u >&2
  exit 1
fi
