#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""One set of bits for a set of kernels, by every compiler, with all options.

    bits.py SOURCE --include FOLDER... --gxx PROGRAM [--clang PROGRAM...] [--all] [--part N...] [--example FILE]

SOURCE trains models that have every kind of layer, loss and optimizer together, and prints the bits of all that they compute: losses and
norms of 100 steps, initial and final parameters, outputs. It is compiled by each compiler at each level, and with --all at more of them
and for ARM64, by Debian's cross compiler; qemu runs that. The kernels for AVX2 print the same bits everywhere, ARM64's too, and portable
ones theirs. What an example prints is the same on ARM64, too. Compilers, an emulator and processors that are missing are named at the end.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GXX = ["-O2", "-O3 -march=native"]
GXX_ALL = ["-O0", "-O1", "-Og", "-Os", "-O3", "-O2 -mfma", "-O2 -flto", "-O0 -fsanitize=undefined", "-O0 -DPIPE_DEBUG_KERNELS -march=native",
           "-O2 -fno-math-errno -fno-trapping-math", "-O2 -ffp-contract=off"]
CLANG = ["-O2"]
CLANG_ALL = ["-O0", "-O3 -march=native"]
ARM64 = ["-O2 -static", "-O1 -static"]
CROSS, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"


def output_of(compiler, flags, runner, arguments, source, folder):
    """The bits that the program prints, or why it does not."""
    program = Path(folder) / "program"
    command = [compiler, "-std=c++20", "-w", *(f"-I{include}" for include in arguments.include), *flags.split(), str(source),
               "-o", str(program), "-pthread"]
    for step in (command, [*runner, str(program)]):
        done = subprocess.run(step, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "LC_ALL": "C"})
        if done.returncode != 0:
            return f"ends with {done.returncode}: {done.stdout[:2000]}"
    return done.stdout


def builds(arguments, missing):
    """(compiler, flags, how to run it) of each build, by the name of the kernels."""
    native = [(arguments.gxx, flags, []) for flags in GXX + (GXX_ALL if arguments.all else [])]
    native += [(clang, flags, []) for clang in arguments.clang for flags in CLANG + (CLANG_ALL if arguments.all else [])]
    all_builds = {}
    cpu = Path("/proc/cpuinfo").read_text().split()
    if "avx2" in cpu and "fma" in cpu:
        all_builds["AVX2"] = native
        tools = [tool for tool in (CROSS, EMULATOR) if shutil.which(tool) is None]
        if arguments.all and not tools:
            all_builds["AVX2"] = native + [(CROSS, flags, [EMULATOR]) for flags in ARM64]
        elif arguments.all:
            missing.append(f"ARM64 (no {' and no '.join(tools)})")
    else:
        missing.append("AVX2 (not this processor)")
    if "AVX2" not in all_builds or arguments.all:
        quick = [build for build in native if build[1] in GXX + CLANG]
        all_builds["portable"] = [(compiler, flags + " -DPORTABLE", runner) for compiler, flags, runner in quick]
    return all_builds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--include", nargs="+", required=True)
    parser.add_argument("--gxx", required=True)
    parser.add_argument("--clang", nargs="*", default=[])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--part", nargs="*", type=int, default=[1, 2, 3, 4])
    parser.add_argument("--example", type=Path)
    arguments = parser.parse_args()
    missing, wrong, compared = [], [], 0
    for name, each in builds(arguments, missing).items():
        for part in arguments.part:
            first, wanted = None, None
            for compiler, flags, runner in each:
                with tempfile.TemporaryDirectory() as folder:
                    found = output_of(compiler, f"{flags} -DPART={part}", runner, arguments, arguments.source, folder)
                what = f"{name}, part {part}, {Path(compiler).name} {flags}"
                if "parameters" not in found:
                    wrong.append(f"{what} {found}")
                elif first is None:
                    first, wanted = what, found
                elif found != wanted:
                    wrong.append(f"{what} has other bits than {first}:\n{found}{wanted}")
                compared += 1
    arm64 = [build for build in builds(arguments, []).get("AVX2", []) if build[0] == CROSS]
    if arguments.example and arm64 and 1 in arguments.part:
        with tempfile.TemporaryDirectory() as folder:
            here, there = (output_of(*how, arguments, arguments.example, folder)
                           for how in ((arguments.gxx, "-O2 -DPIPE_INSTRUCTION_SETS=avx2", []), arm64[0]))
        if here != there:
            wrong.append(f"{arguments.example.name} prints, here and on ARM64:\n{here}{there}")
    print("\n".join(wrong) if wrong else f"{compared} programs, one set of bits for each set of kernels")
    if missing:
        print("left out:", ", ".join(missing))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
