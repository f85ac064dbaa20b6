#!/usr/bin/env bash
# Installs config/protection and config/permission on a Kubernetes without
# Knative and without config/core, and runs six of their end-to-end tests. It uses a
# second cluster, independent of `make up`, and removes it afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CLUSTER:?set CLUSTER to the program of the embedded cluster, as make test-alone does}"
export BREAKWATER_NAME=bwalone BREAKWATER_STATE=/var/lib/breakwater-alone
ns=altershieldoperator-system
trap '"$CLUSTER" down' EXIT
"$CLUSTER" up --without-knative --nodes 4
"$CLUSTER" exec -- hack/apply.sh config/protection config/permission
"$CLUSTER" exec -- kubectl -n "$ns" wait --timeout=180s --for=condition=Available deployment --all
run() { "$CLUSTER" exec -- hack/gotest.sh "alone-$1" -tags e2e -timeout 10m -count 1 -run "$3" "$2"; }
run protection ./test/e2e/protection \
  'TestADeletionBeyondTheBudgetIsDenied|TestAProtectedWorkloadIsNotDeletedWhileItHasPods|TestExactlyAsManyPodsAreDeletedAsTheLimitAllows|TestGeneratedBudgetsFollowTheirWorkload|TestADrainWaitsAndCompletes'
run permission ./test/e2e/permission 'TestAPodStartsWhenItIsGrantedAndIsRevokedWhenItEnds'
