#!/usr/bin/env bash
# Puts the page together: build.sh MODULES OUT.html, where MODULES is the folder of the WebAssembly. Needs esbuild and gzip.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
modules=$(readlink -f "$1") out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/node_modules" "$(dirname "$out")"
for module in engine training; do
  gzip -9 -n -c "$modules/$module.wasm" >"$work/node_modules/$module.wasm.gz"
done
NODE_PATH=$work/node_modules esbuild "$here/page.js" --bundle --minify --format=iife --charset=utf8 --loader:.gz=base64 \
  --log-level=warning --outfile="$work/page.js"
# A script in a page ends at the first </script, wherever that stands.
awk -v style="$here/page.css" -v script="$work/page.js" '
  function all(file,  line) { while ((getline line < file) > 0) { gsub(/<\/script/, "<\\/script", line); print line } }
  /\/\*STYLE\*\// { print "<style>"; all(style); print "</style>"; next }
  /\/\*SCRIPT\*\// { print "<script>"; all(script); print "</script>"; next }
  { print }' "$here/page.html" >"$work/page.html"
mv "$work/page.html" "$out"
