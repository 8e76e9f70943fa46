#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds planning to a budget that does not depend on the machine: limits that a compiler sets to one constant evaluation.

    budget.py limits SOURCE --kind KIND --compiler PROGRAM    compiles under the limits of the line `// budget: KIND LIMIT...`
    budget.py needed SOURCE --kind KIND --compiler PROGRAM    finds the least limits; a budget is about 1.5 times those
    budget.py growth SOURCE --kind KIND --compiler PROGRAM    compares eight times as many layers in processor time

What users compile is under the compilers' own limits, which are larger: the budget says when planning begins to grow.
"""
import argparse
import re
import resource
import subprocess
import sys
from pathlib import Path

BUDGET = re.compile(r"^// budget: (\S+) (.+)$", re.M)
BLOCKS = (12, 96)
# Twelve blocks are mostly the library's own headers, so linear planning is far below 8; a quadratic pass would be above.
MOST_GROWTH = 5
TICK = 0.01  # second: less is not measured
TRIES = 3  # processor time is noisy; one good ratio shows that it can be had
SHOWN = 8


class Compiler:
    def __init__(self, arguments):
        self.command = [arguments.compiler, "-std=c++20", "-fsyntax-only", *(f"-I{folder}" for folder in arguments.include)]
        self.source = arguments.source

    def run(self, *flags):
        """The errors, none if it compiles."""
        result = subprocess.run([*self.command, *flags, str(self.source)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, errors="replace")
        return (result.stdout or "it failed") if result.returncode != 0 else ""

    def seconds(self, blocks):
        """Processor time for a model of so many blocks."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        if errors := self.run(f"-DPIPE_BLOCKS={blocks}"):
            sys.exit(errors)
        return max(TICK, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)


def budget_of(source, kind):
    """The limits as (flag, number)."""
    found = [line for name, line in BUDGET.findall(source.read_text()) if name == kind]
    if len(found) != 1:
        sys.exit(f"{source.name}: expected one line `// budget: {kind} ...`, found {len(found)}")
    return [(flag, int(number)) for flag, number in (limit.split("=") for limit in found[0].split())]


def least(compiler, flag, enough):
    """The least limit under which it compiles, to 2 %."""
    low, high = 0, enough
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if compiler.run(f"{flag}={middle}") else (low, middle)
    return high


def limits(compiler, budget):
    errors = compiler.run(*(f"{flag}={number}" for flag, number in budget))
    if not errors:
        print("planning stays within", " ".join(f"{flag}={number}" for flag, number in budget))
        return 0
    over = [f"{flag}={number}" for flag, number in budget if compiler.run(f"{flag}={number}")]
    print("over the budget:", *over, "(budget.py needed says what it takes)")
    print("\n".join(line[:300] for line in errors.splitlines()[:SHOWN]))
    return 1


def needed(compiler, budget):
    for flag, number in budget:
        found = least(compiler, flag, 4 * number)
        print(f"{flag}={found} is needed, the budget {number} is {number / found:.2f} times that")
    return 0


def growth(compiler, _):
    for _ in range(TRIES):
        few, many = (compiler.seconds(blocks) for blocks in BLOCKS)
        print(f"{BLOCKS[1]} blocks take {many / few:.2f} times the processor time of {BLOCKS[0]}, at most {MOST_GROWTH}")
        if many <= MOST_GROWTH * few:
            return 0
    return 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["limits", "needed", "growth"])
    parser.add_argument("source", type=Path)
    parser.add_argument("--kind", required=True, choices=["g++", "clang++"])
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", nargs="*", default=[])
    arguments = parser.parse_args()
    check = {"limits": limits, "needed": needed, "growth": growth}[arguments.what]
    sys.exit(check(Compiler(arguments), budget_of(arguments.source, arguments.kind)))
