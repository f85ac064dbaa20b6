#!/usr/bin/env bash
# Runs go test with gotestsum, which prints a line per package, the failures and
# the counts. The first argument is the name of the report in bin/.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
name=$1
shift
mkdir -p "$root/bin"
[[ -x $root/bin/gotestsum ]] || go build -C "$root/tools/test" -o "$root/bin/" gotest.tools/gotestsum
exec "$root/bin/gotestsum" --format "${GOTESTSUM_FORMAT:-pkgname}" --format-hide-empty-pkg \
  --jsonfile "$root/bin/$name.json" -- "$@"
