#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""One version: that of base/config.hpp is the newest of CHANGELOG.md, and that of the vcpkg port; the Conan recipe reads it there."""
import json
import re
import sys
from pathlib import Path


def problems(root):
    config = (root / "include/pipe/base/config.hpp").read_text()
    number = int(re.search(r"#define PIPE_VERSION (\d+)", config)[1])
    version = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    newest = re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    if not newest or newest[1] != version:
        yield f"CHANGELOG.md: begins with {newest and newest[1]}, not with {version}"
    port = json.loads((root / "packaging/vcpkg/pipe/vcpkg.json").read_text())
    if port["version"] != version:
        yield f"packaging/vcpkg/pipe/vcpkg.json: {port['version']} is not {version}"
    for key in ("name", "description", "license", "dependencies"):
        if not port.get(key):
            yield f"packaging/vcpkg/pipe/vcpkg.json: no {key}"


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1])))
    print("\n".join(found) or "one version")
    sys.exit(1 if found else 0)
