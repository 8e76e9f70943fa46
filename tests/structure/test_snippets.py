#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The snippet checker accepts equal code and names the first line that differs."""
import tempfile
import unittest
from pathlib import Path

from snippets import check

SOURCE = "int main() {\n  // [body]\n  int a = 1;\n    f(a);\n  // [/body]\n}\n"
GOOD = "# Title\n\n<!-- snippet: examples/a.cpp body -->\n```cpp\nint a = 1;\n  f(a);\n```\nmore\n"


class Snippets(unittest.TestCase):
    def problems(self, document, source=SOURCE, update=False):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "examples").mkdir()
            (root / "examples/a.cpp").write_text(source)
            (root / "README.md").write_text(document)
            found = check(root, update)
            self.after = (root / "README.md").read_text()
            return found

    def test_equal_code_passes(self):
        self.assertEqual([], self.problems(GOOD))

    def test_a_difference_is_named(self):
        problems = self.problems(GOOD.replace("f(a)", "g(a)"))
        self.assertEqual(1, len(problems))
        self.assertTrue(problems[0].startswith("README.md:6: differs from examples/a.cpp [body]"), problems)

    def test_missing_and_additional_lines(self):
        self.assertEqual(1, len(self.problems(GOOD.replace("  f(a);\n", ""))))
        self.assertEqual(1, len(self.problems(GOOD.replace("  f(a);\n", "  f(a);\nf(b);\n"))))

    def test_what_is_named_must_exist(self):
        self.assertIn("no file", self.problems(GOOD.replace("a.cpp", "b.cpp"))[0])
        self.assertIn("no region", self.problems(GOOD.replace("body", "head"))[0])
        self.assertIn("no region", self.problems(GOOD, SOURCE + SOURCE)[0])
        self.assertIn("no fenced code block", self.problems("<!-- snippet: examples/a.cpp body -->\ntext\n")[0])
        self.assertIn("has no end", self.problems(GOOD.replace("```\nmore", "more"))[0])

    def test_a_mark_inside_a_code_block_is_text(self):
        self.assertEqual([], self.problems("```\n<!-- snippet: nowhere.cpp x -->\n```\n"))

    def test_update_writes_the_source(self):
        self.assertEqual([], self.problems(GOOD.replace("f(a)", "g(a)"), update=True))
        self.assertEqual(GOOD, self.after)


if __name__ == "__main__":
    unittest.main()
