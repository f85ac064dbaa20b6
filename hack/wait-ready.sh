#!/usr/bin/env bash
# Waits until everything that the installation promises is there.
set -euo pipefail
ns=altershieldoperator-system
wait_for() { kubectl -n "$ns" wait --timeout=180s "$@"; }
wait_for --for=condition=Available deployment --all
wait_for --for=condition=Ready broker/default
wait_for --for=condition=Ready ksvc --all
wait_for --for=condition=Ready trigger --all
wait_for --for=create opsconfiginfo/blocking opsconfiginfo/branch # the controller that leads makes them
wait_for --for=condition=Ready opsconfiginfo/blocking opsconfiginfo/branch
