#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs that the interop example writes and reads.

test_interop.py PROGRAM [--torch]: with --torch both ways through PyTorch, skipped where no Python has it.
"""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from python import ROOT, python_with

PROGRAM = Path(sys.argv[1]).resolve()
CHECK = ROOT / "examples/interop/check.py"
NAMES = ["tokens.weight", "1.weight",
         *(f"2.{block}.{name}" for block in (0, 1) for name in
           ("0.0.weight", "0.0.bias", "0.1.in_proj_weight", "0.1.in_proj_bias", "0.1.out_proj.weight", "0.1.out_proj.bias",
            "1.0.weight", "1.0.bias", "1.1.weight", "1.1.bias", "1.3.weight", "1.3.bias")),
         "3.weight", "3.bias"]


HAS_TORCH = "--torch" in sys.argv
TORCH = python_with("torch") if HAS_TORCH else None


class Files(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name) / "nets"

    def tearDown(self):
        self.temporary.cleanup()

    def run_it(self, *command):
        result = subprocess.run([*command, "--folder", self.folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                encoding="utf-8")
        return result.returncode, result.stdout, result.stderr

    def agree(self, output):
        """Differences of the two nets, of outputs and of losses."""
        found = re.findall(r"^checked \w+: outputs of 64 samples differ by (\S+) of the largest, losses of 20 steps by (\S+)$", output, re.M)
        self.assertEqual(2, len(found), output)
        differences = [float(x) for both in found for x in both]
        self.assertLessEqual(max(differences), 1e-5)
        return differences

    def forget(self, name):
        """Sets the first array of a net's optimizer state to 0."""
        path = self.folder / f"{name}_optimizer.safetensors"
        data = bytearray(path.read_bytes())
        begin = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:begin])
        first, last = next(t["data_offsets"] for key, t in header.items() if key.endswith(".exp_avg_sq"))
        data[begin + first:begin + last] = bytes(last - first)
        path.write_bytes(data)


class Interop(Files):
    def test_what_is_written_is_read_again_bit_for_bit(self):
        code, output, errors = self.run_it(PROGRAM)
        self.assertEqual((0, ""), (code, errors))
        self.assertEqual([0, 0, 0, 0], self.agree(output))
        for first, last in re.findall(r"loss (\S+) -> (\S+) in", output):
            self.assertLess(float(last), 0.5 * float(first))
        data = (self.folder / "gpt.safetensors").read_bytes()
        header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
        self.assertEqual({"format": "pt"}, header.pop("__metadata__"))
        self.assertEqual(NAMES, list(header))
        self.assertEqual([48, 24], header["2.1.1.1.weight"]["shape"])

    def test_other_weights_give_other_outputs(self):
        self.run_it(PROGRAM, "make")
        path = self.folder / "mlp.safetensors"
        data = bytearray(path.read_bytes())
        data[-2:] = b"\0\x41"  # the last bias: 8 and something
        path.write_bytes(data)
        code, output, _ = self.run_it(PROGRAM, "check")
        self.assertEqual(1, code)
        self.assertRegex(output, r"(?m)^checked mlp: .*: too much$")
        self.assertRegex(output, r"(?m)^checked gpt: .* 0.0e\+00$")

    def test_another_state_gives_other_losses(self):
        self.run_it(PROGRAM, "make", "--steps", "8")
        self.forget("gpt")
        code, output, _ = self.run_it(PROGRAM, "check")
        self.assertEqual(1, code)
        self.assertRegex(output, r"(?m)^checked mlp: .* losses of 20 steps by 0.0e\+00$")
        self.assertRegex(output, r"(?m)^checked gpt: outputs of 64 samples differ by 0.0e\+00 of .*: too much$")

    def test_bad_input_is_one_sentence(self):
        def refused(says, *arguments):
            code, _, errors = self.run_it(PROGRAM, *arguments)
            self.assertIn(code, (1, 2))
            self.assertRegex(errors, rf"\Ainterop: [^\n]*{says}[^\n]*\n\Z")

        refused("cannot read .*nets/mlp.safetensors': No such file", "check")
        refused("sideways", "sideways")
        refused(r"--steps: needs a whole number of at least 0 and at most 2147483647, got '-1' \(", "--steps", "-1")
        self.run_it(PROGRAM, "make")
        (self.folder / "mlp_run.safetensors").write_bytes((self.folder / "gpt_run.safetensors").read_bytes())
        refused("mlp_run.safetensors': expected a tensor 'inputs' of 5120 F32", "check")


class Torch(Files):
    def in_torch(self, *arguments):
        code, output, errors = self.run_it(TORCH, "-W", "ignore", CHECK, *arguments)
        self.assertEqual("", errors)
        return code, output

    def test_pytorch_and_back(self):
        self.run_it(PROGRAM, "make")
        ours = (self.folder / "gpt.safetensors").read_bytes()
        code, output = self.in_torch()
        self.assertEqual(0, code, output)
        self.agree(output)
        self.assertNotEqual(ours, (self.folder / "gpt.safetensors").read_bytes())
        code, output, errors = self.run_it(PROGRAM, "check")
        self.assertEqual((0, ""), (code, errors))
        self.assertGreater(max(self.agree(output)), 0)  # another's numbers

    def test_a_run_goes_on_in_the_other(self):
        """From the start, and after some steps: so k steps in one and the rest in the other are all of them in either."""
        for steps in ("0", "8"):
            self.run_it(PROGRAM, "make", "--steps", steps)
            code, output = self.in_torch("--steps", steps)
            self.assertEqual(0, code, output)
            self.agree(output)
            code, output, errors = self.run_it(PROGRAM, "check")
            self.assertEqual((0, ""), (code, errors))
            self.agree(output)

    def test_pytorch_tells_a_difference(self):
        self.run_it(PROGRAM, "make", "--steps", "8")
        self.forget("mlp")
        path = self.folder / "gpt.safetensors"
        data = bytearray(path.read_bytes())
        data[-2:] = b"\0\x41"
        path.write_bytes(data)
        code, output = self.in_torch("check")
        self.assertEqual(1, code)
        self.assertEqual(2, len(re.findall(r"(?m)^checked \w+: .*: too much$", output)), output)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "Torch" if HAS_TORCH else "Interop"], verbosity=2)
