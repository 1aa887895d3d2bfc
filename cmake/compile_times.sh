#!/usr/bin/env bash
# What compiling costs: builds TARGETS anew in build-times/ and prints the CPU-seconds of each CMake target.
#   cmake/compile_times.sh [TARGETS...]     (default: demo_programs; all is everything, the tests too, without nvcc)
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
build=$root/build-times
[ $# -gt 0 ] || set -- demo_programs
rm -rf "$build"
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHALFLAB_CUDA=OFF -DHALFLAB_PYTHON=ON \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$root/cmake/timed_compiler.sh" >/dev/null
HALFLAB_COMPILE_TIMES=$build/compile_times.tsv cmake --build "$build" --target "$@" -- --quiet
awk -F '\t' '
  {
    target = $2
    if (!sub(/^(.*\/)?CMakeFiles\//, "", target) || !sub(/\.dir\/.*/, "", target)) target = "CMake"
    seconds[target] += $1; files[target]++; total += $1
  }
  END {
    for (target in seconds) printf "%8.1f s %5d files  %s\n", seconds[target], files[target], target | "sort -rn"
    close("sort -rn")
    printf "%8.1f s %5d files  in all\n", total, NR
  }' "$build/compile_times.tsv"
