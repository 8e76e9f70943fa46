#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Samples of several lengths in the example `schedules`: bubbles by composition, pictures, problems of files, and what is refused."""
import csv
import io
import json
import re
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

from schedules_program import answer, rows, run

HALVING = "128:1600,256:800,512:400,1024:200,2048:200"  # each length half as frequent as the one before, but the last
SIZE = ("--ranks", 4, "--micro-batches", 16)


def numbers(*arguments):
    return {name: {key: float(value) if re.fullmatch(r"[\d.]+", value) else value for key, value in row.items()} for name, row in rows(*arguments).items()}


class Bubbles(unittest.TestCase):
    def test_by_length_and_by_tokens_leave_nearly_the_bubble_of_equal_samples(self):
        found = numbers(*SIZE, "--lengths", HALVING, "--scores", .18, "--schedule", "1f1b,zb-h1")
        one = found["1f1b"]
        self.assertAlmostEqual(one["bubble_padded"], 3 / 19, delta=1e-4)
        self.assertAlmostEqual(one["padding"], 1 - (128 * 1600 + 256 * 800 + 512 * 400 + 1024 * 200 + 2048 * 200) / (3200 * 2048), delta=1e-4)
        for row in found.values():
            self.assertGreater(row["bubble_as_come"], row["bubble_padded"] + .35)
            self.assertLess(row["bubble_by_length"], row["bubble_padded"] + .03)
            self.assertLess(row["bubble_by_tokens"], row["bubble_padded"] + .03)
            self.assertLess(row["bubble_packed"], row["bubble_padded"] + .03)
            # The same work, so times are as the shares of time in which ranks work.
            for way in ("by_length", "by_tokens", "packed"):
                self.assertAlmostEqual(row["time_as_come"] / row["time_" + way], (1 - row["bubble_" + way]) / (1 - row["bubble_as_come"]), delta=.01)

    def test_equal_lengths_are_as_padded_samples(self):
        row = numbers(*SIZE, "--lengths", "64:160", "--schedule", "1f1b")["1f1b"]
        self.assertEqual((row["padding"], row["bubble_as_come"], row["time_as_come"], row["time_by_length"]), (0, row["bubble_padded"], 1, 1))
        half = numbers(*SIZE, "--lengths", "64:160", "--context", 128, "--scores", .5, "--schedule", "1f1b")["1f1b"]
        self.assertAlmostEqual(half["time_as_come"], .5 * .5 + .5 * .25, delta=1e-4)

    def test_what_is_recomputed_takes_the_time_of_its_forward(self):
        usual = ("--lengths", HALVING, "--scores", .18, "--schedule", "1f1b", "--recompute")
        ahead, within = (numbers(*SIZE, *usual, how)["1f1b"] for how in ("ahead", "in-backward"))
        self.assertAlmostEqual(ahead["time_by_length"], within["time_by_length"], delta=.01)

    def test_several_problems_and_schedules_that_do_not_exist_keep_their_columns(self):
        lines = answer("--ranks", "2,4", "--micro-batches", 4, "--chunks", 3, "--lengths", "8,16,24", "--schedule", "1f1b,chimera").splitlines()
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[0].split()[:3], ["problem", "schedule", "ranks"])


class Pictures(unittest.TestCase):
    def widths(self, *more):
        """The widths of the boxes of F on rank 0."""
        root = xml.fromstring(answer(*SIZE, "--lengths", HALVING, "--scores", .5, "--schedule", "1f1b", "--format", "svg", *more))
        name = "{http://www.w3.org/2000/svg}"
        boxes = next(g for g in root.iter(name + "g") if g.get("class") == "box")
        title = "".join(t.text or "" for t in root.iter(name + "text") if t.get("class") == "title")
        notes = " ".join(t.text or "" for t in root.iter(name + "text") if t.get("class") == "note")
        return title, notes, [float(r.get("width")) for r in boxes.iter(name + "rect") if (r.get("class") or "").startswith("F")]

    def test_each_micro_batch_has_its_own_width(self):
        title, notes, widths = self.widths("--composition", "as-they-come", "--mini-batch", 3)
        self.assertIn("mini-batch 3, samples as they come", title)
        self.assertRegex(notes, r"bubble [\d.]+ % of the makespan.* padding [\d.]+ % of padded samples, 0.0 % of whole blocks")
        self.assertEqual(len(widths), 16)
        self.assertGreater(max(widths), 10 * min(widths))
        title, _, widths = self.widths("--composition", "by-tokens", "--mini-batch", 3)
        self.assertIn("samples by tokens", title)
        top = widths.index(max(widths))  # the shortest are at both ends
        self.assertEqual(widths, sorted(widths[:top + 1]) + sorted(widths[top + 1:], reverse=True))


