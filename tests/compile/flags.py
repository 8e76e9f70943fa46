#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Flags under which a compiler may change what is computed must be refused, in one error that says which; others give the same bits.

    flags.py SOURCE --kind KIND --compiler PROGRAM --include FOLDER...    (nvcc: looks at one kernel, without SOURCE)

A flag that a macro tells of needs the headers alone; one that only the optimiser tells of needs SOURCE, a program. (That the others
change no bit is bits.py.) At -O0 g++ optimises kernels all the same.
"""
import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ERROR = re.compile(r"^\S.*?:\d+:\d+: (?:fatal )?error: (.*)$", re.MULTILINE)
REFUSAL = "pipe needs IEEE arithmetic"
ASSOCIATIVE = "-fassociative-math -fno-signed-zeros -fno-trapping-math"  # either compiler ignores the first without the others

HEADER = "#include <pipe/base/ieee_arithmetic.hpp>\nint main() { pp::detail::require_ieee_arithmetic(); }\n"
DEVICE = """#include <pipe/backend/cuda/core/arguments.hpp>
#include <pipe/backend/cuda/core/launch.cuh>
struct body {
  static constexpr int threads = 32;
  static constexpr long blocks = 1;
  struct shared {};
  struct state {};
  template <class Block>
  static __device__ void run(Block&, pp::cuda::arguments const& a) { *static_cast<float*>(a.operand[0]) = 1; }
};
void launch(pp::cuda::arguments const& a) { pp::cuda::launch_body<body>(a, nullptr); }
"""
REFUSED = ["-ffast-math", "-Ofast", "-ffinite-math-only", ASSOCIATIVE, "-funsafe-math-optimizations", "-freciprocal-math",
           "-fno-signed-zeros"]
REFUSED_BY = {"g++": ["-fsingle-precision-constant"], "clang++": ["-fno-honor-nans", "-ffp-model=fast"]}
HARMLESS = ["", "-fassociative-math", "-fno-math-errno -fno-trapping-math", "-frounding-math", "-ffp-contract=off",
            "-ffp-contract=fast"]
# The innermost loop of every contraction, as g++ compiles it at -O0: from its label on.
KERNEL = re.compile(r"^_ZN2pp4host4avx24tileILi4ELi3EfE.*?\.cfi_endproc", re.DOTALL | re.MULTILINE)


class Compiler:
    def __init__(self, arguments, folder):
        self.command = [arguments.compiler, "-std=c++20", "-w", *(f"-I{include}" for include in arguments.include)]
        self.folder = folder

    def run(self, source, flags, target="object", stop="-c"):
        """Exit status and output."""
        done = subprocess.run([*self.command, *flags.split(), *stop.split(), str(source), "-o", str(self.folder / target)],
                              text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "LC_ALL": "C"})
        return done.returncode, done.stdout


def fused_in_kernel(folder):
    """Fused multiply-adds of vectors in the kernel of `assembly.s`."""
    kernel = KERNEL.search((folder / "assembly.s").read_text())
    return len(re.findall(r"\bvfmadd\w+ps\b.*%ymm", kernel[0])) if kernel else -1


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

    if kind == "g++" and platform.machine() == "x86_64":
        compiler.run(source, "-O0", "assembly.s", "-S")
        if fused_in_kernel(folder) < 12:
            yield "at -O0 the innermost loop of a contraction has no 12 fused multiply-adds of vectors"
        compiler.run(source, "-O0 -DPIPE_DEBUG_KERNELS", "assembly.s", "-S")
        if fused_in_kernel(folder) >= 12:
            yield "with PIPE_DEBUG_KERNELS the innermost loop of a contraction is optimised"


def device_problems(compiler, folder):
    source = folder / "kernel.cu"
    source.write_text(DEVICE)
    for flags in ("--use_fast_math", "-ftz=true", "-prec-div=false", "-prec-sqrt=false", "-G --use_fast_math", "", "-G",
                  "-ftz=false", "-O1"):
        status, output = compiler.run(source, f"-arch=sm_80 {flags}", "kernel.cubin", "-cubin")
        lines = [line for line in output.splitlines() if "pipe_needs_ieee_arithmetic" in line]
        is_refused = "fast_math" in flags or "ftz=true" in flags or "prec" in flags
        if is_refused != (status != 0) or len(lines) != is_refused:
            yield f"kernel {flags}: {'not refused in one line' if is_refused else 'refused'}:\n{output}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--kind", choices=["g++", "clang++", "nvcc"], required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", nargs="*", default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(arguments, Path(folder))
        if arguments.kind == "nvcc":
            found = list(device_problems(compiler, Path(folder)))
        else:
            found = list(problems(compiler, arguments.kind, arguments.source, Path(folder)))
    print("\n".join(found) if found else "every flag that changes numbers is refused in one error")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
