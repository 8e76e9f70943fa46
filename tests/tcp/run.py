#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Starts a program of tests in some processes, by the variables RANK and WORLD_SIZE, and looks at the word of each.

    run.py PROCESSES PROGRAM [ARGUMENT...]
"""
import re
import sys

from job import Job


def main():
    number, command = int(sys.argv[1]), sys.argv[2:]
    job = Job(*[command] * number)
    outputs = job.end(timeout=300)
    text = "".join(outputs.values())
    good = set(re.findall(rf"process (\d+) of {number}: good", text))
    if not any(job.codes().values()) and len(good) == number:
        print(f"{number} processes are good")
        return 0
    print(f"{text}\n{len(good)} of {number} processes are good; exit codes {job.codes()}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
