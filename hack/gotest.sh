#!/usr/bin/env bash
# Runs go test with gotestsum, which prints a line per package (GOTESTSUM_FORMAT=testname:
# per test), the failures and the counts. The first argument is the name of the report in
# bin/. TEST_DEADLINE, in seconds since 1970, shortens the option -timeout. With -trimpath,
# clones and worktrees in other folders share what is compiled. make lint runs go vet. Without
# debug information (-s -w) a test binary is linked in half the time; stack traces need none. Only
# the race detector needs cgo. Other tests share the compiled packages of the images, which are built without it.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
name=$1
shift
mkdir -p "$root/bin"
[[ -x $root/bin/gotestsum ]] || go build -C "$root/tools/test" -o "$root/bin/" gotest.tools/gotestsum
args=()
while (($#)); do
  if [[ $1 == -timeout && -n ${TEST_DEADLINE:-} ]]; then
    minutes=${2%m} left=$(((TEST_DEADLINE - EPOCHSECONDS) / 60))
    ((left < minutes)) && minutes=$((left > 1 ? left : 1))
    args+=(-timeout "${minutes}m")
    shift 2
    continue
  fi
  args+=("$1")
  shift
done
[[ " ${args[*]} " == *" -race "* ]] || export CGO_ENABLED=0
exec "$root/bin/gotestsum" --format "${GOTESTSUM_FORMAT:-pkgname}" --format-hide-empty-pkg \
  --jsonfile "$root/bin/$name.json" -- -trimpath -vet=off -ldflags="-s -w" "${args[@]}"
