#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Every call that a signal may interrupt is interrupted once, and every transfer is cut short: programs do what they do otherwise, with the same bits.

    test_interruptions.py STRIKE RUN RUN_BY_SOCKETS PAGE PIPE_RUN
"""
import http.client
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from starts import SKIPPED, Starts, is_skipped

STRIKE, RUN, BY_SOCKETS, PAGE, PIPE_RUN = sys.argv[1:6]
# The calls that must have been struck at: a program that makes others instead is no test of these any more.
OF_FILES = {"interrupt": {"openat", "write", "pread64", "fsync", "flock", "ftruncate", "close", "futex"}, "short": {"write", "pread64"}}
OF_SOCKETS = {"interrupt": {"sendto", "recvfrom", "poll", "accept4", "connect", "epoll_wait", "read", "write", "clock_nanosleep"},
              "short": {"sendto", "recvfrom"}}


class Interruptions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def trains(self, launcher, program, processes, way, mode):
        """Trains in two starts. Returns what was struck at, in any process."""
        folder = self.root / f"{launcher} {way} {mode}"
        folder.mkdir()
        struck = set()
        for steps in (11, 24):
            starts = Starts(launcher, STRIKE, [program, str(folder), str(steps), "3", mode], folder)
            code, output = starts.start(processes, {process: way for process in range(processes)} if way else {})
            self.assertEqual(0, code, output)
            for process in range(processes):
                struck.update(starts.struck(process))
        self.assertEqual([], list(folder.rglob("*.tmp-*")))
        self.assertEqual(2, len(list(folder.glob("run/step-*[0-9].safetensors"))))
        self.ends.add((folder / "end").read_bytes())
        self.rows.add(tuple(line.split(",")[0] for line in (folder / "metrics.csv").read_text().splitlines()))
        return struck

    def test_a_run(self):
        for launcher, program, processes, modes, calls in (("none", RUN, 1, ("sync", "async"), OF_FILES),
                                                           ("sockets", BY_SOCKETS, 4, ("async",), OF_SOCKETS)):
            self.ends, self.rows = set(), set()
            self.trains(launcher, program, processes, "", "sync")
            for way in ("interrupt", "short"):
                struck = set()
                for mode in modes:
                    with self.subTest(launcher=launcher, way=way, mode=mode):
                        struck |= self.trains(launcher, program, processes, way + ":getsid", mode)
                self.assertLessEqual(calls[way], struck)
            self.assertEqual((1, 1), (len(self.ends), len(self.rows)))

    def test_a_page(self):
        for way in ("interrupt", "short"):
            with self.subTest(way):
                report = self.root / way
                with subprocess.Popen([STRIKE, way + ":getsid", str(report), PAGE], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
                    address = re.match(r"http://(.*)/$", server.stdout.readline().strip())[1]
                    for _ in range(3):
                        asks = http.client.HTTPConnection(address, timeout=20)
                        asks.request("GET", "/")
                        answer = asks.getresponse()
                        self.assertEqual((200, "x" * 100_000), (answer.status, answer.read().decode()))
                        asks.close()
                    server.communicate(timeout=20)
                self.assertEqual(0, server.returncode)
                expected = {"interrupt": {"poll", "accept4", "sendto", "recvfrom"}, "short": {"sendto", "recvfrom"}}
                self.assertLessEqual(expected[way], {line.split()[0] for line in report.read_text().splitlines()})

    def test_the_launcher(self):
        program = ["sh", "-c", 'echo "$RANK of $WORLD_SIZE"; test $PIPE_RESTART = 1 || exit 3']
        for way in ("interrupt", "short"):
            with self.subTest(way):
                report = self.root / way
                launch = [PIPE_RUN, "-n", "2", "--restarts", "1", "--back-off", "0.1", "--prefix"]
                end = subprocess.run([STRIKE, way + ":signalfd4", str(report), *launch, *program], text=True, capture_output=True, timeout=60, check=False)
                self.assertEqual(0, end.returncode, end.stderr)
                self.assertEqual({"[0] 0 of 2", "[1] 1 of 2"}, set(end.stdout.splitlines()))
                self.assertRegex(end.stderr, r"^pipe-run: process \d ended with exit status 3, .*\npipe-run: 2 processes ended well after 1 restart, .*\n$")
                none = subprocess.run([STRIKE, way + ":signalfd4", str(report) + ".none", PIPE_RUN, "no such program"], text=True, capture_output=True,
                                      timeout=60, check=False)
                self.assertEqual(127, none.returncode, none.stderr)
                expected = {"interrupt": {"poll", "read", "write", "waitid"}, "short": {"read", "write"}}
                self.assertLessEqual(expected[way], {line.split()[0] for line in report.read_text().splitlines()})


if __name__ == "__main__":
    if is_skipped(STRIKE):
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
