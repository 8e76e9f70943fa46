#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Makes the package of packaging/conan with Conan 2, which builds and runs the consumer with it: `conan.py ROOT FOLDER`, the latter for all
that Conan writes. The result is 77 (skipped) where there is no conan."""
import os
import shutil
import subprocess
import sys

SKIPPED = 77


def main(root, folder):
    conan = shutil.which("conan")
    if not conan:
        print("there is no conan 2 (pip install conan)")
        return SKIPPED
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    environment = {**os.environ, "CONAN_HOME": os.path.join(folder, "home")}
    for command in (["profile", "detect"],
                    ["create", os.path.join(root, "packaging/conan"), "-s", "compiler.cppstd=20", "--no-remote",
                     "-c", "tools.cmake.cmaketoolchain:generator=Ninja",
                     "-c", f"tools.cmake.cmake_layout:test_folder={folder}/test"]):
        result = subprocess.run([conan, *command], cwd=folder, env=environment, text=True, errors="replace",
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if result.returncode != 0:
            print(result.stdout[-3000:])
            return 1
    print("the consumer was built with the package, and ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:])))
