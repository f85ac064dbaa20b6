#!/usr/bin/env bash
# Runs go test through gotestsum: a line a package, what failed at the end, and
# the counts. The first argument names the report in bin/.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
name=$1
shift
mkdir -p "$root/bin"
[[ -x $root/bin/gotestsum ]] || go build -C "$root/tools/test" -o "$root/bin/" gotest.tools/gotestsum
exec "$root/bin/gotestsum" --format "${GOTESTSUM_FORMAT:-pkgname}" --format-hide-empty-pkg \
  --jsonfile "$root/bin/$name.json" -- "$@"
