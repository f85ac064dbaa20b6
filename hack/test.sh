#!/usr/bin/env bash
# Runs the given make targets one after the other, and those that are joined by + at the same
# time, with the name of the target before each line. Prints the expected time of each, and ends
# with a summary: the slowest and the failed tests, results, times, and the number of tests.
set -uo pipefail
cd "$(dirname "$0")/.."
rm -f bin/*.json
# Expected minutes of each target with warm caches on two cores.
declare -A expected=([lint]=2 [verify]=1 [test-unit]=6 [test-models]=2 [test-rates]=2 [test-cost]=1 [test-release]=1 [test-cluster]=2 [test-alone]=3 [test-controlplane]=10 [test-e2e]=18 [test-chaos]=3 [test-upgrade]=4)
# A test that hangs is ended before CI ends the run, so that its goroutine stacks are printed.
export TEST_DEADLINE=$((EPOCHSECONDS + ${TEST_MINUTES:-85} * 60))
rows=()
failed=0 done_minutes=0 total=0

# minutes prints the expected time of a stage: that of its longest target.
minutes() {
  local longest=1 target
  for target in ${1//+/ }; do ((${expected[$target]:-1} > longest)) && longest=${expected[$target]}; done
  echo "$longest"
}

# run runs one target and stores its row of the summary.
run() {
  local began=$SECONDS result=passed
  make --no-print-directory "$1" || result=FAILED
  # The targets after test-e2e use what it installed.
  [[ $1 != test-e2e || $result == FAILED ]] || export INSTALLED=true
  printf '%-17s %-7s %4d s, expected about %d\n' "$1" "$result" $((SECONDS - began)) $((60 * ${expected[$1]:-1})) >"$results/$1"
}

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
for stage in "$@"; do total=$((total + $(minutes "$stage"))); done
for stage in "$@"; do
  printf '=== make %s: about %d min; %d of about %d min expected so far, %d min passed\n' \
    "${stage//+/ and }" "$(minutes "$stage")" "$done_minutes" "$total" $((SECONDS / 60))
  for target in ${stage//+/ }; do
    if [[ $stage == *+* ]]; then
      run "$target" 2>&1 | sed -u "s/^/[$target] /" &
    else
      run "$target"
    fi
  done
  wait
  done_minutes=$((done_minutes + $(minutes "$stage")))
  for target in ${stage//+/ }; do
    rows+=("$(cat "$results/$target")")
    [[ ${rows[-1]} == *" passed "* ]] || failed=1
  done
done
count() { cat bin/*.json 2>/dev/null | grep -c "\"Action\":\"$1\".*\"Test\":" || true; }
echo
echo "=== slowest tests"
cat bin/*.json 2>/dev/null | bin/gotestsum tool slowest --num 10 --threshold 10s
if ((failed)); then
  echo
  echo "=== failed tests"
  cat bin/*.json 2>/dev/null | sed -nE 's/.*"Action":"fail","Package":"([^"]*)","Test":"([^"]*)".*/\1 \2/p' | sort
fi
echo
echo "=== summary"
printf '%s\n' "${rows[@]}"
printf 'tests: %s passed, %s failed, %s skipped; %d min\n' "$(count pass)" "$(count fail)" "$(count skip)" $((SECONDS / 60))
exit $failed
