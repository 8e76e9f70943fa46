#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The GPT example as nvcc compiles it: it trains as on the CPU where there is a GPU, and says in one sentence that there is none elsewhere.

test_gpt_cuda.py PROGRAM
"""
import csv
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()
TEXT = "".join(f"{i} times {i + 1} makes {i * (i + 1)}.\n" for i in range(400))
SCHEDULES = ("1f1b", "gpipe", "interleaved", "zb-h1", "zb-v", "v-half")


def has_device():
    try:
        return subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout != b""
    except FileNotFoundError:
        return False


class GptOnCuda(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        (self.path / "text").write_text(TEXT)

    def tearDown(self):
        self.folder.cleanup()

    def run_gpt(self, *arguments):
        return subprocess.run([PROGRAM, "--data", "text", "--steps", "3", "--generate", "0", *arguments], cwd=self.path,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def losses(self, *arguments):
        name = f"metrics of run {len(list(self.path.iterdir()))}"
        result = self.run_gpt("--metrics", name, *arguments)
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        with open(self.path / name) as file:
            return [float(row["loss"]) for row in csv.DictReader(file)]

    def test_the_plan_needs_no_device(self):
        for schedule in SCHEDULES:
            result = self.run_gpt("--device", "cuda", "--plan", "--schedule", schedule)
            self.assertEqual((0, ""), (result.returncode, result.stderr))
            self.assertIn("rank 1  ", result.stdout)

    @unittest.skipIf(has_device(), "this machine has a GPU")
    def test_a_machine_without_a_gpu_is_told_in_one_sentence(self):
        result = self.run_gpt("--device", "cuda")
        self.assertEqual(1, result.returncode)
        self.assertRegex(result.stderr, r"\Agpt: no CUDA device[^\n]*\n\Z")
        self.assertFalse([line for line in result.stdout.splitlines() if line.startswith("step ")])
        self.assertEqual(3, len(self.losses()))  # while its processor trains

    @unittest.skipUnless(has_device(), "this machine has no GPU")
    def test_losses_are_those_of_the_cpu(self):
        expected = self.losses()
        for schedule in SCHEDULES:
            for ours, theirs in zip(self.losses("--device", "cuda", "--schedule", schedule), expected, strict=True):
                self.assertAlmostEqual(theirs, ours, delta=1e-4 * theirs)

    @unittest.skipUnless(has_device(), "this machine has no GPU")
    def test_text_on_the_device_changes_no_loss(self):
        self.assertEqual(self.losses("--device", "cuda"), self.losses("--device", "cuda", "--data-on-device"))

    def test_text_on_the_device_needs_the_device(self):
        result = self.run_gpt("--data-on-device")
        self.assertEqual((1, "gpt: --data-on-device needs --device cuda\n"), (result.returncode, result.stderr))

    @unittest.skipUnless(has_device(), "this machine has no GPU")
    def test_the_gpu_writes_what_the_host_writes(self):
        def text(*arguments):
            result = self.run_gpt("--device", "cuda", "--steps", "50", "--generate", "40", "--prompt", "12 times", *arguments)
            self.assertEqual((0, ""), (result.returncode, result.stderr))
            return result.stdout[result.stdout.index("\n12 times"):][:16]

        # Logits differ in their last bits, so that a draw may.
        self.assertEqual(text(), text("--generate-on-device"))

    def test_to_write_on_the_device_needs_the_device(self):
        result = self.run_gpt("--generate-on-device")
        self.assertEqual((1, "gpt: --generate-on-device needs --device cuda\n"), (result.returncode, result.stderr))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
