#!/usr/bin/env bash
# Runs each fuzz target of the module for FUZZTIME, one after the other, and prints its
# number of executions. Arguments select packages (default ./...). It stops at the first
# failure. The input is then in testdata/fuzz of the package, and `go test` fails with it.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A failure of go list ends the script here; in a substitution below it would be lost.
packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}} {{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}{{end}}' "${@:-./...}")
targets=0
while IFS=' ' read -r package dir tests; do
  [[ -n $package ]] || continue
  # grep fails if a package has no fuzz target.
  # shellcheck disable=SC2086 # a list of files
  names=$(cd "$dir" && grep -hoE '^func Fuzz[A-Za-z0-9_]*' $tests | awk '{print $2}' || true)
  for name in $names; do
    targets=$((targets + 1))
    if ! go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 2s -parallel "${FUZZ_PARALLEL:-2}" "$package" >"$log" 2>&1; then
      cat "$log"
      echo "$package $name failed; the input is in $dir/testdata/fuzz/$name" >&2
      exit 1
    fi
    # go test reports executions every 3 s.
    executions=$(grep -oE 'execs: [0-9]+' "$log" | tail -1) || executions="execs: not reported"
    printf '%-44s %-28s %s\n' "${package#github.com/breakwater-dev/breakwater/}" "$name" "$executions"
  done
done <<<"$packages"
echo "$targets fuzz targets"
