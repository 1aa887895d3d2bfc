#!/usr/bin/env bash
# Installs, tries and removes what was built in a Debian that has nothing else, neither compiler nor checkout, as root:
#   packaging/try_in_bare_debian.sh PACKAGES WHEELS [FOLDER]
# PACKAGES and WHEELS are folders of .deb and .whl, made on this machine, of whose release of Debian the bare ones are; FOLDER
# (default: build-package/bare) takes the systems, made by debootstrap.
set -euo pipefail

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")

fail() { printf 'try_in_bare_debian: %s\n' "$*" >&2 && exit 1; }

refuse() { printf 'try_in_bare_debian: %s\n' "$*" >&2 && exit 2; }

# shellcheck source=/dev/null
ID='' VERSION_CODENAME='' && . /etc/os-release
[ "$ID" = debian ] || refuse "the bare system is of this machine's release of Debian, and this is ${ID:-no Debian}"
[ $# -eq 2 ] || [ $# -eq 3 ] || refuse "the arguments are PACKAGES WHEELS [FOLDER]"
[ "$EUID" -eq 0 ] || refuse "only root may mount and chroot"
python=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
packages=$(realpath -m -- "$1") wheels=$(realpath -m -- "$2") folder=$(realpath -m -- "${3:-$root/build-package/bare}")
for file in "$packages"/{halflab,libhalflab-dev,python3-halflab}_*.deb "$wheels"/halflab-*-cp"${python/./}"-*.whl; do
  [ -e "$file" ] || refuse "there is no $file"
done
mkdir -p "$folder"

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
  local bare=$folder/$VERSION_CODENAME
  [ -e "$bare/made" ] || { quietly debootstrap --variant=minbase "$VERSION_CODENAME" "$bare" && touch "$bare/made"; }
  [ ! -e "$folder/$1" ] || [ -e "$folder/$1/made" ] || refuse "$folder/$1 is not a system of an earlier try"
  rm -rf --one-file-system "${folder:?}/$1"
  mkdir "$folder/$1" && touch "$folder/$1/made"
  cp -a "$bare/." "$folder/$1"
  mount --bind /proc "$folder/$1/proc"
  mount --bind /dev "$folder/$1/dev"
  cp "$root/packaging/try.sh" "$folder/$1/usr/local/bin/"
  quietly inside "$1" apt-get update
}

# What no package may leave behind, but for the package manager's own notes, and the /etc/hosts of netbase, which others need.
files_of() {  # SYSTEM
  (cd "$folder/$1" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log \
    -o -path ./tmp -o -path ./etc/ld.so.cache -o -path ./etc/hosts \) -prune -o -print | LC_ALL=C sort)
}

try_packages() {
  new_system debian
  local files=("$packages"/{halflab,libhalflab-dev,python3-halflab}_*.deb) names=() file
  for file in "${files[@]}"; do names+=("$(dpkg-deb --field "$file" Package)"); done
  files_of debian >"$folder/before"
  cp "${files[@]}" "$folder/debian/tmp/"
  quietly inside debian apt-get install -y --no-install-recommends "${files[@]/#*\//\/tmp\/}"
  inside debian dpkg-query -W "${names[@]}"
  [ -z "$(find "$folder/debian/usr/bin" -name '*g++*')" ] || fail "the packages bring a compiler"
  inside debian try.sh python3
  hardened "$folder/debian/usr"
  quietly inside debian python3 /usr/share/doc/python3-halflab/examples/solutions.py
  quietly inside debian apt-get purge -y --autoremove "${names[@]}"
  files_of debian >"$folder/after"
  diff "$folder/before" "$folder/after" || fail "files were left, or taken"
  printf 'removed: of %s files none is left, and none is missing\n' "$(wc -l <"$folder/before")"
}

# Ours of what was installed: the command, the experiments, their library, the module; not what a wheel brings of others.
hardened() {  # PREFIX
  local files
  mapfile -t files < <(find "$1/bin/halflab" "$1/libexec/halflab" -type f; find "$1/lib" -name '_halflab*.so')
  "$root/packaging/check_hardening.sh" "${files[@]}"
}

# What the packages recommend draws figures, with words in them.
try_figures() {
  new_system tools
  cp "$packages"/halflab_*.deb "$folder/tools/tmp/"
  quietly inside tools sh -c 'apt-get install -y /tmp/halflab_*.deb'
  quietly inside tools halflab run memory_anatomy --quick --out /tmp/anatomy
  ! grep -q warning "$folder/log" || fail "figures: $(cat "$folder/log")"
  python3 "$root/packaging/words_in_figures.py" "$folder"/tools/tmp/anatomy/*.png
}

# The C++ library by find_package and by pkg-config, in the system that try_figures has made.
try_library() {
  local consumer=(-D SOURCE=/tmp/install/consumer -D PREFIX=/usr -D COMPILER=/usr/bin/g++)
  cp "$packages"/libhalflab-dev_*.deb "$folder/tools/tmp/"
  cp -r "$root/tests/install" "$folder/tools/tmp/"
  quietly inside tools sh -c \
    'apt-get install -y --no-install-recommends /tmp/libhalflab-dev_*.deb g++ cmake ninja-build pkg-config'
  quietly inside tools cmake "${consumer[@]}" -D BINARY=/tmp/built -D GENERATOR=Ninja -D BUILD_TYPE=Release \
    -D INSTRUCTION_SET=native "-DPROGRAMS=headers_only;arrays;coexistence" -P /tmp/install/consumer.cmake
  quietly inside tools cmake "${consumer[@]}" -D SOURCE=/tmp/install/consumer/arrays.cpp -D BUILT=/tmp/built/arrays \
    -D PKG_CONFIG=/usr/bin/pkg-config -P /tmp/install/pkg_config.cmake
  printf 'tools: programs were built by find_package and by pkg-config\n'
}

# numpy comes from PyPI, by this machine's pip.
try_wheel() {
  new_system wheel
  quietly inside wheel apt-get install -y --no-install-recommends python3 python3-venv
  [ -z "$(find "$folder/wheel/usr/bin" -name '*g++*' -o -name '*gcc*')" ] || fail "python3-venv brings a compiler"
  cp "$wheels"/halflab-*-cp"${python/./}"-*.whl "$folder/wheel/tmp/"
  quietly env python3 -m pip download --quiet --only-binary=:all: --python-version "$python" --dest "$folder/wheel/tmp" numpy
  quietly inside wheel python3 -m venv /opt/halflab
  quietly inside wheel /opt/halflab/bin/pip install --no-index --find-links /tmp halflab
  venv=/opt/halflab inside wheel try.sh python
  hardened "$folder/wheel/opt/halflab"
}

try_packages
try_figures
try_library
try_wheel
