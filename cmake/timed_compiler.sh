#!/usr/bin/env bash
# Compiler launcher: runs the command and adds a line, "CPU seconds<TAB>output", to the file HALFLAB_COMPILE_TIMES.
#   cmake ... -DCMAKE_CXX_COMPILER_LAUNCHER="$PWD/cmake/timed_compiler.sh"
exec 3>&1 4>&2
TIMEFORMAT='%U %S'
seconds=$( { time "$@" 1>&3 2>&4; } 2>&1 )
status=$?
for ((i = 1; i < $#; ++i)); do
  if [ "${!i}" = -o ]; then
    next=$((i + 1))
    output=${!next}
  fi
done
if [ -n "${HALFLAB_COMPILE_TIMES:-}" ]; then
  printf '%s\t%s\n' "$(awk '{ print $1 + $2 }' <<<"$seconds")" "${output:-$1}" >>"$HALFLAB_COMPILE_TIMES"
fi
exit "$status"