class Files(unittest.TestCase):
    PROBLEM = {
        "ranks": 2, "chunks": 2, "micro_batches": 4,
        "costs": [{"forward": 1000, "backward_input": 1000, "backward_weight": 1000, "memory": [1, 0, -1, 0], "squares": [200, 400, 0, 0]}] * 2,
        "lengths": {"context": 64, "samples": 2, "block": 8, "most": 16}
    }

    def ask(self, problem, *more):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "p.json"
            path.write_text(json.dumps(problem))
            done = run("--problem", path, "--schedule", "gpipe", "--format", "csv", *more)
            return done.stdout or done.stderr.replace(str(path), "FILE")

    def test_a_file_says_what_micro_batches_have_room_for(self):
        row = next(csv.DictReader(io.StringIO(self.ask(self.PROBLEM, "--lengths", "32:80"))))
        self.assertEqual((row["padding"], row["verdict"]), ("0.5000", "ok"))
        self.assertAlmostEqual(float(row["time_as_come"]), (.5 * 2400 + .25 * 600) / 3000, delta=1e-4)
        # Four samples of 32 rows fill two of 64; their squares are half as many.
        self.assertAlmostEqual(float(row["time_by_tokens"]), .5 * (2400 + .5 * 600) / 3000, delta=1e-4)

    def test_what_is_wrong_with_a_file_or_the_lengths_is_one_sentence(self):
        def without(**members):
            return {**self.PROBLEM, **members}

        says = {
            "FILE: lengths: expected a block that divides the context": without(lengths={"context": 64, "samples": 2, "block": 7, "most": 16}),
            "FILE: most is missing": without(lengths={"context": 64, "samples": 2, "block": 8}),
            "FILE: lengths: expected numbers from 1 to": without(lengths={"context": 0, "samples": 2, "block": 8, "most": 16}),
            "FILE: chunk 0: squares: expected parts of the times": without(costs=[{**self.PROBLEM["costs"][0], "squares": [2000, 0, 0, 0]}] * 2),
            "FILE: chunk 0: squares: expected parts of F, B, W and R, four numbers, got 2": without(costs=[{**self.PROBLEM["costs"][0], "squares": [20, 0]}] * 2),
            "FILE: it says nothing of lengths": {key: value for key, value in self.PROBLEM.items() if key != "lengths"},
        }
        for expected, problem in says.items():
            self.assertIn(expected, self.ask(problem, "--lengths", "32:80"))
        self.assertIn("--lengths: 65 is above the context of 64", self.ask(self.PROBLEM, "--lengths", "65"))
        for lengths, expected in {"x": "expected LENGTH or LENGTH:SAMPLES", "3:": "expected LENGTH or LENGTH:SAMPLES", "-1": "expected LENGTH or LENGTH:SAMPLES", "7:0": "expected the length of at least one sample", "1:99999999": "more than 10000000 samples"}.items():
            done = run(*SIZE, "--lengths=" + lengths)
            self.assertEqual(done.returncode, 1)
            self.assertIn(expected, done.stderr)
        for more, expected in ((("--scores", 2), "--scores must be from 0 to 1"), (("--steps", 2), "--lengths is of one step"),
                               (("--composition", "sorted"), "--composition must be"), (("--micro-batch-size", 0), "--micro-batch-size must be at least 1"),
                               (("--format", "svg", "--schedule", "1f1b", "--mini-batch", 1), "--mini-batch must be from 0 to 0, not 1")):
            self.assertIn(expected, run(*SIZE, "--lengths", "8:16", *more).stderr)


if __name__ == "__main__":
    unittest.main()
