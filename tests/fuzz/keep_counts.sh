#!/bin/sh
# Moves the executions that run.sh has counted in HALFLAB_FUZZ_FOLDER (build/tests/fuzz) into executions.csv, to be committed.
set -eu
cd "${0%/*}"
folder=$(realpath "${HALFLAB_FUZZ_FOLDER:-../../build/tests/fuzz}")
{
  tail -n +2 executions.csv
  for counted in "$folder"/*/executions; do echo "$(basename "${counted%/*}"),$(cat "$counted")"; done
} | awk -F, '{ sum[$1] += $2 } END { for (name in sum) printf "%s,%d\n", name, sum[name] }' | sort >executions.new
{ echo target,executions && cat executions.new; } >executions.csv
rm executions.new "$folder"/*/executions
awk -F, '{ sum += $2 } END { printf "%d executions of %d targets\n", sum, NR - 1 }' executions.csv
