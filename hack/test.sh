#!/usr/bin/env bash
# Runs the given make targets one after the other and prints a summary: the
# result and duration of each target, and the number of tests.
set -uo pipefail
cd "$(dirname "$0")/.."
rm -f bin/*.json
rows=()
failed=0
for target in "$@"; do
  echo "=== make $target"
  began=$SECONDS
  result=passed
  make --no-print-directory "$target" || { result=FAILED; failed=1; }
  rows+=("$(printf '%-10s %-7s %4ds' "$target" "$result" $((SECONDS - began)))")
done
count() { cat bin/*.json 2>/dev/null | grep -c "\"Action\":\"$1\".*\"Test\":" || true; }
echo
echo "=== summary"
printf '%s\n' "${rows[@]}"
printf 'tests: %s passed, %s failed, %s skipped\n' "$(count pass)" "$(count fail)" "$(count skip)"
exit $failed
