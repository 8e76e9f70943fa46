#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""examples/run.sh, bench/run.sh and tests/run.sh say what they are without building anything, and a command that takes long shows its newest line in a
terminal."""
import os
import pty
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class RunSh(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("cmake", "examples", "bench", "tests"):
            (self.root / name).symlink_to(ROOT / name)

    def run_script(self, *arguments):
        return subprocess.run([self.root / "examples/run.sh", *arguments], text=True, capture_output=True)

    def test_help(self):
        for arguments, words in [(["--help"], "gpt --plan"), (["translate", "-h"], "translate --languages"), (["first_model", "--help"], "--processes N")]:
            with self.subTest(arguments=arguments):
                ended = self.run_script(*arguments)
                self.assertEqual((0, ""), (ended.returncode, ended.stderr))
                self.assertIn(words, ended.stdout)
                self.assertRegex(ended.stdout, "Examples: .*encoder_decoder.* gpt .*translate")
        self.assertFalse((self.root / "build").exists())

    def test_help_of_the_others(self):
        for script, words in [("bench/run.sh", r"NAME: against .* gpt_step "), ("tests/run.sh", r"--costs\]")]:
            for argument in ("-h", "--help"):
                with self.subTest(script=script, argument=argument):
                    ended = subprocess.run([self.root / script, argument], text=True, capture_output=True)
                    self.assertEqual((0, ""), (ended.returncode, ended.stderr))
                    self.assertRegex(ended.stdout, words)
        self.assertFalse((self.root / "build").exists())

    def test_an_unknown_example(self):
        ended = self.run_script("nothing", "--help")
        self.assertEqual(2, ended.returncode)
        self.assertIn("no example is called 'nothing'", ended.stderr)

    def in_terminal(self, command):
        script = f'set -euo pipefail; source "{self.root}/cmake/setup.sh"; quietly "{self.root}/log" bash -c "$0"; echo ended'
        try:
            child, terminal = pty.fork()
        except OSError as reason:
            self.skipTest(f"there is no terminal here: {reason}")
        if child == 0:
            os.execvp("bash", ["bash", "-c", script, command])
        output = b""
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # the end, as Linux says it
                break
            if not part:
                break
            output += part
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output.decode()

    def test_progress(self):
        code, output = self.in_terminal("echo '[1/2] Building CXX object a/b.dir/c.cpp.o'; echo '[2/2] Linking d/e'")
        self.assertEqual(0, code)
        self.assertRegex(output, r"\[1/2\] c\.cpp\.o\r.*\[2/2\] e\r.*ended")

    def test_a_failure_is_shown(self):
        code, output = self.in_terminal("echo 'x.cpp:1:1: error: no'; exit 3")
        self.assertEqual(1, code)
        self.assertRegex(output, r"\x1b\[Kx\.cpp:1:1: error: no\r\n")
        self.assertIn("failed: bash -c", output)


if __name__ == "__main__":
    unittest.main()
