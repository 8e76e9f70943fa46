#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Flags under which a compiler may change what is computed must be refused, in one error that says which.

    flags.py SOURCE --kind KIND --compiler PROGRAM --include FOLDER...

A flag that a macro tells of needs the headers alone; one that only the optimiser tells of needs SOURCE, a program.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ERROR = re.compile(r"^\S.*?:\d+:\d+: (?:fatal )?error: (.*)$", re.MULTILINE)
REFUSAL = "pipe needs IEEE arithmetic"
ASSOCIATIVE = "-fassociative-math -fno-signed-zeros -fno-trapping-math"  # either compiler ignores the first without the others

HEADER = "#include <pipe/base/ieee_arithmetic.hpp>\nint main() { pp::require_ieee_arithmetic(); }\n"
REFUSED = ["-ffast-math", "-Ofast", "-ffinite-math-only", ASSOCIATIVE, "-funsafe-math-optimizations", "-freciprocal-math",
           "-fno-signed-zeros"]
REFUSED_BY = {"g++": ["-fsingle-precision-constant"], "clang++": ["-fno-honor-nans", "-ffp-model=fast"]}
HARMLESS = ["", "-fassociative-math", "-fno-math-errno -fno-trapping-math", "-frounding-math", "-ffp-contract=off",
            "-ffp-contract=fast"]


class Compiler:
    def __init__(self, arguments, folder):
        self.command = [arguments.compiler, "-std=c++20", "-w", *(f"-I{include}" for include in arguments.include)]
        self.folder = folder

    def run(self, source, flags):
        """Exit status and output."""
        done = subprocess.run([*self.command, *flags.split(), "-c", str(source), "-o", str(self.folder / "object")], text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "LC_ALL": "C"})
        return done.returncode, done.stdout


def problems(compiler, kind, source, folder):
    header = folder / "header.cpp"
    header.write_text(HEADER)
    cases = [(header, f"{level} {flags}", True)
             for flags in [*REFUSED, *REFUSED_BY[kind]] for level in ("-O1", "-O2", "-O3 -g")]
    cases += [(header, f"{level} {flags}", False) for flags in HARMLESS for level in ("-O0", "-O2")]
    cases += [(source, f"-O1 {flags}", True) for flags in ("-ffast-math", "-funsafe-math-optimizations")]
    for file, flags, is_refused in cases:
        status, output = compiler.run(file, flags)
        errors = ERROR.findall(output)
        if is_refused and (status == 0 or len(errors) != 1 or REFUSAL not in errors[0]):
            yield f"{file.name} {flags}: expected one error that says '{REFUSAL}', found {len(errors)}:\n{output}"
        if not is_refused and status != 0:
            yield f"{file.name} {flags}: expected to compile:\n{output}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--kind", choices=["g++", "clang++"], required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", nargs="*", default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = list(problems(Compiler(arguments, Path(folder)), arguments.kind, arguments.source, Path(folder)))
    print("\n".join(found) if found else "every flag that changes numbers is refused in one error")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
