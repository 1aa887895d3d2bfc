#!/usr/bin/env bash
# What a wheel is built from, in a container of manylinux: packaging/wheel/dependencies.sh FOLDER
# FOLDER/build/Release/generators is then a CMAKE_PREFIX_PATH. The libraries are headers, or linked in, but zlib, which every
# manylinux has.
set -euo pipefail
root=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")

dnf install -y zlib-devel
python3 -m venv "$1/conan"
"$1/conan/bin/pip" install --quiet conan
"$1/conan/bin/conan" profile detect --exist-ok
"$1/conan/bin/conan" install "$root/packaging/conan" --output-folder="$1" --build=missing \
  --settings=compiler.cppstd=20 --settings=build_type=Release --options='&:programs=True'
