#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of costs.py: what ninja and ctest have logged becomes the list, and a list that does not fit is found."""
import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import costs

LOG = """# ninja log v5
0	9000	1	tests/CMakeFiles/tests.base.dir/base/old.cpp.o	a
100	2600	1	tests/CMakeFiles/tests.base.dir/base/a.cpp.o	a
100	900	1	tests/CMakeFiles/tests.base.dir/base/b.cpp.o	a
200	31200	1	tests/tcp/CMakeFiles/tests.tcp.laws.dir/__/base/a.cpp.o	a
200	5200	1	tests/tests.base	a
2600	4600	1	tests/CMakeFiles/tests.base.dir/base/a.cpp.o	a
"""
RESULTS = """<testsuite><testcase name="base" time="3.04" status="run"/><testcase name="short" time="0.5" status="run"/>
<testcase name="skipped" time="9" status="notrun"/></testsuite>"""


class Costs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        self.build = self.root / "build"
        (self.root / "tests" / "base").mkdir(parents=True)
        (self.build).mkdir()
        for name in ("a.cpp", "b.cpp"):
            (self.root / "tests" / "base" / name).touch()
        (self.build / ".ninja_log").write_text(LOG)
        (self.build / "results.xml").write_text(RESULTS)
        (self.build / "left_out.txt").write_text("31 s: compile tests.tcp.laws tests/base/a.cpp")

    def test_the_newest_of_each_source_and_test_is_recorded(self):
        path = self.root / "tests" / "costs.txt"
        path.write_text("# A head.\n7.0 compile tests.base tests/base/gone.cpp\n8.0 compile other tests/base/b.cpp\n5.0 test before\n4.0 test base\n")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            costs.record(self.root, *costs.report(self.root, self.build))
        self.assertEqual(["8.0 compile other tests/base/b.cpp", "2.0 compile tests.base tests/base/a.cpp", "31.0 compile tests.tcp.laws tests/base/a.cpp",
                          "3.0 test base", "5.0 test before"], path.read_text().splitlines()[1:])
        self.assertIn("34 s to compile 3 sources", output.getvalue())
        self.assertIn("31 s: compile tests.tcp.laws", output.getvalue())
        self.assertEqual([], list(costs.check(self.root)))

    def test_a_list_that_does_not_fit_is_found(self):
        path = self.root / "tests" / "costs.txt"
        for line, problem in (("3.0 compile tests.base tests/base/gone.cpp", "tests.base has no tests/base/gone.cpp"),
                              ("3 test base", "not a line of costs: 3 test base"), ("3.0 compile tests/base/a.cpp", "not a line of costs")):
            path.write_text(line + "\n")
            self.assertIn(problem, "".join(costs.check(self.root)))


if __name__ == "__main__":
    unittest.main()
