# SPDX-License-Identifier: Apache-2.0
"""Halflab for Spack, 1.0 or newer, in a checkout:

    spack repo add packaging/spack/spack_repo/halflab && spack dev-build halflab@0.1.0
"""

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Halflab(CMakePackage):
    """A laboratory for half precision: exact FP16 in software, and what it does to training."""

    license("Apache-2.0", checked_by="halflab")

    # Of a checkout; a release has its archive and the checksum of that.
    version("0.1.0")

    variant("programs", default=True, description="The command halflab and the experiments")
    variant("figures", default=True, when="+programs", description="Draw the figures of runs")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    with when("+programs"):
        depends_on("cli11@2.3:")
        depends_on("fmt@9.1:11")
        depends_on("nlohmann-json@3.11:")
        depends_on("tomlplusplus@3.3:")
        depends_on("zlib-api")
        depends_on("gnuplot+cairo", when="+figures", type="run")

    generator("ninja")
    conflicts("%gcc@:11", msg="Halflab is C++20")
    conflicts("platform=windows")

    def cmake_args(self):
        return [
            self.define("HALFLAB_FP16_ONLY", self.spec.satisfies("~programs")),
            self.define("HALFLAB_TESTS", False),
            self.define("HALFLAB_CUDA", "OFF"),
        ]
