#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of decisions.py: each of its rules is broken once, and found."""
import tempfile
import unittest
from pathlib import Path

import decisions

PAGE = "# A thing is so\n\n**Question.** Why is it so?\n\n**Decision.** So.\n\n**Why.** Since.\n\n**What would change it.** Time.\n"
ROW = "| Why is it so? | [A thing is so]({}) |\n"


class Decisions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def problems(self, pages, index=None):
        for name, text in pages.items():
            (self.folder / name).write_text(text)
        (self.folder / "README.md").write_text("".join(ROW.format(name) for name in pages) if index is None else index)
        return list(decisions.check(self.folder))

    def test_a_page_with_its_row(self):
        self.assertEqual([], self.problems({"1.md": PAGE}))

    def test_as_many_as_may_be_and_one_more(self):
        self.assertEqual([], self.problems({f"{n}.md": PAGE for n in range(decisions.MOST)}))
        self.assertIn(f"at most {decisions.MOST}", self.problems({f"{n}.md": PAGE for n in range(decisions.MOST + 1)})[0])

    def test_a_page_without_a_question(self):
        for text in (PAGE.replace("**Question.** Why is it so?", ""), PAGE.replace("so?", "so.")):
            self.assertEqual(["1.md: there is no **Question.** with a question mark"], self.problems({"1.md": text}))

    def test_a_page_without_a_section(self):
        self.assertEqual(["1.md: there is no **Why.**"], self.problems({"1.md": PAGE.replace("**Why.**", "")}))

    def test_a_page_too_long(self):
        self.assertIn(f"at most {decisions.WORDS}", self.problems({"1.md": PAGE + "word " * decisions.WORDS})[0])

    def test_rows_that_are_missing_doubled_different_or_too_many(self):
        row = ROW.format("1.md")
        for index in ("", row * 2, row.replace("Why", "How"), row.replace("thing", "part")):
            self.assertEqual(1, len(self.problems({"1.md": PAGE}, index)), index)
        self.assertEqual(["README.md: 2.md: there is no such decision"], self.problems({"1.md": PAGE}, row + ROW.format("2.md")))


if __name__ == "__main__":
    unittest.main()
