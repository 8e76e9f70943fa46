#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds every tracked C++ file to .clang-format; prints each line that clang-format would change as `file:line`.

The result is 77 (skipped) where no clang-format of version 19 or newer is installed: older ones format differently.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 19
VERSIONS = range(OLDEST, 40)
SUFFIXES = (".hpp", ".cpp", ".inl", ".cu", ".cuh")
FOLDERS = ("include", "tests", "examples", "tools", "bench")
SKIPPED = 77
PLACE = re.compile(r"^(.+?):(\d+):\d+: (?:error|warning): code should be clang-formatted")


def version_of(program):
    """The major version, or 0 if it does not say one."""
    said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    match = re.search(r"version (\d+)", said)
    return int(match[1]) if match else 0


def find_program(name, versions, path=None):
    """`name-19` and so on, or `name` itself: the first that is there in one of the versions."""
    for ending in [*(f"-{version}" for version in versions), ""]:
        program = shutil.which(name + ending, path=path)
        if program and version_of(program) in versions:
            return program
    return None


def files_of(root):
    """What git tracks; where there is no git, what is in the folders of the sources."""
    try:
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, check=True).stdout.decode().split("\0")
        paths = [root / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*"))]
    return [path for path in paths if path.suffix in SUFFIXES and path.is_file()]


def check(root, program):
    """The places that differ, as (file, line), and what else clang-format had to say."""
    files = files_of(root)
    if not files:
        return [], "there are no C++ files"
    result = subprocess.run([program, "--dry-run", "-Werror", "--style=file", *map(str, files)], cwd=root,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    places = []
    for line in result.stdout.splitlines():
        if match := PLACE.match(line):
            place = (Path(match[1]).relative_to(root).as_posix(), int(match[2]))
            if place not in places:
                places.append(place)
    failed = result.returncode != 0 and not places
    return places, f"{program} failed: {result.stdout}" if failed else ""


if __name__ == "__main__":
    clang_format = find_program("clang-format", VERSIONS)
    if not clang_format:
        print(f"skipped: there is no clang-format of version {OLDEST} or newer")
        sys.exit(SKIPPED)
    places, trouble = check(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve(), clang_format)
    for name, line in places:
        print(f"{name}:{line}: clang-format would change this")
    print(trouble or (f"{len(places)} places differ" if places else "every file is formatted"))
    sys.exit(1 if places or trouble else 0)
