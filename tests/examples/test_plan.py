#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Models larger than this machine are planned: their published sizes, every layer in one stage, no memory for parameters.

The page about plans shows what the program prints, and a file of the examples is a problem that it writes; with --update both are rewritten."""
import re
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
UPDATE = "--update" in sys.argv and not sys.argv.remove("--update")
ROOT = Path(__file__).resolve().parents[2]
PAGE, PROBLEM = ROOT / "docs/howto/plan_a_large_model.md", ROOT / "examples/schedules/gpt2.json"


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Plan(unittest.TestCase):
    def test_the_page_shows_what_is_printed(self):
        text = PAGE.read_text()
        shown = re.compile(r"(```text\n\$ examples/run\.sh plan\n)(.*?)(```)", re.S)
        printed = shown.sub(lambda match: match[1] + run().stdout + match[3], text)
        if UPDATE:
            PAGE.write_text(printed)
        self.assertEqual(text if not UPDATE else printed, printed)

    def test_a_problem_for_schedules_is_what_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "gpt2.json"
            self.assertEqual(run("gpt2-124m", "--problem", file).returncode, 0)
            if UPDATE:
                PROBLEM.write_text(file.read_text())
            self.assertEqual(file.read_text(), PROBLEM.read_text())
            refused = run("--problem", file)
            self.assertEqual((refused.returncode, refused.stderr), (1, "--problem needs the name of one model\n"))

    def test_published_sizes(self):
        sizes = dict(re.findall(r"^(\S+) +([\d,]+) ", run().stdout, re.M))
        self.assertEqual("124,439,808", sizes["gpt2-124m"])
        self.assertEqual("83,879,011,584", sizes["gpipe-83.9b"])
        self.assertEqual("174,604,259,328", sizes["gpt3-175b"])

    def test_every_layer_is_in_one_stage(self):
        printed = run("gpipe-83.9b").stdout
        stages = re.findall(r"^ +\d+ +\d+ +(\d+)-(\d+) ", printed, re.M)
        self.assertEqual(128, len(stages))
        self.assertEqual(0, int(stages[0][0]))
        for (_, last), (first, _) in zip(stages, stages[1:]):
            self.assertEqual(int(last) + 1, int(first))
        self.assertEqual(2 + 2 * 1663 + 2, int(stages[-1][1]) + 1)

    def test_no_memory_for_parameters(self):
        run("gpipe-83.9b")
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 1 << 20)  # kilobytes

    def test_an_unknown_name(self):
        refused = run("gpt5")
        self.assertNotEqual(0, refused.returncode)
        self.assertIn("gpt2-124m", refused.stderr)


if __name__ == "__main__":
    unittest.main()
