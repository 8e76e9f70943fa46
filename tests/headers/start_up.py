#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""No code of the library runs before main: start_up.cpp compiled to an object file without initialisers.

    start_up.py --compiler g++ [--system FOLDER]
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"


def initialisers(compiler, flags):
    """The sections of start_up.cpp's object file that hold functions to call before main."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "start_up.o")
        subprocess.run([*compiler, "-std=c++20", *flags, f"-I{INCLUDE}", "-c", str(HERE / "start_up.cpp"), "-o", str(target)],
                       check=True)
        names = subprocess.run(["readelf", "--wide", "--sections", str(target)], check=True, stdout=subprocess.PIPE,
                               text=True).stdout.split()
    return sorted({name for name in names if name.startswith((".init_array", ".preinit_array", ".ctors"))})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--system", action="append", default=[])
    arguments = parser.parse_args()
    compiler = [arguments.compiler, *(f"-isystem{folder}" for folder in arguments.system)]
    if not initialisers(compiler, ["-DRUNS_BEFORE_MAIN"]):
        print("an initialiser was not noticed")
        return 1
    found = initialisers(compiler, [])
    if found:
        print(f"code runs before main: {', '.join(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
