#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Failures of a pipeline over processes: all of them end soon, with a message that says what was wrong.

    test_failures.py LAUNCHER PROGRAM
"""
import re
import sys
import time
import unittest

from run import start

LAUNCHER, PROGRAM = sys.argv[1], sys.argv[2]
PROCESSES = 4


class Failures(unittest.TestCase):
    def ends(self, case, *expected, fails=True):
        """Runs a case; each expression of `expected` is in what the processes say. Returns that."""
        begin = time.monotonic()
        code, output = start(LAUNCHER, PROCESSES, [PROGRAM, case], timeout=60)
        self.assertIsNotNone(code, f"hangs:\n{output}")
        self.assertEqual(code != 0, fails, output)
        for expression in expected:
            self.assertRegex(output, re.compile(expression, re.MULTILINE))
        return output, time.monotonic() - begin

    def test_an_exception_reaches_all(self):
        self.ends("throws", r"^process 3: broken$",
                  *(rf"^process {p}: process 3 \(ranks 6 to 7\): broken$" for p in range(3)),
                  r"^process 0: this trainer is broken, as a run over several processes has failed: process 3 \(ranks 6 to 7\): broken$")

    def test_an_exit_ends_all(self):
        self.ends("exits")

    def test_a_killed_process_ends_all(self):
        self.ends("dies")

    def test_a_process_that_ends_early_fails_the_others(self):
        self.ends("ends_early", *(rf"^process {p}: process 1 has ended its trainer, which this one still runs$" for p in (0, 2, 3)))

    def test_other_plans_are_refused(self):
        self.ends("other_plan", r"^process 0: process 1 has another plan than process 0: start the same program in all processes$",
                  r"^process 1: process 0 has another plan than process 1: start the same program in all processes$")

    def test_more_processes_than_ranks_are_refused(self):
        self.ends("too_many_processes",
                  *(rf"^process {p}: MPI has started 4 processes for a pipeline of 2 ranks: start at most one for each rank$"
                    for p in range(PROCESSES)), fails=False)

    def test_trainers_end_in_peace(self):
        self.ends("nothing", *(rf"^process {p}: ends$" for p in range(PROCESSES)), fails=False)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
