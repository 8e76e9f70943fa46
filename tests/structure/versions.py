#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""One version: that of base/config.hpp is the newest of CHANGELOG.md, of the vcpkg port, and of all that pages and packages tell a program to ask for.

CMake and the Conan recipe read it from base/config.hpp.
"""
import json
import re
import sys
from pathlib import Path

CONFIG = "include/pipe/base/config.hpp"
# File, the words around a version, and which version stands there.
PLACES = [
    ("CHANGELOG.md", r"^## (\S+)$", "version"),  # the first one
    ("CHANGELOG.md", r"`find_package\(pipe (\S+)\)` accepts", "minor"),
    ("CHANGELOG.md", r"accepts (\S+)\.x only", "minor"),
    ("tests/package/consumer/CMakeLists.txt", r"find_package\(pipe (\S+) REQUIRED\)", "minor"),
    ("tests/package/consumer/CMakeLists.txt", r"GIT_TAG (\S+)\)", "tag"),  # quoted by README and install.md
    ("include/pipe/checkpoint/checkpoint_match.hpp", r'in the words of metadata: "(\S+)"', "version"),
    ("docs/howto/build.md", r"compiled_library<(\d+),", "number"),
    ("docs/howto/cluster.md", r"process 0 has version (\d+)", "number"),
]


def problems(root):
    number = int(re.search(r"#define PIPE_VERSION (\d+)", (root / CONFIG).read_text())[1])
    minor = f"{number // 10000}.{number // 100 % 100}"
    version = f"{minor}.{number % 100}"
    expected = {"version": version, "minor": minor, "tag": f"v{version}", "number": str(number)}
    for name, pattern, kind in PLACES:
        found = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        if not found:
            yield f"{name}: nothing is like {pattern}"
        elif found[1] != expected[kind]:
            yield f"{name}: {found[0]}: {found[1]} is not {expected[kind]}, as in {CONFIG}"
    port = json.loads((root / "packaging/vcpkg/pipe/vcpkg.json").read_text())
    if port["version"] != version:
        yield f"packaging/vcpkg/pipe/vcpkg.json: {port['version']} is not {version}, as in {CONFIG}"
    for key in ("name", "description", "license", "dependencies"):
        if not port.get(key):
            yield f"packaging/vcpkg/pipe/vcpkg.json: no {key}"


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(found) or "one version")
    sys.exit(1 if found else 0)
