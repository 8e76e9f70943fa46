#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The main job in several processes: the weights of one, under schedules with and without a barrier.

    test_gpt_processes.py GPT GPT_OF_A_TRANSPORT LAUNCHER
"""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mpi"))
from run import PERMISSION  # noqa: E402

LAUNCHER, OF_TRANSPORT, GPT = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
MORE = {**PERMISSION, "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        (self.path / "text").write_text("the quick brown fox jumps over the lazy dog. " * 400)

    def tearDown(self):
        self.folder.cleanup()

    def weights(self, name, schedule, *command):
        result = subprocess.run([*command, "--data", "text", "--steps", "3", "--generate", "20", "--schedule", schedule, "--metrics", f"{name}.csv",
                                 "--checkpoints", name, "--save", f"{name}.safetensors"], cwd=self.path, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=600, env={**os.environ, **MORE})
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.count("step "), 3, "one process speaks:\n" + result.stdout)
        return (self.path / f"{name}.safetensors").read_bytes()

    def test_the_weights_are_those_of_one_process(self):
        for schedule, processes in (("1f1b", 4), ("zb-v", 2), ("steady zb-h2", 2), ("pipedream-2bw", 4)):
            with self.subTest(schedule=schedule):
                alone = self.weights("alone", schedule, GPT)
                self.assertEqual(alone, self.weights("several", schedule, LAUNCHER, "-n", str(processes), OF_TRANSPORT))
                for left in ("alone", "several"):
                    for file in (self.path / left).glob("*"):
                        file.unlink()
                    (self.path / f"{left}.csv").unlink()


if __name__ == "__main__":
    unittest.main()
