#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Mutates the kernels of a program on the executor of PTX, one instruction at a time, and prints how many mutants are killed.

    run.py PROGRAM [--sample N]

Without --sample, all of them: some minutes. A mutant is killed by an error of the executor or by any other bit in the program's results. The
survivors of EQUIVALENT are those that no run of this program can tell apart, with the reason. Any other is an error: a check is missing, or
the instruction is not needed.
"""
import argparse
import collections
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cuda"))
sys.dont_write_bytecode = True
from device_code import family_of  # noqa: E402

IDLE = "the groups that it waits for are empty: no copy is under way"
LAST = "no phase after it uses what those before it wrote or read in shared memory"
FIRST_STAGES = "what follows writes the first stages alone, which the last turn does not use"
BEHIND = "the first operands of the slab behind a product's only one, which nothing multiplies"

# (kernel family, kind): (the most survivors, why they are equivalent)
EQUIVALENT = {
    ("attention_forward", "wait"): (1, IDLE),
    ("attention_key_gradients", "wait"): (1, IDLE),
    ("attention_query_gradients", "wait"): (1, IDLE),
    ("contraction_tiles", "wait"): (12, IDLE),
    ("attention_forward", "barrier"): (1, LAST),
    ("attention_key_gradients", "barrier"): (1, LAST),
    ("attention_query_gradients", "barrier"): (1, LAST),
    ("add_up_kernel", "barrier"): (1, LAST),
    ("column_sums_kernel", "barrier"): (1, LAST),
    ("count_digits_kernel", "barrier"): (1, LAST),
    ("judge_kernel", "barrier"): (1, LAST),
    ("place_rows_kernel", "barrier"): (2, LAST),
    ("sum_squares_kernel", "barrier"): (1, LAST),
    ("contraction_tiles", "barrier"): (2, FIRST_STAGES),
    ("contraction_tiles", "shared"): (8, BEHIND),
    ("wgmma_tiles", "barrier"): (2, LAST),  # of a block's only tile
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--sample", type=int)
    arguments = parser.parse_args()
    environment = os.environ | ({"PIPE_PTX_SAMPLE": str(arguments.sample)} if arguments.sample else {})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mutants"
        ended = subprocess.run([arguments.program], env=environment | {"PIPE_PTX_MUTANTS": str(file)})
        if ended.returncode not in (0, 1):
            return f"the program ended with {ended.returncode}"
        mutants = [line.split("\t") for line in file.read_text().splitlines()]
    survivors = collections.defaultdict(list)
    for outcome, kind, _, kernel, line, instruction in mutants:
        if outcome == "survived":
            survivors[family_of(kernel), kind].append(f"line {line}: {instruction}")
    wrong = False
    for (family, kind), which in sorted(survivors.items()):
        most, reason = EQUIVALENT.get((family, kind), (0, ""))
        wrong = wrong or len(which) > most
        print(f"{family}, {kind}: {len(which)} survived;", reason if len(which) <= most else f"{most} are known to be equivalent")
        if len(which) > most:
            print(*(f"  {text}" for text in which), sep="\n")
    alive = sum(len(which) for which in survivors.values())
    print(f"{len(mutants) - alive} of {len(mutants)} mutants killed, {alive} survived")
    return "a mutant is not killed, and not known to be equivalent" if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
