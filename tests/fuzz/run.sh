#!/bin/sh
# Fuzzes one reader for HALFLAB_FUZZ_SECONDS (60; without limit where HALFLAB_FUZZ_RUNS is given), at most until it has
# HALFLAB_FUZZ_RUNS executions in all, by inputs of at most HALFLAB_FUZZ_LENGTH bytes (65536). It goes on from the inputs that
# earlier runs have kept in HALFLAB_FUZZ_FOLDER (build/tests/fuzz), and adds up their executions there every ten minutes: a run
# that is ended loses no more. What keep_counts.sh has moved into executions.csv counts, too.
# usage: run.sh NAME TARGET CORPUS
set -eu
name=$1 target=$2 corpus=$3
kept=${HALFLAB_FUZZ_FOLDER:-fuzz}/$name
mkdir -p "$kept/corpus"
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # readers of files read them from memory
committed=$(sed -n "s/^$name,//p" "${0%/*}/executions.csv")
counted() { cat "$kept/executions" 2>/dev/null || echo 0; }
executions() { echo $((${committed:-0} + $(counted))); }
fuzz() { # RUNS SECONDS
  status=0
  "$target" -runs="$1" -max_total_time="$2" -max_len="${HALFLAB_FUZZ_LENGTH:-65536}" \
    -timeout=10 -malloc_limit_mb=64 -entropic=0 -print_final_stats=1 -verbosity=0 -artifact_prefix="$kept/" \
    "$kept/corpus" "$corpus" >"$kept/log" 2>&1 || status=$?
  cat "$kept/log"
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$kept/log")
  echo $(($(counted) + ${executed:-0})) >"$kept/executions"
  echo "$name: ${executed:-0} executions, $(executions) in all"
  [ "$status" = 0 ] || exit "$status"
}
left=${HALFLAB_FUZZ_SECONDS:-60} slice=600 runs=-1
[ -z "${HALFLAB_FUZZ_RUNS:-}" ] || left=${HALFLAB_FUZZ_SECONDS:-1000000000}
while [ "$left" -gt 0 ]; do
  if [ -n "${HALFLAB_FUZZ_RUNS:-}" ]; then
    runs=$((HALFLAB_FUZZ_RUNS - $(executions)))
    [ "$runs" -gt 0 ] || { echo "$name: $(executions) executions of $HALFLAB_FUZZ_RUNS" && exit; }
  fi
  [ "$left" -ge "$slice" ] || slice=$left
  fuzz "$runs" "$slice"
  left=$((left - slice))
done
