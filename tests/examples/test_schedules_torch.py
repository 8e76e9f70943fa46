#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""PyTorch's own schedule files, of the package that is installed: `schedules` reads them in both formats, and PyTorch reads what it writes.

Skipped without a Python whose torch has waits in its schedules, as 2.15 does: cmake/python.sh makes one.
"""
import csv
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from python import SKIPPED, python_with

PROGRAM = sys.argv.pop(1)
# Runs under the Python with torch: `write FOLDER` writes every schedule in both formats; `read FOLDER` reads NAME.RANKS.CHUNKS.MICRO_BATCHES.FORMAT.csv.
TORCH = '''
import sys
from pathlib import Path
from types import SimpleNamespace
import torch
from torch.distributed.pipelining import schedules as s

def stages(p, v, vee=False):
    of = lambda i: SimpleNamespace(num_stages=p * v, group_size=p, group_rank=0, stage_index=i, is_first=i == 0, is_last=i == p * v - 1,
                                   submod=torch.nn.Identity(), has_backward=True)
    return [of(2 * p - 1 if vee and c else c * p) for c in range(v)]

def write(folder):
    for name in ("LoopedBFS", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"):
        vee = name in ("ZBVZeroBubble", "DualPipeV")
        for p in (2, 3, 8):
            for v in (2,) if vee else (1, 2, 3):  # one stage a rank: 1F1B
                made = getattr(s, "Schedule" + name)(stages(p, v, vee), 2 * p, loss_fn=lambda *_: 0)
                made._prepare_schedule_with_comms(made.pipeline_order)
                for format in ("compute_only", "compute_comms"):
                    made._dump_csv(folder / f"{name}.{p}.{v}.{2 * p}.{format}.csv", format=format)
    for p in (2, 4):  # GPipe writes no file itself: that of its executor
        order = s.ScheduleGPipe(stages(p, 1)[0], 2 * p, loss_fn=lambda *_: 0)._get_pipeline_order()
        made = s._PipelineScheduleRuntime(stages(p, 1), 2 * p, loss_fn=lambda *_: 0)
        made.pipeline_order = {rank: [a for a in row if a is None or a.is_compute_op] for rank, row in order.items()}
        made._prepare_schedule_with_comms(made.pipeline_order)
        for format in ("compute_only", "compute_comms"):
            made._dump_csv(folder / f"GPipe.{p}.1.{2 * p}.{format}.csv", format=format)

def read(folder):
    for file in sorted(folder.glob("*.csv")):
        _, p, v, m, format = file.stem.split(".")
        made = s._PipelineScheduleRuntime(stages(int(p), int(v)), int(m), loss_fn=lambda *_: 0)
        made._load_csv(str(file), format=format)
        # Its simulator knows actions, sends, receives and waits.
        flat = {rank: [part for a in row for part in a.sub_actions or (a,) if "REDUCE" not in part.computation_type.value and "SHARD" not in part.computation_type.value]
                for rank, row in made.pipeline_order_with_comms.items()}
        s._simulate_comms_compute(flat, lambda stage: made.stage_index_to_group_rank[stage], int(p) * int(v))
        print(file.name)

{"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2]))
'''


def of_torch(python, what, folder):
    done = subprocess.run([python, "-W", "ignore", "-c", TORCH, what, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def schedules(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Exchange(unittest.TestCase):
    def test_files_of_torch_are_read(self):
        with tempfile.TemporaryDirectory() as folder:
            of_torch(PYTHON, "write", folder)
            files = sorted(Path(folder).glob("*.compute_comms.csv"))
            self.assertGreaterEqual(len(files), 35)
            for file in files:
                name, ranks, chunks, micro_batches, _ = file.stem.split(".")
                computed = Path(str(file).replace("compute_comms", "compute_only"))
                with self.subTest(file=file.name):
                    done = schedules("--read", file, "--format", "csv")
                    row = next(csv.DictReader(io.StringIO(done.stdout)))
                    self.assertEqual((row["ranks"], row["micro_batches"]), (ranks, micro_batches), done.stderr)
                    if name == "LoopedBFS":  # its backwards take the last micro-batch first
                        self.assertIn("a later micro-batch has already been through this chunk", row["verdict"])
                        continue
                    self.assertEqual((done.returncode, row["verdict"]), (0, "ok"), done.stderr)
                    both = [schedules("--read", one, "--format", "torch").stdout for one in (file, computed)]
                    self.assertEqual(*both)
                    if name == "InterleavedZeroBubble" and int(micro_batches) % int(ranks) == 0:
                        ours = schedules("--schedule", "interleaved-zb", "--ranks", ranks, "--micro-batches", micro_batches, "--chunks", chunks,
                                         "--format", "torch")
                        self.assertEqual(ours.stdout, both[0])
                    cells = [[cell for cell in line.split(",") if cell] for line in computed.read_text().splitlines()]
                    self.assertEqual([line.split(",") for line in both[0].splitlines()], cells)

    def test_torch_reads_what_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            written = []
            for name, chunks in (("gpipe", 1), ("1f1b", 1), ("eager-1f1b", 1), ("interleaved", 3), ("grouped-interleaved", 2), ("interleaved-zb", 2), ("looped-bfs", 2),
                                 ("zb-h1", 1), ("zb-h2", 1), ("zb-v", 2), ("v-half", 2), ("v-min", 2), ("hanayo", 4), ("dualpipe-v", 2),
                                 ("paired dualpipe-v", 2), ("searched", 1)):
                for ranks, micro_batches in ((2, 6), (4, 8), (5, 11)):
                    if name in ("interleaved", "grouped-interleaved", "interleaved-zb", "paired dualpipe-v", "hanayo") and ranks == 5:
                        continue  # some have no such numbers
                    for form, format in (("torch", "compute_only"), ("torch-comms", "compute_comms")):
                        file = Path(folder) / f"{name}.{ranks}.{chunks}.{micro_batches}.{format}.csv"
                        done = schedules("--schedule", name, "--ranks", ranks, "--micro-batches", micro_batches, "--chunks", chunks,
                                         "--backward", 2, "--format", form, "--out", file)
                        self.assertEqual((done.returncode, done.stderr), (0, ""), file)
                        written.append(file.name)
            self.assertEqual(of_torch(PYTHON, "read", folder), sorted(written))


if __name__ == "__main__":
    PYTHON = python_with("torch")
    if subprocess.run([PYTHON, "-c", "from torch.distributed.pipelining.schedules import WAIT_SEND_F"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: this PyTorch has no waits in its schedules")
        sys.exit(SKIPPED)
    unittest.main()
