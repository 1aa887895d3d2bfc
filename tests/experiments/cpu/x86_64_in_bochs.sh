#!/usr/bin/env bash
# Holds half instructions of x86-64, in the Bochs of a bare Debian 13, to the software half, on 2^16 inputs of each row: no other
# rows may differ than in the kept record, whose differences are faults of Bochs.
#   tests/experiments/cpu/x86_64_in_bochs.sh BUILD
# BUILD/bochs takes the system, made by debootstrap, and what was found. Exits 3 where it cannot make one.
set -euo pipefail

if [ "$EUID" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "skipped: needs debootstrap, and root, who may mount and chroot"
  exit 3
fi
root=$(realpath -- "$(dirname "${BASH_SOURCE[0]}")/../../..")
build=$(realpath -- "$1")
folder=$build/bochs
system=$folder/system

leave() {
  for place in dev/pts dev proc; do
    if mountpoint -q "$system/$place"; then umount -l "$system/$place"; fi
  done
}
trap leave EXIT

quietly() { "$@" >"$folder/log" 2>&1 || { tail -n 5 "$folder/log" >&2 && exit 1; }; }

inside() {
  chroot "$system" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}

mkdir -p "$folder"
if [ ! -e "$folder/made" ]; then
  rm -rf --one-file-system "$system"
  quietly debootstrap --variant=minbase trixie "$system"
fi
mount --bind /proc "$system/proc"
mount --bind /dev "$system/dev"
mount --bind /dev/pts "$system/dev/pts"
if [ ! -e "$folder/made" ]; then
  read -ra packages < <(sed -n 's/^#   apt-get install //p' "$root/experiments/cpu/in_bochs.sh")
  quietly inside apt-get update
  quietly inside apt-get install -y --no-install-recommends "${packages[@]}"
  touch "$folder/made"
fi
cp "$root/experiments/cpu/in_bochs.sh" "$build/bin/validate_cpu_x86_64" "$system/opt/"
inside /opt/in_bochs.sh /opt/validate_cpu_x86_64 /opt/found.txt --quick || [ $? -eq 1 ]
"$build/bin/validate_cpu" --from "$system/opt/found.txt" --out "$folder/record" >/dev/null || [ $? -eq 1 ]
python3 - "$root/experiments/records/cpu_x86_64_bochs/verdicts.csv" "$folder/record/verdicts.csv" <<'PYTHON'
import csv, sys
kept, found = ({row["operation"]: row for row in csv.DictReader(open(name)) if row["shards_finished"] != "0"}
               for name in sys.argv[1:])
assert kept.keys() == found.keys(), sorted(kept.keys() ^ found.keys())
new = [name for name in found if found[name]["mismatches"] != "0" and kept[name]["mismatches"] == "0"]
print(f"{len(found)} rows in Bochs; beyond those of the record these differ: {new or 'none'}")
sys.exit(1 if new else 0)
PYTHON
