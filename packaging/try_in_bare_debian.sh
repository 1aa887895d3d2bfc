#!/usr/bin/env bash
# Installs, tries and removes what was built in a Debian 12 that has nothing else, neither compiler nor checkout, as root:
#   packaging/try_in_bare_debian.sh PACKAGES WHEELS [FOLDER]
# PACKAGES and WHEELS are folders of .deb and .whl; FOLDER (default: build-package/bare) takes the systems, made by debootstrap.
set -euo pipefail

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
packages=$(readlink -f "$1") wheels=$(readlink -f "$2") folder=${3:-$root/build-package/bare}
mkdir -p "$folder"
folder=$(readlink -f "$folder")

fail() { printf 'try_in_bare_debian: %s\n' "$*" >&2 && exit 1; }

leave() {
  local place
  for place in "$folder"/*/proc "$folder"/*/dev; do
    if mountpoint -q "$place"; then umount -l "$place"; fi
  done
}
trap leave EXIT

inside() {  # SYSTEM COMMAND...
  printf '%s# %s\n' "$1" "${*:2}"
  chroot "$folder/$1" env -i PATH="${venv:+$venv/bin:}/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root LANG=C.UTF-8 TERM=dumb \
    DEBIAN_FRONTEND=noninteractive "${@:2}"
}

quietly() { "$@" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2 && fail "failed: ${*:2}"; }; }

new_system() {  # SYSTEM
  [ -e "$folder/bare/etc/debian_version" ] || quietly debootstrap --variant=minbase bookworm "$folder/bare"
  rm -rf --one-file-system "${folder:?}/$1"
  cp -a "$folder/bare" "$folder/$1"
  mount --bind /proc "$folder/$1/proc"
  mount --bind /dev "$folder/$1/dev"
  cp "$root/packaging/try.sh" "$folder/$1/usr/local/bin/"
  quietly inside "$1" apt-get update
}

# What no package may leave behind, but for the package manager's own notes.
files_of() {  # SYSTEM
  (cd "$folder/$1" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log \
    -o -path ./tmp -o -path ./etc/ld.so.cache \) -prune -o -print | LC_ALL=C sort)
}

try_packages() {
  new_system debian
  local files=("$packages"/*.deb) names=() file
  for file in "${files[@]}"; do names+=("$(dpkg-deb --field "$file" Package)"); done
  files_of debian >"$folder/before"
  cp "${files[@]}" "$folder/debian/tmp/"
  quietly inside debian apt-get install -y --no-install-recommends "${files[@]/#*\//\/tmp\/}"
  inside debian dpkg-query -W "${names[@]}"
  [ -z "$(find "$folder/debian/usr/bin" -name '*g++*')" ] || fail "the packages bring a compiler"
  inside debian try.sh python3
  inside debian test -s /usr/include/halflab/fp16/numbers.h
  quietly inside debian python3 /usr/share/doc/python3-halflab/examples/solutions.py
  quietly inside debian apt-get purge -y --autoremove "${names[@]}"
  files_of debian >"$folder/after"
  diff "$folder/before" "$folder/after" || fail "files were left, or taken"
  printf 'removed: of %s files none is left, and none is missing\n' "$(wc -l <"$folder/before")"
}

# numpy comes from PyPI, by this machine's pip.
try_wheel() {
  new_system wheel
  quietly inside wheel apt-get install -y --no-install-recommends python3 python3-venv
  [ -z "$(find "$folder/wheel/usr/bin" -name '*g++*' -o -name '*gcc*')" ] || fail "python3-venv brings a compiler"
  cp "$wheels"/*-cp311-*.whl "$folder/wheel/tmp/"
  quietly env python3 -m pip download --quiet --only-binary=:all: --python-version 3.11 --dest "$folder/wheel/tmp" numpy
  quietly inside wheel python3 -m venv /opt/halflab
  quietly inside wheel /opt/halflab/bin/pip install --no-index --find-links /tmp halflab
  venv=/opt/halflab inside wheel try.sh python
}

try_packages
try_wheel
