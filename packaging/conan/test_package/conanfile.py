"""Builds and runs the project of tests/install/consumer against the package, outside the checkout."""

import pathlib
import tempfile

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain


class HalflabTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        self.folders.source = "../../../tests/install/consumer"
        self.folders.build = tempfile.mkdtemp(prefix="halflab-conan-")
        self.folders.generators = self.folders.build

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for program in ("headers_only", "arrays"):
                self.run(str(pathlib.Path(self.build_folder) / program), env="conanrun")
