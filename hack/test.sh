#!/usr/bin/env bash
# Runs the given make targets one after the other. Prints the expected time of each,
# and ends with a summary: results, times, number of tests and the slowest tests.
set -uo pipefail
cd "$(dirname "$0")/.."
rm -f bin/*.json
# Expected minutes of each target with warm caches on two cores.
declare -A expected=([lint]=3 [verify]=1 [test-unit]=10 [test-release]=2 [test-cluster]=2 [test-alone]=2 [test-controlplane]=22 [test-e2e]=30 [test-chaos]=4)
# A test that hangs is ended before CI ends the run, so that its goroutine stacks are printed.
export TEST_DEADLINE=$((EPOCHSECONDS + ${TEST_MINUTES:-85} * 60))
rows=()
failed=0 done_minutes=0 total=0
for target in "$@"; do total=$((total + ${expected[$target]:-1})); done
for target in "$@"; do
  printf '=== make %s: about %d min; %d of about %d min expected so far, %d min passed\n' \
    "$target" "${expected[$target]:-1}" "$done_minutes" "$total" $((SECONDS / 60))
  began=$SECONDS
  result=passed
  make --no-print-directory "$target" || { result=FAILED; failed=1; }
  done_minutes=$((done_minutes + ${expected[$target]:-1}))
  rows+=("$(printf '%-17s %-7s %4d s, expected about %d' "$target" "$result" $((SECONDS - began)) $((60 * ${expected[$target]:-1})))")
done
count() { cat bin/*.json 2>/dev/null | grep -c "\"Action\":\"$1\".*\"Test\":" || true; }
echo
echo "=== slowest tests"
cat bin/*.json 2>/dev/null | bin/gotestsum tool slowest --num 10 --threshold 10s
echo
echo "=== summary"
printf '%s\n' "${rows[@]}"
printf 'tests: %s passed, %s failed, %s skipped; %d min\n' "$(count pass)" "$(count fail)" "$(count skip)" $((SECONDS / 60))
exit $failed
