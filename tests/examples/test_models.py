#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the example `models` prints: parameters as published, the work of one multiplication and one addition for each weight that an input meets, and plans."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
# Parameters, and billions of multiply-adds of a sample, as the papers or torchvision have them.
PUBLISHED = {
    "alexnet-one-tower": (61_100_840, 0.714), "resnet-18": (11_689_512, 1.814), "resnet-50": (25_557_032, 4.089),
    "wide-resnet-50-2": (68_883_240, 11.398), "wrn-28-10": (36_479_194, 5.2), "vit-b-16": (86_567_656, 17.564),
    "amoebanet-d-18-208": (81_505_540, None), "unet-5-64": (232_687_328, None), "gpt2": (124_439_808, None),
    "llama2-70b": (68_976_648_192, None), "llama3-8b": (8_030_261_248, None), "bert-base": (109_482_240 + 2 * 768 + 2, None),
}


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Models(unittest.TestCase):
    def test_parameters_and_work_are_those_published(self):
        done = run()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()[1:]}
        for name, (parameters, work) in PUBLISHED.items():
            with self.subTest(name):
                self.assertEqual(int(rows[name][0].replace(",", "")), parameters)
                if work is not None:  # and some more for norms, activations and pools
                    self.assertGreater(float(rows[name][1]), 1.98 * work)
                    self.assertLess(float(rows[name][1]), 2.08 * work)
        for name, row in rows.items():
            with self.subTest(name):
                self.assertTrue(1 <= float(row[2]) < 1.5)

    def test_a_model_is_explained(self):
        done = run("resnet-18")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?s)Conv2d<64, 7.*MaxPool2d.*Linear<1000>")

    def test_an_unknown_name_is_refused(self):
        done = run("resnet-17")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, "^models: .*resnet-17")


if __name__ == "__main__":
    unittest.main()
