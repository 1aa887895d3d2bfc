#!/usr/bin/env bash
# Makes halflab, libhalflab-dev and python3-halflab, Debian packages, in OUT: packaging/debian/build.sh [OUT]
# (default: build-package/packages), from which it removes earlier packages of these names and nothing else. In the environment,
# HALFLAB_MAINTAINER is the maintainer whom the packages name, "Name <address>". It installs nothing: it needs the packages of
# `./lab build`, and help2man, file and dpkg-dev.
set -euo pipefail

root=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
build=$(realpath -m -- "${HALFLAB_PACKAGE_BUILD:-$root/build-package}")
out=$(realpath -m -- "${1:-$build/packages}")

# Without them CMake stops late, or leaves out what the packages depend on.
missing=()
for program in help2man file dpkg-shlibdeps; do
  command -v "$program" >/dev/null || missing+=("$program")
done
if [ ${#missing[@]} -gt 0 ]; then
  printf 'packaging/debian/build.sh: not found: %s; as root: apt-get install help2man file dpkg-dev\n' "${missing[*]}" >&2
  exit 2
fi

SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
cmake --fresh -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
  -DHALFLAB_PACKAGE=ON -DHALFLAB_PYTHON=ON -DHALFLAB_PYTHON_INSTALL_DIR=lib/python3/dist-packages \
  -DHALFLAB_TESTS=OFF -DHALFLAB_CUDA=OFF ${HALFLAB_MAINTAINER:+"-DHALFLAB_MAINTAINER=$HALFLAB_MAINTAINER"}
cmake --build "$build" --target experiments halflab python_package halflab_fp16_bulk halflab_manual
mkdir -p "$build" "$out"
made=$(mktemp -d "$build/made-XXXXXX")
trap 'rm -rf "$made"' EXIT
# Files of a package can be read by all, whoever makes it.
(umask 022 && cd "$build" && cpack -G DEB -B "$made")
rm -f "$out"/{halflab,libhalflab-dev,python3-halflab}_*.deb
mv "$made"/*.deb "$out"
ls -l "$out"/*.deb
