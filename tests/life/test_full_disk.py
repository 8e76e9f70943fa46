#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""A run whose disk is full, and then read-only, and then neither: it trains to its end each time, says what it could not write, and goes on from what
is there. The disk is a small one in memory, which a user may mount in a space of names.

    test_full_disk.py RUN
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from starts import SKIPPED

RUN = sys.argv[1]
# Starts PROGRAM FOLDER three times: with room for a checkpoint and a half in FOLDER/run; where nothing can be written; with room.
SCRIPT = r"""
set -eu
program=$1 folder=$2
starts() {
  echo "$2:"
  "$program" "$folder" "$1" 3 "$2" 2>&1 && ls "$folder/run"
}
mkdir "$folder/run" "$folder/elsewhere"
cd "$folder/elsewhere"
mount -t tmpfs -o size=12k none "$folder/run"
starts 10 sync
starts 14 async
mount -o remount,ro "$folder/run"
starts 18 sync
mount -o remount,rw,size=1m "$folder/run"
starts 24 async
"""


def in_a_space_of_names(*words):
    return subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", *words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False)


class FullDisk(unittest.TestCase):
    def test_a_run_on_a_full_disk(self):
        with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as folder:
            subprocess.run([RUN, whole, "24", "3", "sync"], check=True)
            end = in_a_space_of_names(SCRIPT, "sh", RUN, folder)
            self.assertEqual(0, end.returncode, end.stdout)
            full, still_full, read_only, room = re.split(r"^a?sync:\n", end.stdout, flags=re.MULTILINE)[1:]
            for said, reason, last in ((full, "No space left on device", 10), (still_full, "No space left on device", 14),
                                       (read_only, "Read-only file system", 18)):
                self.assertRegex(said, rf"pipe: cannot write '.*/run/step-6\.safetensors': {reason} \(the training goes on\)\n")
                self.assertRegex(said, rf"pipe: cannot write '.*': {reason}; it is in 'step-{last}\.safetensors'\nlatest\nlock\nstep-3\.safetensors\n$")
            self.assertIn("pipe: cannot save checkpoints in", read_only)
            self.assertNotIn("pipe:", room)
            told = (Path(folder) / "told").read_text().splitlines()
            self.assertEqual(["from 0", "from 3", "from 3", "from 3"], [line for line in told if line.startswith("from")])
            self.assertEqual(["step-10.safetensors", "step-14.safetensors", "step-18.safetensors"], sorted(os.listdir(Path(folder) / "elsewhere")))
            self.assertEqual(*((Path(of) / "end").read_bytes() for of in (whole, folder)))


if __name__ == "__main__":
    try:
        refused = in_a_space_of_names("mount -t tmpfs none /mnt")
    except FileNotFoundError:
        print("there is no unshare")
        sys.exit(SKIPPED)
    if refused.returncode != 0:
        print(f"no disk can be mounted: {refused.stdout}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
