#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds the headers and some programs to .clang-tidy: all headers in one file, and SOURCES, which instantiate them.

tidy.py ROOT [FILE...]: FILE, relative to ROOT, in place of SOURCES. The result is 77 (skipped) where
clang-tidy is not installed in one of VERSIONS: others have other checks in the same families.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from format import SKIPPED, find_program

VERSIONS = [19]
SOURCES = ["examples/encoder_decoder.cpp", "examples/gpt/schedules.cpp", "examples/gpt/measure.cpp"]
PLACE = re.compile(r"^(.+?):(\d+):\d+: (?:error|warning): (.*)$")


def check_file(root, program, source):
    """What is found in one file and the headers it includes, as `file:line: what [check]`."""
    result = subprocess.run([program, "--quiet", f"--config-file={root / '.clang-tidy'}", str(source), "--", "-std=c++20",
                             "-DPIPE_SHOWS_WARNINGS", f"-I{root / 'include'}"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, errors="replace")
    found = []
    for line in result.stdout.splitlines():
        if match := PLACE.match(line):
            name = Path(match[1])
            name = name.relative_to(root).as_posix() if name.is_relative_to(root) else match[1]
            found.append(f"{name}:{match[2]}: {match[3].replace(',-warnings-as-errors', '')}")
    if result.returncode != 0 and not found:
        found.append(f"{program} failed: {result.stdout}")
    return found


def check(root, program, sources=SOURCES):
    """Everything that is found, once each."""
    include = root / "include"
    headers = sorted(header.relative_to(include) for header in include.rglob("*.hpp"))
    if not headers:
        return ["there are no headers"]
    with tempfile.TemporaryDirectory() as folder:
        together = Path(folder, "headers.cpp")
        needs = {"pipe/hana.hpp": "boost/hana.hpp"}  # is left out where that is missing
        together.write_text("".join(f"#if __has_include(<{needs.get(str(header), header)}>)\n#include <{header}>\n#endif\n"
                                    for header in headers))
        files = [together, *(root / source for source in sources)]
        return list(dict.fromkeys(line for file in files for line in check_file(root, program, file)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=lambda text: Path(text).resolve())
    parser.add_argument("sources", nargs="*", default=SOURCES, metavar="FILE")
    arguments = parser.parse_args()
    clang_tidy = find_program("clang-tidy", VERSIONS)
    if not clang_tidy:
        print(f"skipped: there is no clang-tidy of version {', '.join(map(str, VERSIONS))}")
        sys.exit(SKIPPED)
    found = check(arguments.root, clang_tidy, arguments.sources)
    print("\n".join(found) if found else "clang-tidy finds nothing")
    sys.exit(1 if found else 0)
