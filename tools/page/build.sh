#!/usr/bin/env bash
# Puts the page together: build.sh ENGINE.wasm OUT.html. Needs esbuild and gzip.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
module=$(readlink -f "$1") out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/node_modules" "$(dirname "$out")"
gzip -9 -n -c "$module" >"$work/node_modules/engine.wasm.gz"
NODE_PATH=$work/node_modules esbuild "$here/page.js" --bundle --minify --format=iife --charset=utf8 --loader:.gz=base64 \
  --log-level=warning --outfile="$work/page.js"
# A script in a page ends at the first </script, wherever that stands.
awk -v style="$here/page.css" -v script="$work/page.js" '
  function all(file,  line) { while ((getline line < file) > 0) { gsub(/<\/script/, "<\\/script", line); print line } }
  /\/\*STYLE\*\// { print "<style>"; all(style); print "</style>"; next }
  /\/\*SCRIPT\*\// { print "<script>"; all(script); print "</script>"; next }
  { print }' "$here/page.html" >"$work/page.html"
mv "$work/page.html" "$out"
