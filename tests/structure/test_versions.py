#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""versions.py sees each place that has another version."""
import shutil
import tempfile
import unittest
from pathlib import Path

from versions import CONFIG, PLACES, problems

ROOT = Path(__file__).resolve().parents[2]
PORT = "packaging/vcpkg/pipe/vcpkg.json"


class Versions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in {CONFIG, PORT, *(place[0] for place in PLACES)}:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)

    def test_the_tree_has_one_version(self):
        self.assertEqual([], list(problems(self.root)))

    def test_another_number_differs_from_every_place(self):
        config = (self.root / CONFIG).read_text()
        (self.root / CONFIG).write_text(config.replace("#define PIPE_VERSION ", "#define PIPE_VERSION 9"))
        self.assertEqual(len(PLACES) + 1, len(list(problems(self.root))))

    def test_a_place_without_a_version(self):
        for name, _, _ in PLACES:
            text = (self.root / name).read_text()
            (self.root / name).write_text("")
            self.assertTrue(all(problem.startswith(f"{name}: nothing is like ") for problem in problems(self.root)))
            self.assertTrue(list(problems(self.root)), name)
            (self.root / name).write_text(text)


if __name__ == "__main__":
    unittest.main()
