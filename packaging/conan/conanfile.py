# SPDX-License-Identifier: BSL-1.0
"""Conan 2 recipe of the sources it lies in: `conan create packaging/conan` makes pipe/VERSION, `conan install --requires pipe/VERSION` uses it."""
import re
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load


class Pipe(ConanFile):
    name = "pipe"
    description = "Pipeline-parallel training planned by the C++ compiler"
    license = "BSL-1.0"
    topics = ("machine-learning", "pipeline-parallelism", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    def set_version(self):
        config = load(self, Path(self.recipe_folder, "../../include/pipe/base/config.hpp"))
        number = int(re.search(r"#define PIPE_VERSION (\d+)", config)[1])
        self.version = f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def export_sources(self):
        root = str(Path(self.recipe_folder, "../.."))
        for pattern in ("include/*", "LICENSE"):
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 20)

    def package(self):
        copy(self, "include/*", src=self.source_folder, dst=self.package_folder)
        copy(self, "LICENSE", src=self.source_folder, dst=str(Path(self.package_folder, "licenses")))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "pipe")
        self.cpp_info.set_property("cmake_target_name", "pipe::pipe")
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
