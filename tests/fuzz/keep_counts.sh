#!/bin/sh
# Moves the executions that run.sh has counted in HALFLAB_FUZZ_FOLDER (build/tests/fuzz) into executions.csv, to be committed.
set -eu
folder=$(realpath "${HALFLAB_FUZZ_FOLDER:-${0%/*}/../../build/tests/fuzz}")
cd "${0%/*}"
set -- "$folder"/*/executions
[ -e "$1" ] || { echo "$folder has counted nothing" && exit; }
{
  tail -n +2 executions.csv
  for counted; do echo "$(basename "${counted%/*}"),$(cat "$counted")"; done
} | awk -F, '{ sum[$1] += $2 } END { for (name in sum) printf "%s,%d\n", name, sum[name] }' | sort >executions.new
{ echo target,executions && cat executions.new; } >executions.csv
rm executions.new "$@"
awk -F, '{ sum += $2 } END { printf "%d executions of %d targets\n", sum, NR - 1 }' executions.csv
