#!/usr/bin/env bash
# The programs installed, moved, and run with no environment: programs_test.sh BUILD CHECKOUT FOLDER
# Nothing of the build or the checkout may be needed; without gnuplot a run says so in one line and writes the rest.
set -euo pipefail
build=$1 checkout=$2 folder=$3

fail() { printf '%s\n' "$*" && exit 1; }

expect_in() {  # FILE TEXT
  grep -qF -e "$2" "$1" || fail "'$2' is not in: $(cat "$1")"
}

bare() { env -i PATH=/no/gnuplot "$@"; }  # COMMAND...

rm -rf "$folder"
mkdir -p "$folder"
cmake --install "$build" --component programs --prefix "$folder/first" --strip >/dev/null
mv "$folder/first" "$folder/moved"
cd "$folder"
halflab=$folder/moved/bin/halflab experiments=$folder/moved/libexec/halflab

named=$(grep -rlF -e "$checkout" moved || true)
[ -z "$named" ] || fail "the checkout is named in: $named"
[ -z "$(find moved -type l)" ] || fail "links were installed: $(find moved -type l)"

bare "$halflab" --help >help.txt
expect_in help.txt "Pages: $folder/moved/share/doc/halflab/docs"
for page in "$checkout"/docs/*.md; do
  [ -s "moved/share/doc/halflab/docs/$(basename "$page")" ] || fail "$page was not installed"
done
for page in moved/share/doc/halflab/README.md moved/share/doc/halflab/docs/*.md; do
  sed '/^\x60\{3\}/,/^\x60\{3\}/d' "$page" >text.txt  # without blocks of code
  { grep -oE '\]\([A-Za-z0-9_./-]+[#)]' text.txt || true; grep -oE 'src="[^"]+"' text.txt || true; } | sed -E 's/^\]\(|^src="|[#)"]$//g' >links.txt
  while read -r target; do
    [ -e "$(dirname "$page")/$target" ] || fail "$page links to $target, which was not installed"
  done <links.txt
  links=$((${links:-0} + $(wc -l <links.txt)))
done
[ "$links" -ge 50 ] || fail "only $links links were read"

listed=$(bare "$halflab" run --list)
[ "$(wc -l <<<"$listed")" -ge 18 ] || fail "few experiments are listed: $listed"
for program in $listed; do
  bare "$halflab" run "$program" --help >help.txt 2>&1 || fail "$program --help: $(cat help.txt)"
done
! grep -qx pages <<<"$listed" || fail "pages, which writes those of a checkout, was installed"
bare "$halflab" run >list.txt
grep -qE '^  underflow_sweep +How much .*\?$' list.txt || fail "halflab run lists no questions: $(cat list.txt)"

printf '#!/bin/sh\necho a library is missing >&2\nexit 127\n' >"$experiments/broken"
chmod +x "$experiments/broken"
code=0
bare "$halflab" run >list.txt || code=$?
[ $code -eq 1 ] || fail "a list with an experiment that does not start ends with exit code $code"
expect_in list.txt 'does not start: a library is missing'
rm "$experiments/broken"

code=0
bare "$halflab" run underflow_sweeps 2>said.txt || code=$?
[ $code -eq 2 ] || fail "an unknown experiment ends with exit code $code"
expect_in said.txt "unknown experiment 'underflow_sweeps'; did you mean 'underflow_sweep'?"

bare "$halflab" run memory_anatomy --quick --out anatomy >verdict.txt 2>said.txt || fail "memory_anatomy: $(cat said.txt)"
[ "$(wc -l <said.txt)" -eq 1 ] || fail "more than a line without gnuplot: $(cat said.txt)"
expect_in said.txt 'gnuplot was not found'
[ "$(find anatomy -name '*.gp' | wc -l)" -ge 2 ] || fail "no scripts: $(ls anatomy)"
[ -s anatomy/summary.json ] || fail "no tables: $(ls anatomy)"
[ -z "$(find anatomy -name '*.svg')" ] || fail "figures without gnuplot"
bare "$experiments/memory_anatomy" --help >help.txt
for network in "$checkout"/experiments/networks/*.toml; do
  grep -qw "$(basename "$network" .toml)" help.txt || fail "$network is not offered"
done

for library in openmpi mpich; do
  launcher=$(command -v "mpirun.$library") || continue
  code=0
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    "$launcher" -np 2 "$halflab" run training --mpi --batch 8 --model mlp:hidden1=8 --steps 2 \
    --twin-every 0 --out "ranks-$library" >said.txt 2>&1 || code=$?
  grep -q 'was not found when this Halflab was configured' said.txt || [ $code -eq 0 ] ||
    fail "$library, of the installed modules: $(cat said.txt)"
done

bare "$experiments/cpu_status" >table.txt || fail "cpu_status finds no records"
expect_in table.txt QEMU
bare "$experiments/gpu_status" >table.txt || fail "gpu_status finds no records"
bare "$halflab" run validate_cpu --quick --emulator never --out cpu >verdict.txt 2>&1 || fail "validate_cpu: $(cat verdict.txt)"
bare "$halflab" run underflow_sweep --quick --steps 2 --out sweep >verdict.txt 2>&1 || fail "underflow_sweep: $(cat verdict.txt)"
