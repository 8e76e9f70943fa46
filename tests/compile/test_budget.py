#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The budget is one that can be exceeded: test_budget.py KIND COMPILER."""
import argparse
import contextlib
import io
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import budget

KIND, COMPILER = sys.argv[1:]
LIMIT = {"g++": "-fconstexpr-ops-limit", "clang++": "-fconstexpr-steps"}[KIND]
LOOP = "#include <vector>\nconstexpr int count(int n) {\n  int sum = 0;\n  for (int i = 0; i < n; ++i) sum += i % 3;\n  return sum;\n}\n"


class Budget(unittest.TestCase):
    def run_it(self, check, text):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "a.cpp")
            source.write_text(text)
            compiler = budget.Compiler(argparse.Namespace(compiler=COMPILER, include=[], source=source))
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                code = check(compiler, budget.budget_of(source, KIND))
            return code, said.getvalue()

    def loop(self, turns, limit):
        return f"// budget: {KIND} {LIMIT}={limit}\n{LOOP}static_assert(count({turns}) > 0);\n"

    def test_what_takes_more_is_refused(self):
        self.assertEqual(0, self.run_it(budget.limits, self.loop(100, 100000))[0])
        code, said = self.run_it(budget.limits, self.loop(200000, 100000))
        self.assertEqual(1, code)
        self.assertIn(f"over the budget: {LIMIT}=100000 ", said)

    def test_what_is_needed_is_found(self):
        self.assertRegex(self.run_it(budget.needed, self.loop(10000, 100000))[1], rf"\A{LIMIT}=\d{{5,6}} is needed")

    def test_other_errors_are_no_success(self):
        self.assertEqual(1, self.run_it(budget.limits, self.loop(2, 1000) + "int x = nothing;\n")[0])
        with self.assertRaises(SystemExit):
            self.run_it(budget.growth, self.loop(2, 1000) + "int x = nothing;\n")
        with self.assertRaises(SystemExit):
            self.run_it(budget.limits, LOOP)

    def test_work_that_grows_faster_than_the_model_is_refused(self):
        text = self.loop(2, 1000) + "".join(  # of many constants, since each has a limit
            f"static_assert(count(PIPE_BLOCKS * PIPE_BLOCKS * 8 + {i}) > 0);\n" for i in range(30))
        with unittest.mock.patch.object(budget, "TRIES", 1):
            self.assertEqual(1, self.run_it(budget.growth, text)[0])
        self.assertEqual(0, self.run_it(budget.growth, self.loop(2, 1000))[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
