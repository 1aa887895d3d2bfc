#!/usr/bin/env bash
# Completes what a user would have typed: completion_test.sh COMPLETION_FILE DIRECTORY_OF_HALFLAB
set -euo pipefail
PATH=$2:$PATH
# shellcheck source=/dev/null
source "$1"

expect() {  # WORDS..., the last one unfinished, then = and the completions
  COMP_WORDS=()
  while [ "$1" != = ]; do COMP_WORDS+=("$1") && shift; done
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _halflab
  local found="${COMPREPLY[*]}"
  [ "$found" = "${*:2}" ] || { printf '%s: completes to %s where %s is expected\n' "${COMP_WORDS[*]}" "$found" "${*:2}" && exit 1; }
}

expect halflab his = hist
expect halflab rep = replay
expect halflab hal =
expect halflab hist --sel = --select
expect halflab hist --scale = --scale --scaled-by
expect halflab nothing --x =
expect halflab run underf = underflow_sweep
expect halflab run underflow_sweep --polic = --policy
expect halflab hist gradi =
