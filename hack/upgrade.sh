#!/usr/bin/env bash
# Runs test/upgrade on the cluster of CLUSTER: an earlier version, then the version of this working
# tree. UPGRADE_FROM names the earlier version; by default it is in test/upgrade/from. The sources are
# a copy, so that the clone gets no working tree that an interrupted run would leave.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CLUSTER:?set CLUSTER to the program of the embedded cluster, as make test-upgrade does}"
from=${UPGRADE_FROM:-$(sed '/^#/d' test/upgrade/from)}
# A shallow clone does not have the commit. Most of what the test shows is about the change from
# one build to another, so it runs then, too: from HEAD. Stored objects of an earlier version need its commit.
if ! git cat-file -e "$from^{commit}" 2>/dev/null; then
  cat >&2 <<END
WARNING: this clone does not have commit $from of test/upgrade/from. The upgrade is from HEAD,
so it does not show that objects of an earlier version are read. Get the commit with
  git fetch --unshallow
END
  from=HEAD
fi
export UPGRADE_FROM_SOURCES
UPGRADE_FROM_SOURCES=$(mktemp -d)
# Runs also after an interrupt. A run that passed has installed this working tree.
finish() {
  local code=$?
  rm -rf "$UPGRADE_FROM_SOURCES"
  if ((code)); then
    echo "==> install the version of this working tree again" >&2
    "$CLUSTER" exec -- make --no-print-directory install >&2
  fi
}
trap finish EXIT
git archive "$from" | tar -x -C "$UPGRADE_FROM_SOURCES"
commit=$(git rev-parse --short "$from^{commit}")
# With a version of its own, each image differs from that of this working tree, even if the sources are the same.
sed -i "s|^  - -w\$|&\n  - -X=github.com/breakwater-dev/breakwater/internal/version.version=v0.0.0-earlier-$commit|" "$UPGRADE_FROM_SOURCES/ko.yaml"
grep -q "earlier-$commit" "$UPGRADE_FROM_SOURCES/ko.yaml"
# The cluster's network namespace cannot reach a module proxy.
go -C "$UPGRADE_FROM_SOURCES" mod download
echo "==> upgrade from $commit ($(git log -1 --format=%s "$from"))"
GOTESTSUM_FORMAT=standard-verbose "$CLUSTER" exec -- hack/gotest.sh upgrade -tags e2e -timeout 15m -count 1 -v -run 'TestAnUpgrade' ./test/upgrade
