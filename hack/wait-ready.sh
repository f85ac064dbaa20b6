#!/usr/bin/env bash
# Waits until all parts of the installation are ready.
set -euo pipefail
ns=altershieldoperator-system
wait_for() { kubectl -n "$ns" wait --timeout=180s "$@"; }
wait_for --for=condition=Available deployment --all
wait_for --for=condition=Ready broker/default
wait_for --for=condition=Ready ksvc --all
wait_for --for=condition=Ready trigger --all
wait_for --for=create opsconfiginfo/blocking opsconfiginfo/branch # created by the leading controller
wait_for --for=condition=Ready opsconfiginfo/blocking opsconfiginfo/branch
