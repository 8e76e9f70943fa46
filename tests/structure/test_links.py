#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of links.py: which links it follows, and which headings it knows."""
import tempfile
import unittest
from pathlib import Path

import links


class Links(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        (self.root / "docs").mkdir()
        (self.root / "docs/b.md").write_text("# A page\n\n## It's `op<1, 2>`: [why](x)\n\n## Twice\n\n## Twice\n\n```\n# no heading\n```\n")

    def faults_of(self, text):
        (self.root / "docs/a.md").write_text(text)
        return [fault for fault in links.check(self.root) if fault.startswith("docs/a.md")]

    def test_files_and_headings_that_are_there(self):
        for link in ("b.md", "b.md#a-page", "b.md#its-op1-2-why", "b.md#twice", "b.md#twice-1", "../docs", "#here", "https://a.b/c#d"):
            self.assertEqual([], self.faults_of(f"# Here\n\nsee [`x[0]`]({link}), there\n"), link)

    def test_files_and_headings_that_are_not(self):
        for link, why in (("c.md", "file"), ("b.md#a", "heading"), ("b.md#no-heading", "heading"), ("b.md#twice-2", "heading"), ("#there", "heading")):
            self.assertEqual([f"docs/a.md:3: {link}: there is no such {why}"], self.faults_of(f"# Here\n\n[x]({link})\n"), link)

    def test_code_is_not_followed(self):
        self.assertEqual([], self.faults_of("`a[i](c.md)`\n\n```\n[x](c.md)\n```\n"))

    def test_headings_of_the_page_are_those_behind_a_heading_with_a_link(self):
        self.assertIn("docs/b.md:3: x: there is no such file", list(links.check(self.root)))


if __name__ == "__main__":
    unittest.main()
