#!/usr/bin/env bash
# Waits until all parts of the installation are ready.
set -euo pipefail
ns=altershieldoperator-system
wait_for() { kubectl -n "$ns" wait --timeout=180s "$@"; }
wait_for --for=condition=Available deployment --all
# Available is also True while replicas of an earlier version serve. Deployments of functions
# belong to Knative, which deletes them with their Revisions.
kubectl -n "$ns" rollout status --timeout=180s deployment -l '!serving.knative.dev/service'
wait_for --for=condition=Ready broker/default
wait_for --for=condition=Ready ksvc --all
wait_for --for=condition=Ready trigger --all
wait_for --for=create opsconfiginfo/blocking opsconfiginfo/branch # created by the leading controller
wait_for --for=condition=Ready opsconfiginfo/blocking opsconfiginfo/branch
