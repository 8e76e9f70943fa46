#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Reads what nvcc makes of a program's kernels: the instructions that each family is meant to have are there, and nothing is spilled.

    device_code.py SOURCE --compiler NVCC --include FOLDER... --architectures 80 90a
    device_code.py SOURCE --compiler NVCC --include FOLDER... --architectures 90a --families wgmma_tiles

A kernel of FAMILIES that the source does not have at all is an error too: nothing would have been looked at.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77

MULTIPLIES = ("mma.sync", re.compile(r"\bmma\.sync\."))
COPIES = ("cp.async of 16 bytes", re.compile(r"\bcp\.async\.cg\.shared\.global \[[^]]+\], \[[^]]+\], 16\b"))
LOADS = ("loads of 16 bytes", re.compile(r"\bld\.global(?:\.nc)?\.v4\.[bfu]32\b"))
STORES = ("stores of 16 bytes", re.compile(r"\bst\.global\.v4\.[bfu]32\b"))

FAMILIES = {
    "contraction_tiles": [MULTIPLIES, COPIES, STORES],
    "attention_forward": [MULTIPLIES, COPIES],
    "attention_slopes": [LOADS],
    "attention_key_gradients": [MULTIPLIES, COPIES],
    "attention_query_gradients": [MULTIPLIES, COPIES],
    "norm_kernel": [LOADS, STORES],
    "norm_gradients_kernel": [LOADS, STORES],
    "cross_entropy_kernel": [LOADS, STORES],
    "column_sums_kernel": [LOADS, STORES],
    "lookup_kernel": [LOADS, STORES],
    "flat_kernel": [LOADS, STORES],
}

# Of programs that ask for them: by --families.
WGMMA = {
    "wgmma_tiles": [("wgmma.mma_async", re.compile(r"\bwgmma\.mma_async\.")),
                    ("copies of boxes", re.compile(r"\bcp\.async\.bulk\.tensor\.2d\.")), STORES],
}
WGMMA_STEPS = 4  # multiplications in the loop over slabs, whose code is there once
# What ptxas says of products that it runs one after the other, and of registers that it does not hand on.
SLOW = re.compile(r"^.*(?:C7510|C7508|[Ss]erializ|setmaxnreg).*$", re.M)

# Own kernels may be launched before those in front of them have ended, from this architecture on.
EARLY = 90
TARGET = re.compile(r"^\.target sm_(\d+)", re.M)
WAIT = re.compile(r"\bgriddepcontrol\.wait;")
ACCESS = re.compile(r"\b(?:ld|st|cp)\.(?!param|shared\b|local)[.\w]+")

ENTRY = re.compile(r"^(?:\.\w+ )*\.entry (\w+)\(", re.M)
SPILLS = re.compile(r"Function properties for (\w+)\n.*?(\d+) bytes spill stores, (\d+) bytes spill loads")


def family_of(kernel):
    """contraction_tiles, of the mangled name of run_body<pp::cuda::contraction_tiles<...>>; nothing if it is of no family."""
    name = re.match(r"_ZN2pp4cuda\d+run_(?:body|body_of|roles)INS0_(\d+)(\w+)", kernel)
    return name[2][:int(name[1])] if name else ""


def problems(ptx, report):
    """What is wrong with the kernels of a PTX file, and with what `ptxas -v` reports of them, a line each."""
    parts = ENTRY.split(ptx)
    kernels = dict(zip(parts[1::2], parts[2::2]))
    seen = set()
    for name, text in kernels.items():
        family = family_of(name)
        seen.add(family)
        for what, pattern in FAMILIES.get(family, []):
            if not pattern.search(text):
                yield f"{name}: no {what}"
        if family in WGMMA:
            steps = len(re.findall(r"\bwgmma\.mma_async\.", text))
            if steps != WGMMA_STEPS:
                yield f"{name}: {steps} multiplications in its code, not {WGMMA_STEPS}"
            if MULTIPLIES[1].search(text):
                yield f"{name}: an mma.sync"
    yield from (f"there is no {family}" for family in FAMILIES if family not in seen)
    target = TARGET.search(ptx)
    if target and int(target[1]) >= EARLY:
        for name, text in kernels.items():
            access, wait = ACCESS.search(text), WAIT.search(text)
            if family_of(name) and (not wait or access and access.start() < wait.start()):
                yield f"{name}: accesses memory before griddepcontrol.wait"
    yield from (f"ptxas: {line.strip()}" for line in SLOW.findall(report))
    spills = {name: (int(stored), int(loaded)) for name, stored, loaded in SPILLS.findall(report)}
    yield from (f"{name}: nothing is reported of it" for name in kernels if name not in spills)
    for name, (stored, loaded) in spills.items():
        if stored or loaded:
            yield f"{name}: spills {stored} bytes, loads {loaded}"


def compiled(arguments, architecture, folder):
    """The PTX of the source, and what ptxas reports of it."""
    ptx = folder / "program.ptx"
    subprocess.run([arguments.compiler, "-std=c++20", "-O2", "-ptx", f"-arch=compute_{architecture}",
                    *(f"-I{include}" for include in arguments.include), "-o", ptx, arguments.source], check=True)
    ptxas = Path(arguments.compiler).with_name("ptxas")
    result = subprocess.run([ptxas, "-v", f"-arch=sm_{architecture}", "-o", folder / "program.cubin", ptx], check=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ptx.read_text(), result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--compiler", default="")
    parser.add_argument("--include", nargs="*", default=[])
    parser.add_argument("--architectures", nargs="+", default=["80", "90a"])
    parser.add_argument("--families", nargs="+", default=sorted(FAMILIES))
    arguments = parser.parse_args()
    wanted = {name: (FAMILIES | WGMMA)[name] for name in arguments.families}
    FAMILIES.clear()
    FAMILIES.update(wanted)
    if not Path(arguments.compiler).is_file():
        print("skipped: there is no nvcc")
        return SKIPPED
    failed = False
    for architecture in arguments.architectures:
        with tempfile.TemporaryDirectory() as folder:
            ptx, report = compiled(arguments, architecture, Path(folder))
        found = list(problems(ptx, report))
        print(f"sm_{architecture}: {len(ENTRY.findall(ptx))} kernels,", "as they are meant" if not found else "but")
        print(*(f"  {problem}\n" for problem in found), sep="", end="")
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
