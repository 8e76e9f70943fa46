#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Layers are measured, their cut is compared with the cut by estimates, and the header has the printed times. No time is asserted."""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
LAYERS = 13


class Profile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_profile(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder.name)

    def test_times_and_cuts(self):
        result = self.run_profile("--repeats", "3", "--spread", "1e9", "--write", "net.hpp")
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        head, *lines = result.stdout.splitlines()
        self.assertRegex(head, r"^times of a micro-batch, of Waves: launches' medians of 3 training steps \(their middle half spans \d+ %\), ")
        header = (Path(self.folder.name) / "net.hpp").read_text()
        written = [[int(n) for n in re.findall(r"(\d+), +//", array)] for array in re.findall(r"\[\] = \{(.*?)\};", header, re.S)]
        self.assertEqual([LAYERS] * 3, [len(array) for array in written])
        shares = []
        for layer, line in enumerate(lines[1:1 + LAYERS]):
            cells = re.fullmatch(rf"{layer} \S+ +([\d.]+) us +([\d.]+) us +([\d.]+) us +([\d.]+) % +([\d.]+) %", line)
            self.assertIsNotNone(cells, line)
            for cell, array in zip(cells.groups(), written):
                self.assertAlmostEqual(float(cell), array[layer] / 1000, delta=0.051)
            shares.append([float(cell) for cell in cells.groups()[3:]])
        for all_shares in zip(*shares):
            self.assertAlmostEqual(100, sum(all_shares), delta=1)
        self.assertEqual("4 stages, zb-h1, by these times:", lines[1 + LAYERS])
        cuts = [re.fullmatch(r"(ByCost|by these times) +(0, \d+, \d+, \d+) +([\d.]+) [um]s +[\d.]+ % +[\d.]+ [um]s", line)
                for line in lines[-2:]]
        self.assertEqual(["ByCost", "by these times"], [cut[1] for cut in cuts])
        # The slowest stage by these times is the sum of its layers' times, and no other cut has a faster one.
        def slowest(cut):
            ends = [int(n) for n in cut.split(", ")] + [LAYERS]
            return max(sum(sum(array[a:b]) for array in written) for a, b in zip(ends, ends[1:]))
        best = min(slowest(f"0, {a}, {b}, {c}") for a in range(1, LAYERS) for b in range(a + 1, LAYERS) for c in range(b + 1, LAYERS))
        self.assertEqual(best, slowest(cuts[1][2]))

    def test_times_that_are_not_sure_are_refused(self):
        busy = self.run_profile("--repeats", "2", "--spread", "-1", "--write", "net.hpp")  # as if the machine were busy
        self.assertEqual((1, ""), (busy.returncode, busy.stdout))
        self.assertRegex(busy.stderr, r"\Ameasure_layers: the middle half of a launch's times spans \d+ % of their median, more than [^\n]*\n\Z")
        self.assertEqual([], list(Path(self.folder.name).iterdir()))

    def test_bad_options(self):
        for arguments, words in [(("--repeats", "0"), "needs a whole number of at least 1"), (("--write", "no/where"), "no/where")]:
            refused = self.run_profile(*arguments)
            self.assertNotEqual(0, refused.returncode)
            self.assertIn(words, refused.stderr)


if __name__ == "__main__":
    unittest.main()
