#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Processes of one job whose programs are other builds of one source: they compute alike, or are refused by name.

    test_arithmetic.py BEST PORTABLE [COMMAND ...]

BEST has kernels for several instruction sets, PORTABLE is by the same compiler and has portable ones alone. COMMAND compiles the same by another
compiler; `-o PROGRAM` is added to it.
"""
import subprocess
import sys
import tempfile
import unittest

from job import Job

BEST, PORTABLE, COMMAND = "", "", []


def said(job):
    return {rank: [line.split(": ", 1)[1] for line in text.splitlines()] for rank, text in job.items()}


class Arithmetic(unittest.TestCase):
    def runs(self, *programs, case="train"):
        job = Job(*[[p, case] for p in programs])
        return said(job.end()), job.codes()

    def test_processes_of_one_build_take_its_best_kernels(self):
        lines, codes = self.runs(BEST, BEST)
        self.assertEqual(codes, {0: 0, 1: 0}, lines)
        self.assertEqual(lines[0], lines[1])
        self.assertRegex(lines[0][0], r"^(portable|AVX2|AVX-512)(, with the bits of AVX2)?$")

    def test_all_processes_take_the_kernels_that_all_have(self):
        alone, _ = self.runs(PORTABLE, PORTABLE)
        for programs in ((BEST, PORTABLE), (PORTABLE, BEST)):
            lines, codes = self.runs(*programs)
            self.assertEqual(codes, {0: 0, 1: 0}, lines)
            self.assertEqual(lines[0], lines[1])
            self.assertEqual(lines[0], alone[0])  # what is said of the kernels, and the bits of loss and parameters
            self.assertRegex(lines[0][0], "^portable$")

    def test_replicas_a_step_late_are_refused(self):
        best, _ = self.runs(BEST, BEST)
        if best[0][0].startswith("portable"):
            self.skipTest("this machine has portable kernels alone")
        lines, codes = self.runs(BEST, PORTABLE, case="delay")
        for rank in 0, 1:
            self.assertRegex("\n".join(lines[rank]), r"process 1 computes otherwise than process 0: its kernels are portable, and not (AVX2|AVX-512): "
                                                     r"start the same program in all processes")
            self.assertNotEqual(codes[rank], 0)

    def test_another_compiler_computes_alike(self):
        if not COMMAND:
            self.skipTest("there is no other compiler")
        with tempfile.TemporaryDirectory() as folder:
            other = f"{folder}/arithmetic"
            subprocess.run([*COMMAND, "-o", other], check=True)
            lines, codes = self.runs(PORTABLE, other)
        self.assertEqual(codes, {0: 0, 1: 0}, lines)
        self.assertEqual(lines[0], lines[1])
        self.assertEqual(lines[0], self.runs(PORTABLE, PORTABLE)[0][0])


if __name__ == "__main__":
    BEST, PORTABLE, *COMMAND = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
