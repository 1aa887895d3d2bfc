#!/usr/bin/env bash
# Puts the page together, with gradients from the records: build.sh MODULES OUT.html, where MODULES is the folder of the
# WebAssembly. Needs esbuild and gzip.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
modules=$(readlink -f "$1") out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/node_modules" "$(dirname "$out")"
for module in engine training; do
  gzip -9 -n -c "$modules/$module.wasm" >"$work/node_modules/$module.wasm.gz"
done
# NETWORK,STEP,QUANTITY, and of an octave its exponent and counts, of the rest "rest", zeros, nonfinite and the loss.
for record in "$here"/../../experiments/records/claims/gradients_*; do
  awk -F, -v OFS=, -v network="${record##*/gradients_}" '
    FNR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
    FILENAME ~ /moments/ { print network, $at["step"], $at["quantity"], "rest", $at["zeros"], $at["nonfinite"],
        $at["training_loss"]; next }
    { print network, $at["step"], $at["quantity"], $at["exponent_log2"], $at["count"], $at["count_powers_of_two"],
        $at["count_near_next"], $at["count_top"], $at["sum_of_squares"] }' "$record/moments.csv" "$record/over_training.csv"
done | gzip -9 -n >"$work/node_modules/gradients.csv.gz"
NODE_PATH=$work/node_modules esbuild "$here/page.js" --bundle --minify --format=iife --charset=utf8 --loader:.gz=base64 \
  --log-level=warning --outfile="$work/page.js"
# A script in a page ends at the first </script, wherever that stands.
awk -v style="$here/page.css" -v script="$work/page.js" '
  function all(file,  line) { while ((getline line < file) > 0) { gsub(/<\/script/, "<\\/script", line); print line } }
  /\/\*STYLE\*\// { print "<style>"; all(style); print "</style>"; next }
  /\/\*SCRIPT\*\// { print "<script>"; all(script); print "</script>"; next }
  { print }' "$here/page.html" >"$work/page.html"
mv "$work/page.html" "$out"
