#!/usr/bin/env bash
# What an installed Halflab must do, wherever it was installed: packaging/try.sh [PYTHON]
# The command, an experiment, and, with a Python that has the module, the same from there.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"  # where no checkout is

say() { printf '$ %s\n' "$*" >&2 && "$@"; }

say halflab --version
say halflab show 2048+1 | sed -n 1p
say halflab selftest >hashes
sed -n 1p hashes
if grep -i 'not run' hashes; then exit 1; fi
halflab run | sed -n 's/^  \([a-z_0-9]*\) .*/\1/p' >programs
test -s programs
while read -r program; do halflab run "$program" --help >/dev/null; done <programs
printf 'each of %s experiments starts\n' "$(wc -l <programs)"
say halflab run underflow_sweep --quick --quiet --out sweep | sed -n 1p
test -s sweep/summary.json
if [ $# -gt 0 ]; then
  "$1" - <<'PYTHON'
import halflab

assert halflab.add(2048.0, 1.0) == 2048.0
record = halflab.run_experiment("memory_anatomy", quick=True)
print("from Python: memory_anatomy with", len(record.tables), "tables")
PYTHON
fi
