#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Files of the interop example in the hands of the safetensors package, and files of that package in the example's.

test_interop_safetensors.py PROGRAM: skipped where no Python has safetensors and numpy.
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from python import python_with

PROGRAM = Path(sys.argv[1]).resolve()
PYTHON = python_with("numpy", "safetensors")
READ = """
import sys
from safetensors import safe_open
with safe_open(sys.argv[1], "numpy") as f:
    print(f.metadata())
    for name in f.keys():
        t = f.get_tensor(name)
        print(name, t.dtype, t.shape, t.tobytes().hex()[:16])
"""
WRITE = """
import sys
from safetensors.numpy import load_file, save_file
tensors = load_file(sys.argv[1])
save_file({name: tensors[name] for name in sorted(tensors, reverse=True)}, sys.argv[1], {"by": "the package \\u00fc"})
"""


class Safetensors(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.run_it(PROGRAM, "make", "--folder", self.folder)

    def tearDown(self):
        self.temporary.cleanup()

    def run_it(self, *command):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        return result.stdout

    def test_the_package_reads_ours(self):
        for name in ("mlp", "gpt"):
            lines = self.run_it(PYTHON, "-c", READ, self.folder / f"{name}.safetensors").splitlines()
            self.assertEqual("{'format': 'pt'}", lines[0])
            self.assertTrue(all(" float32 (" in line for line in lines[1:]), lines)
            self.assertGreater(len(lines), 4)

    def test_headers_as_others_make_them(self):
        """What the package reads ours reads, and what it refuses ours refuses."""
        path = self.folder / "mlp.safetensors"
        ours = path.read_bytes()
        length = int.from_bytes(ours[:8], "little")
        header, data = ours[8:8 + length].decode().rstrip(), ours[8 + length:]
        body = json.loads(header)
        del body["__metadata__"]
        plain = json.dumps(body)
        further = json.dumps({name: {**tensor, "x": {"y": [1.5, None, True, "]"]}} for name, tensor in body.items()})
        verdicts = []
        for text in (plain, " " + plain, "\n" + plain, "\t" + plain, plain + "\r\n", plain + "\t ", plain + "\f", plain + "\0", "\ufeff" + plain,
                     further, further.replace("null", "NaN"), plain.replace("{", '{"__metadata__":null,', 1), plain.replace("{", '{"b":null,', 1),
                     plain.replace("{", '{"__metadata__":{"a":null},', 1), plain.replace("{", '{"__metadata__":null,"__metadata__":{},', 1)):
            with self.subTest(text=text[:60]):
                encoded = text.encode()
                path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)
                theirs = subprocess.run([PYTHON, "-c", READ, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
                mine = subprocess.run([PROGRAM, "check", "--folder", self.folder], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL).returncode == 0
                # What is between brackets that are passed over is not checked.
                self.assertEqual(theirs or "NaN" in text, mine)
                verdicts.append(theirs)
        self.assertTrue(any(verdicts) and not all(verdicts))

    def test_ours_reads_the_package_s(self):
        for name in ("mlp", "gpt"):
            path = self.folder / f"{name}.safetensors"
            ours = path.read_bytes()
            self.run_it(PYTHON, "-c", WRITE, path)
            self.assertNotEqual(ours, path.read_bytes())
        output = self.run_it(PROGRAM, "check", "--folder", self.folder)
        self.assertEqual(2, output.count("differ by 0.0e+00 of"), output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
