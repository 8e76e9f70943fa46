# SPDX-License-Identifier: BSL-1.0
"""The example `schedules`, the first argument of a test: what it prints, and the rows of its tables by schedule."""
import csv
import io
import subprocess
import sys

PROGRAM = sys.argv.pop(1)


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(*arguments):
    done = run(*arguments)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def rows(*arguments):
    return {row["schedule"]: row for row in csv.DictReader(io.StringIO(answer("--format", "csv", *arguments)))}
