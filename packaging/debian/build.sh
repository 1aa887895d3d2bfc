#!/usr/bin/env bash
# Makes halflab, libhalflab-dev and python3-halflab, Debian packages, in OUT: packaging/debian/build.sh [OUT]
# (default: build-package/packages). It installs nothing: the packages that it needs are those of `./lab build` and help2man.
set -euo pipefail

root=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
build=${HALFLAB_PACKAGE_BUILD:-$root/build-package}
out=${1:-$build/packages}

SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
cmake --fresh -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
  -DHALFLAB_PACKAGE=ON -DHALFLAB_PYTHON=ON -DHALFLAB_PYTHON_INSTALL_DIR=lib/python3/dist-packages \
  -DHALFLAB_TESTS=OFF -DHALFLAB_CUDA=OFF
cmake --build "$build" --target experiments halflab python_package halflab_fp16_bulk halflab_manual
rm -rf "$out"
mkdir -p "$out"
# Files of a package can be read by all, whoever makes it.
(umask 022 && cd "$build" && cpack -G DEB -B "$out")
rm -rf "$out/_CPack_Packages"
ls -l "$out"
