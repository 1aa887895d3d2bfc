#!/usr/bin/env bash
# Whether installed programs and libraries are hardened as cmake/Hardening.cmake has it: packaging/check_hardening.sh FILES...
# Each is position-independent, with relocations that are read-only from the start and a guarded stack; some call the checked
# functions of the C library, which not all have a use for.
set -euo pipefail

fail() { printf 'check_hardening: %s\n' "$*" >&2 && exit 1; }

[ $# -gt 0 ] || fail "no files"
fortified=0
for file in "$@"; do
  told=$(LC_ALL=C readelf --wide --file-header --program-headers --dynamic --dyn-syms "$file") ||
    fail "$file: readelf cannot read it"
  expect() {  # REGEX WHAT
    grep -qE -e "$1" <<<"$told" || fail "$file: no $2"
  }
  expect '^ *Type: +DYN ' "position-independent code"
  expect '^ *GNU_RELRO ' "read-only relocations"
  expect '\((FLAGS|FLAGS_1)\).*\b(BIND_NOW|NOW)\b' "binding before the start"
  expect '\b__stack_chk_fail\b' "guarded stack"
  if grep -qE '\b__\w+_chk\b' < <(grep -v __stack_chk <<<"$told"); then fortified=$((fortified + 1)); fi
done
[ $fortified -gt 0 ] || fail "none of $# files calls a checked function of the C library"
printf 'hardened: %s programs and libraries, %s of which call checked functions\n' $# $fortified
