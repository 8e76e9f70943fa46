#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the example `models` prints: parameters as published, the work of one multiplication and one addition for each weight that an input meets, and plans."""
import json
import math
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
SIZES = Path(__file__).parent.parent / "golden" / "zoo"  # names and shapes of the hubs' models, which zoo.py there wrote
NOT_IN_A_HUB = {"alexnet", "wrn-28-10", "amoebanet-d-18-208", "amoebanet-d-18-256", "unet-5-64", "t-6-8192-16", "t-64-16384-32"}
# What the first files of a hub called otherwise.
OLDER_NAMES = {
    "bert-base": {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"},
    "vit-b-16": {".mlp.0.": ".mlp.linear_1.", ".mlp.3.": ".mlp.linear_2."},
}
# Parameters, and billions of multiply-adds of a sample, as the papers or torchvision have them.
PUBLISHED = {
    "alexnet-one-tower": (61_100_840, 0.714), "resnet-18": (11_689_512, 1.814), "resnet-50": (25_557_032, 4.089),
    "wide-resnet-50-2": (68_883_240, 11.398), "wrn-28-10": (36_479_194, 5.2), "vit-b-16": (86_567_656, 17.564),
    "amoebanet-d-18-208": (81_505_540, None), "unet-5-64": (232_687_328, None), "gpt2": (124_439_808, None),
    "llama2-70b": (68_976_648_192, None), "llama3-8b": (8_030_261_248, None), "bert-base": (109_482_240 + 2 * 768 + 2, None),
}


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def tensors_of(size):
    """The names and shapes in a file of a hub."""
    return [(line.split()[0], [int(n) for n in line.split()[1:]]) for line in size.read_text().splitlines()]


def renamed(name, names):
    for here, there in names.items():
        name = name.replace(here, there)
    return name


def file_of(tensors, path):
    """A safetensors file of names and shapes, all zeros, without a block on the disk for them."""
    header, size = {}, 0
    for name, shape in tensors:
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [size, size + 4 * math.prod(shape)]}
        size += 4 * math.prod(shape)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    with path.open("r+b") as file:
        file.truncate(8 + len(text) + size)
    return str(path)


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

    def check_fits(self, done):
        self.assertRegex(done.stdout, r"^(\d+) of \1 parameters are in the file, in their shapes\n$")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_files_of_hubs_fit(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "weights"
            for size in sorted(SIZES.glob("*.names")):
                with self.subTest(size.stem):
                    name, tensors = size.stem.split(".")[0], tensors_of(size)
                    self.check_fits(run(name, "--weights", file_of(tensors, path)))

                    lacks = run(name, "--weights", file_of(tensors[1:] + [("other", [3])], path))
                    self.assertEqual((lacks.returncode, lacks.stderr), (1, ""))
                    self.assertRegex(lacks.stdout, rf"^not in the file: {tensors[0][0]}\nnot in the model: other\n\d+ of \d+ parameters")

                    tensors[0][1][0] += 1
                    wrong = run(name, "--weights", file_of(tensors, path))
                    self.assertEqual((wrong.returncode, wrong.stdout), (1, ""))
                    self.assertIn(f"tensor '{tensors[0][0]}': expected shape", wrong.stderr)

    def test_older_files_of_hubs_fit(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, names in OLDER_NAMES.items():
                with self.subTest(name):
                    tensors = [(renamed(there, names), shape) for there, shape in tensors_of(SIZES / f"{name}.names")]
                    self.check_fits(run(name, "--weights", file_of(tensors, Path(folder) / "weights")))

    def test_all_models_of_hubs_have_their_names(self):
        listed = {line.split()[0] for line in run().stdout.splitlines()[1:]}
        self.assertEqual(listed - {size.stem.split(".")[0] for size in SIZES.glob("*.names")}, NOT_IN_A_HUB)

    def test_weights_are_those_of_a_model(self):
        done = run("--weights", "x")
        self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_an_unknown_name_is_refused(self):
        done = run("resnet-17")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, "^models: .*resnet-17")


if __name__ == "__main__":
    unittest.main()
