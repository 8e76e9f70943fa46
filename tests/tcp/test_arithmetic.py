#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Processes of one job whose programs are other builds of one source: they compute alike, or are refused by name.

    test_arithmetic.py BEST PORTABLE AMX [COMMAND ...]

BEST has kernels for several instruction sets, PORTABLE is by the same compiler and has portable ones alone, AMX those of BEST and
products of BF16 with the bits of AMX. COMMAND compiles the same by another
compiler; `-o PROGRAM` is added to it.
"""
import subprocess
import sys
import tempfile
import unittest

from job import Job

BEST, PORTABLE, AMX, COMMAND = "", "", "", []


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

    def test_products_of_bf16_are_of_one_arithmetic(self):
        of_amx, codes = self.runs(AMX, AMX, case="bf16")
        self.assertEqual(codes, {0: 0, 1: 0}, of_amx)
        self.assertEqual(of_amx[0], of_amx[1])
        alone, _ = self.runs(BEST, BEST, case="bf16")
        for programs in ((AMX, BEST), (BEST, AMX)):
            lines, codes = self.runs(*programs, case="bf16")
            self.assertEqual(codes, {0: 0, 1: 0}, lines)
            self.assertEqual(lines[0], lines[1])
            self.assertEqual(lines[0], alone[0])
        fp32, _ = self.runs(AMX, AMX)
        self.assertNotIn("AMX", fp32[0][0])
        if "AMX" not in of_amx[0][0]:
            self.skipTest("this machine has no AVX-512")
        self.assertEqual(of_amx[0][0], "AVX-512 and emulated AMX, with the bits of AVX-512 and AMX")
        self.assertNotEqual(of_amx[0][1], alone[0][1])
        lines, codes = self.runs(AMX, BEST, case="delay_bf16")
        for rank in 0, 1:
            self.assertRegex("\n".join(lines[rank]), r"process 1 computes otherwise than process 0: its kernels are AVX2, and not AVX-512 and AMX: ")
            self.assertNotEqual(codes[rank], 0)

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
    BEST, PORTABLE, AMX, *COMMAND = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
