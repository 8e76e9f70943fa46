#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Times follow from counts as the model says, and listings are read as they are written: test_cost_model.py"""
import unittest

import cost_model
import sass

NOTHING = dict.fromkeys(cost_model.KINDS, 0) | dict.fromkeys(
    ("operations", "generic", "load_accesses", "load_bytes", "load_sectors", "store_accesses", "store_bytes", "store_sectors",
     "shared_accesses", "shared_access_bytes", "shared_wavefronts", "shared_least"), 0)
GPU = cost_model.Gpu()


def row(kernel="k", grid=1320, launches=1, counted=1320, **counts):
    return NOTHING | {"kernel": kernel, "grid": grid, "shared_bytes": 0, "threads": 128, "launches": launches,
                      "blocks": grid * launches, "counted_blocks": counted} | counts


class CostModel(unittest.TestCase):
    def test_each_resource_takes_its_time(self):
        clocks = 132 * GPU.clocks_per_us
        self.assertAlmostEqual(cost_model.microseconds_of(row(floating=240))["issue"], 240 / (clocks * 2.4))
        self.assertAlmostEqual(cost_model.microseconds_of(row(division=10))["issue"], 120 / (clocks * 2.4))
        self.assertAlmostEqual(cost_model.microseconds_of(row(special=100))["special"], 200 / clocks)
        self.assertAlmostEqual(cost_model.microseconds_of(row(integer=100))["integer"], 50 / clocks)
        self.assertAlmostEqual(cost_model.microseconds_of(row(shared_wavefronts=90))["shared"], 100 / clocks)
        self.assertAlmostEqual(cost_model.microseconds_of(row(operations=4096, product=1))["tensor"], 1 / 0.62 / clocks)
        self.assertAlmostEqual(cost_model.microseconds_of(row(load_sectors=10**6))["memory"], 32e6 / GPU.memory_bytes)
        self.assertAlmostEqual(cost_model.microseconds_of(row(load_sectors=10**6, product=1))["cache"], 32e6 / GPU.cache_bytes)

    def test_moves_and_parameters_cost_nothing(self):
        self.assertEqual(cost_model.microseconds_of(row(move=1000, parameter=1000))["issue"], 0)

    def test_the_busiest_multiprocessor_decides(self):
        even = cost_model.microseconds_of(row(grid=132, floating=1000))["issue"]
        self.assertAlmostEqual(cost_model.microseconds_of(row(grid=133, floating=1000))["issue"], even * 2 * 132 / 133)
        self.assertAlmostEqual(cost_model.microseconds_of(row(grid=1, floating=1000))["issue"], even * 132)
        self.assertAlmostEqual(cost_model.microseconds_of(row(grid=66, load_sectors=1000))["memory"],
                               2 * cost_model.microseconds_of(row(load_sectors=1000))["memory"])

    def test_counts_are_of_a_step_in_the_long_run(self):
        one = [row("first", launches=3), row("each", grid=100, launches=4, counted=10, floating=7)]
        two = [row("first", launches=3), row("each", grid=100, launches=8, counted=10, floating=7)]
        rows = cost_model.per_step(two, one)
        self.assertEqual([r["kernel"] for r in rows], ["each"])
        self.assertEqual((rows[0]["launches"], rows[0]["floating"]), (4, 70))

    def test_parts_add_up(self):
        rows = [row("a", launches=2, load_sectors=10**6), row("b", launches=1, floating=10**8)]
        parts = cost_model.expected(rows, [(3, 17550, 1000), (1, 1755, 38 * 10**6)], lambda kernel: "rows" if kernel == "a" else "")
        self.assertEqual(set(parts), {"rows", "other", "cuBLASLt"})
        self.assertEqual((parts["rows"].launches, parts["rows"].limit), (2, "memory"))
        self.assertEqual(parts["other"].limit, "issue")
        self.assertAlmostEqual(parts["rows"].microseconds, 2 * (32e6 / GPU.memory_bytes + GPU.start_us))
        # The second one is bound by the bytes that it moves.
        self.assertAlmostEqual(parts["cuBLASLt"].microseconds, 4 * (10 + GPU.start_us))

    def test_a_file_of_counts_is_read(self):
        self.assertEqual(cost_model.read_counts(["kernel\tgrid\tlaunches\n", "k\t12\t3\n"]), [{"kernel": "k", "grid": 12, "launches": 3}])


LISTING = """\t.section\t.text.product,"ax",@progbits
.text.product:
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDSM.16.M88.4 R8, [R2] ;
.L_x_0:
        /*0020*/                   HMMA.16816.F32.BF16 R12, R8, R4, R12 ;
        /*0030*/              @!P0 BRA `(.L_x_0) ;
        /*0040*/               @P1 BRA `(.L_x_1) ;
        /*0050*/                   ST.E.64 desc[UR6][R2.64], R8 ;
        /*0060*/                   EXIT ;
        /*0070*/                   NOP ;
\t.section\t.text.rows,"ax",@progbits
        /*0000*/               @P0 BRA `(.L_x_2) ;
        /*0010*/                   FADD R1, R1, R2 ;
.L_x_2:
        /*0020*/                   EXIT ;
"""


MASKED = """\t.section\t.text.masked,"ax",@progbits
.L_x_0:
        /*0000*/                   HMMA.16816.F32.BF16 R12, R8, R4, R12 ;
        /*0010*/               @P0 BRA `(.L_x_1) ;
        /*0020*/                   FSEL R1, R1, -INF , !P1 ;
        /*0030*/                   FSEL R2, R2, -INF , !P2 ;
.L_x_1:
        /*0040*/               @P2 BRA `(.L_x_2) ;
        /*0050*/                   LDGSTS.E.BYPASS.128 [R25], desc[UR4][R194.64] ;
.L_x_2:
        /*0060*/              @!P0 BRA `(.L_x_0) ;
        /*0070*/                   EXIT ;
"""


class Listing(unittest.TestCase):
    def test_loops_are_found(self):
        kernels = sass.kernels(LISTING)
        self.assertEqual(list(kernels), ["product", "rows"])
        opcodes, branches = kernels["product"]
        self.assertEqual(branches, [(3, 2), (4, 1)])
        self.assertEqual(sass.main_loop(opcodes, branches), (2, 1))
        self.assertEqual(sum(opcode.startswith("ST.E") for opcode in opcodes), 1)

    def test_what_most_turns_leave_out_is_not_counted(self):
        self.assertEqual(sass.main_loop(*sass.kernels(MASKED)["masked"]), (5, 1))

    def test_a_kernel_without_products_has_no_main_loop(self):
        opcodes, branches = sass.kernels(LISTING)["rows"]
        self.assertEqual(branches, [(0, 2)])
        self.assertEqual(sass.main_loop(opcodes, branches), (0, 0))


if __name__ == "__main__":
    unittest.main()
