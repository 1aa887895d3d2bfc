#!/usr/bin/env bash
# Do two builds write the same bytes? Runs every experiment of both, with --quick and with its defaults, and compares all
# that is written but manifests, verdicts, report pages and measured times.
#   tests/compare_outputs.sh BUILD_BEFORE BUILD_AFTER [quick|default|all [NAME...]]
# BUILD: a folder with bin/ and, after, report_runs, whose names are all or those given. EMULATOR runs the programs of the second,
# where they are for another processor: qemu-aarch64.
set -euo pipefail
declare -A build=([before]=$1 [after]=$2)
which=${3:-all}
names=" ${*:4} "
declare -A emulator=([before]='' [after]=${EMULATOR:-})
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
different=0

run() {  # SIDE OUT PROGRAM ARGUMENTS...
  ${emulator[$1]} "${build[$1]}/bin/$3" "${@:4}" --quiet --out "$2" </dev/null >/dev/null 2>"$2.err" ||
    echo "exit code $?" >"$2.exit"
}

# Lines with times, and that of shards.bin with the revision.
measured='"(time_|rate\.|ratio\.|limit\.|overhead\.|slowdown\.)|^revision '

compare() {  # NAME
  local file
  while read -r file; do
    case ${file##*/} in
      manifest.json | verdict.txt | timing* | *.html | .*) continue ;;
    esac
    if ! cmp -s <(grep -aEv "$measured" "$work/before/$1/$file") <(grep -aEv "$measured" "$work/after/$1/$file"); then
      echo "$1: $file differs"
      different=1
    fi
  done < <(cd "$work" && { cd before/"$1" && find . -type f; cd "$work/after/$1" && find . -type f; } | sed 's#^\./##' | sort -u)
  if ! cmp -s "$work/before/$1.exit" "$work/after/$1.exit" && { [ -e "$work/before/$1.exit" ] || [ -e "$work/after/$1.exit" ]; }; then
    echo "$1: ends otherwise: $(cat "$work/before/$1.err" "$work/after/$1.err")"
    different=1
  fi
}

for name in $names; do
  grep -q "^$name " "$2/report_runs" || { echo "compare_outputs.sh: $name is no run of $2/report_runs" >&2; exit 2; }
done
mkdir -p "$work/before" "$work/after"
while read -r name program arguments; do
  [[ $names =~ ^\ *$ || $names == *" $name "* ]] || continue
  for mode in quick default; do
    [ "$which" = all ] || [ "$which" = $mode ] || continue
    [ $mode = default ] || quick=--quick
    [ $mode = quick ] || quick=''
    # shellcheck disable=SC2086  # the words of a command
    for side in before after; do run $side "$work/$side/$name.$mode" "$program" $arguments $quick; done
    compare "$name.$mode"
    echo "$name, $mode: compared"
    rm -rf "$work"/*/"$name.$mode"*
  done
done <"${build[after]}/report_runs"
[ $different = 0 ] && echo "every file is the same"
exit $different
