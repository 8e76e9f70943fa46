#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Starts processes that measure their own memory beside the plan: peak.py PROGRAM LEVEL."""
import re
import sys
import tempfile

from job import Job


def main():
    program, level = sys.argv[1:]
    wrong = []
    for processes in (1, 2, 4):
        if level == "stages" and processes == 1:
            continue
        with tempfile.TemporaryDirectory() as folder:
            output = "".join(Job(*[[program, level, folder]] * processes).end(300).values())
        good = re.findall(rf"process \d+ of {processes}: good", output)
        if len(good) != processes:
            wrong.append(f"{processes} processes:\n{output}")
    print("\n".join(wrong) or "no process has more than its plan and the bound")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
