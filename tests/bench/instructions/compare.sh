#!/usr/bin/env bash
# What fraction of their limits do the paths of AArch64 reach, by instructions, as QEMU tells no time? Fails where one of them
# stays below the path for AVX2, counted likewise, and below the limit; plain NEON may stay below where a floor stands here.
#   tests/bench/instructions/compare.sh BUILD BUILD_AARCH64     (each with its target instruction_cases built)
set -euo pipefail
folder=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
program=tests/bin/instruction_cases
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
c++ -std=c++20 -O2 -shared -fPIC "$folder/counter.cpp" -o "$work/counter.so"

count() {  # QEMU PATH PROGRAM CASE ours|limit: of one call
  local once thrice
  once=$(HALFLAB_VECTOR_PATH=$2 $1 -plugin "$work/counter.so" "$3" "$4" "$5" 1 2>&1 >/dev/null | tail -n 1)
  thrice=$(HALFLAB_VECTOR_PATH=$2 $1 -plugin "$work/counter.so" "$3" "$4" "$5" 3 2>&1 >/dev/null | tail -n 1)
  echo $(((thrice - once) / 2))
}

# Percent of the limit. A step of a product in halves takes about as many instructions on plain NEON as on AVX2, but the limit,
# Eigen's product, fewer: FMLA takes a factor from an element of a register, where AVX2 loads it.
declare -A neon_floor=([gemm_fp16_fma]=14 [gemm_fp16_mul_add]=23)

judge() {  # PATH REACHED WANTED
  [ "$2" -ge "$3" ] || { printf '  %s below %d%%' "$1" "$3"; missed=1; }
}

printf '%-18s %30s %30s %30s\n' '' avx2_f16c neon neon_fp16
printf '%-18s' case
for _ in 1 2 3; do printf ' %11s %11s %6s' ours limit ratio; done
echo
missed=0 percent=()
for name in $("$1/$program"); do
  printf '%-18s' "$name"
  for path in avx2_f16c neon neon_fp16; do
    qemu='qemu-aarch64 -cpu max' build=$2
    [ $path != avx2_f16c ] || { qemu='qemu-x86_64 -cpu max'; build=$1; }
    ours=$(count "$qemu" $path "$build/$program" "$name" ours)
    limit=$(count "$qemu" $path "$build/$program" "$name" limit)
    printf ' %11d %11d %6.2f' "$ours" "$limit" "$((100 * limit / ours))e-2"
    percent[${#percent[@]}]=$((100 * limit / ours))
  done
  wanted=$((percent[0] < 100 ? percent[0] : 100))
  judge neon "${percent[1]}" "${neon_floor[$name]:-$wanted}"
  judge neon_fp16 "${percent[2]}" "$wanted"
  percent=()
  echo
done
exit $missed
