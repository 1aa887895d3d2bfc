"""Halflab for Conan 2: `conan create packaging/conan -s compiler.cppstd=20` in a checkout.

The library fp16 alone, which needs no other library, unless the option programs asks for the command and the experiments too.
"""

import pathlib
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class HalflabConan(ConanFile):
    name = "halflab"
    description = "A laboratory for half precision: exact FP16 in software, and what it does to training"
    license = "Apache-2.0"
    author = "The Halflab developers"
    topics = ("half precision", "floating point", "mixed-precision training", "loss scaling")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"programs": [True, False]}
    default_options = {"programs": False}

    @property
    def _checkout(self):
        return pathlib.Path(self.recipe_folder).parents[1]

    def set_version(self):
        text = (self._checkout / "CMakeLists.txt").read_text(encoding="utf-8")
        self.version = re.search(r"project\(halflab VERSION ([0-9.]+)", text)[1]

    def export(self):
        copy(self, "CMakeLists.txt", self._checkout, self.export_folder)

    def export_sources(self):
        files = ("CMakeLists.txt", "LICENSE", "CITATION.cff", "README.md")
        for pattern in (*files, "cmake/*", "fp16/*", "sim/*", "experiments/*", "tools/halflab/*", "docs/*"):
            copy(self, pattern, self._checkout, self.export_sources_folder, excludes="experiments/records/claims/*")
        copy(self, "experiments/records/claims/*/*.svg", self._checkout, self.export_sources_folder)  # that pages show

    def requirements(self):
        if self.options.programs:
            self.requires("cli11/[>=2.3 <3]", visible=False)
            self.requires("fmt/[>=9.1 <12]", visible=False)
            self.requires("nlohmann_json/[>=3.11 <4]", visible=False)
            self.requires("tomlplusplus/[>=3.3 <4]", visible=False)
            self.requires("zlib/[>=1.2.11 <2]", visible=False)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HALFLAB_FP16_ONLY"] = not self.options.programs
        toolchain.cache_variables["HALFLAB_TESTS"] = False
        toolchain.cache_variables["HALFLAB_CUDA"] = "OFF"
        toolchain.user_presets_path = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, pathlib.Path(self.package_folder) / "licenses")
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "halflab")
        headers = self.cpp_info.components["fp16"]
        headers.set_property("cmake_target_name", "halflab::fp16")
        headers.bindirs = headers.libdirs = []
        headers.cxxflags = ["-ffp-contract=off"]
        arrays = self.cpp_info.components["fp16_bulk"]
        arrays.set_property("cmake_target_name", "halflab::fp16_bulk")
        arrays.libs = ["halflab_fp16_bulk"]
        arrays.requires = ["fp16"]
        if self.settings.os in ("Linux", "FreeBSD"):
            arrays.system_libs = ["pthread", "m"]
