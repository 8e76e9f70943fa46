#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the example `schedules` prints for each format, the closed forms of docs/schedules, and what it says to bad input."""
import csv
import io
import itertools
import json
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

from schedules_program import PROGRAM, answer, rows, run

HEADER = "schedule,ranks,micro_batches,chunks,makespan,bubble_makespan,floor_makespan,bubble_span,floor_span,gap,proved,bound_by,peak,limit,verdict"
NAMES = ("gpipe, 1f1b, eager-1f1b, adapted-1f1b, interleaved, grouped-interleaved, interleaved-zb, looped-bfs, zb-h1, zb-h2, zb-1p, zb-2p, searched, zb-v, v-half, v-min, hanayo, "
         "chimera, chimera-doubled, dualpipe, dualpipe-v, paired eager-1f1b, paired dualpipe, paired dualpipe-v, forward-only, pipedream, "
         "pipedream-2bw, paci").split(", ")


def times(f, b, w):
    return "--forward", f, "--backward", b, "--weight", w


class Certificates(unittest.TestCase):
    def test_a_gap_is_of_what_is_minimised(self):
        found = rows("--ranks", 4, "--micro-batches", 16, "--schedule", "zb-h1,1f1b,zb-h2,forward-only")
        self.assertEqual({name: row["proved"] for name, row in found.items()}, {"zb-h1": "yes", "1f1b": "", "zb-h2": "yes", "forward-only": ""})
        for row in (row for name, row in found.items() if name != "forward-only"):
            self.assertRegex(row["bound_by"], r"^rank [0-3]: (work|ways|warm-up|last F|turns|area)$")
            share = 1 - (1 - float(row["bubble_span"])) / (1 - float(row["floor_span"]))
            self.assertAlmostEqual(float(row["gap"]), share, delta=3e-4)
        self.assertEqual(found["forward-only"]["bound_by"], "")
        other = rows("--ranks", 4, "--micro-batches", 16, "--schedule", "gpipe,zb-h2", "--minimise", "makespan")
        self.assertEqual((other["zb-h2"]["proved"], other["gpipe"]["proved"]), ("yes", ""))

    def test_a_limit_is_what_the_floor_is_of(self):
        own = rows("--ranks", 4, "--micro-batches", 16, "--schedule", "zb-h1")["zb-h1"]
        more = rows("--ranks", 4, "--micro-batches", 16, "--schedule", "zb-h1", "--limit", 2)["zb-h1"]
        self.assertEqual((own["proved"], more["proved"]), ("yes", ""))
        self.assertLess(float(more["floor_span"]), float(own["floor_span"]))


class Links(unittest.TestCase):
    def test_a_number_for_each_link_is_as_one_for_all(self):
        for more in ((), ("--bytes", 6, "--bandwidth", 4)):
            one = rows("--hop", 3, *more)
            self.assertEqual(rows("--hop", "3,3,3", *more), one)
            self.assertEqual(rows("--hop", "3,3,3,3", *more), one)
        self.assertEqual(rows("--bytes", 8, "--bandwidth", 4), rows("--hop", 2))
        self.assertEqual(rows("--hop", 1, "--bytes", "4,4,4,4", "--bandwidth", "4,4,4"), rows("--hop", 2))

    def test_a_slow_link_is_waited_for_where_it_is(self):
        first = rows("--hop", "9,0,0", "--schedule", "gpipe,zb-h1,interleaved,chimera")
        none = rows("--schedule", "gpipe,zb-h1,interleaved,chimera")
        self.assertEqual(int(first["gpipe"]["makespan"]), int(none["gpipe"]["makespan"]) + 18)  # down and back
        self.assertGreaterEqual(float(first["zb-h1"]["floor_makespan"]), float(none["zb-h1"]["floor_makespan"]))
        self.assertEqual(first["chimera"]["verdict"], "needs links that are alike from both ends, since micro-batches go both ways")
        self.assertEqual(rows("--hop", "9,0,9", "--schedule", "chimera")["chimera"]["verdict"], "ok")
        # From the last rank to the first, where chunks go around.
        around = rows("--hop", "0,0,0,9", "--schedule", "gpipe,interleaved")
        self.assertEqual(around["gpipe"], none["gpipe"])
        self.assertGreater(int(around["interleaved"]["makespan"]), int(none["interleaved"]["makespan"]))

    def test_numbers_that_are_not_one_per_link_are_refused(self):
        for option, count in (("--hop", "link: 3"), ("--bandwidth", "link: 3"), ("--bytes", "rank: 4")):
            done = run(option, "1,2")
            self.assertEqual((done.returncode, done.stderr), (1, f"schedules: {option} needs one number, or one per {count}, not 2\n"))
            self.assertEqual(run(option, "-1").stderr, f"schedules: {option} must be at least 0, not -1\n")


class Policies(unittest.TestCase):
    def test_a_policy_is_the_order_as_text_of_a_program(self):
        for name in ("zb-v", "paired dualpipe-v", "interleaved"):
            text = answer("--schedule", name, "--format", "policy")
            rows_of_text = re.findall(r'^    "(.*)\\n"', text, re.M)
            self.assertEqual("\n".join(rows_of_text) + "\n", answer("--schedule", name, "--format", "torch"))
            word = re.sub("[^a-z0-9]", "_", name)
            self.assertTrue(text.endswith(f";\nusing schedule_{word} = pp::FromCSV<order_of_{word}>;\n"), text)
        self.assertEqual(run("--schedule", "zb-v", "--steps", 2, "--format", "policy").stderr, "schedules: --format policy is of one step\n")


class Formats(unittest.TestCase):
    def test_csv_has_a_row_for_every_schedule(self):
        lines = answer("--format", "csv").splitlines()
        self.assertEqual(lines[0], HEADER)
        self.assertEqual([line.split(",")[0] for line in lines[1:]], NAMES)
        for row in rows("--limit", 0.5).values():
            for column in ("bubble_makespan", "floor_makespan", "bubble_span", "floor_span"):
                self.assertRegex(row[column], r"^[01]\.\d{4}$")
            self.assertEqual(row["limit"], "2.00")
            self.assertEqual(row["verdict"], "ok" if float(row["peak"]) <= 2 else "needs more memory than the limit")

    def test_steps_without_a_barrier_follow_each_other(self):
        one, many = rows(), rows("--steps", 5)
        self.assertEqual(many["zb-h2"]["micro_batches"], "40")
        for name in NAMES:
            self.assertLessEqual(int(many[name]["makespan"]), 5 * int(one[name]["makespan"]), name)
            self.assertEqual((many[name]["verdict"], many[name]["peak"]), ("ok", one[name]["peak"]), name)
        self.assertLess(int(many["zb-v"]["makespan"]), 5 * int(one["zb-v"]["makespan"]))
        boxes = re.findall(r"<title>U of ", answer("--schedule", "zb-v", "--steps", 3, "--format", "svg"))
        self.assertEqual(len(boxes), 3 * 8)  # an update of each chunk ends a step
        self.assertIn("zb-v: P = 4, M = 8, 3 steps, 2 chunks per rank", answer("--schedule", "zb-v", "--steps", 3, "--format", "html"))

    def test_recomputation_ahead_of_the_gradient_saves_time(self):
        inside, ahead = rows("--recompute", "in-backward"), rows("--recompute", "ahead")
        for name in NAMES:
            if ahead[name]["verdict"] == "ok":
                self.assertLess(int(ahead[name]["makespan"]), int(inside[name]["makespan"]), name)
            else:
                self.assertEqual(ahead[name]["verdict"], "recomputes nothing ahead: it does not train, or backward reads newer weights")
        self.assertEqual(sum(row["verdict"] == "ok" for row in ahead.values()), len(NAMES) - 2)
        drawn = answer("--recompute", "ahead", "--schedule", "1f1b", "--format", "svg")
        self.assertEqual(len(re.findall(r"<title>R of ", drawn)), 3 * 8)  # not on the last rank

    def test_a_schedule_that_does_not_exist_says_why(self):
        odd = rows("--ranks", 3)["chimera"]
        self.assertEqual((odd["makespan"], odd["peak"], odd["verdict"]), ("", "", "needs an even number of ranks"))
        quoted = rows("--micro-batches", 7)["dualpipe"]["verdict"]  # a comma inside
        self.assertEqual(quoted, "needs an even number of micro-batches, at least twice the ranks")
        odd = rows("--chunks", 3)["hanayo"]
        self.assertEqual((odd["chunks"], odd["makespan"], odd["verdict"]),
                         ("3", "", "needs an even number of chunks per rank: a wave runs down the ranks and back up"))

    def test_a_limit_is_what_its_digits_say(self):
        for ranks, limit, most in ((25, 1.16, 29), (25, 1.15, 28), (10, 0.1, 1), (7, 0.7, 4), (50, 0.58, 29), (3, 1.1, 3)):
            found = rows("--ranks", ranks, "--micro-batches", 40, "--limit", limit, *times(20, 20, 9),
                         "--schedule", "1f1b,searched")
            self.assertEqual((found["searched"]["verdict"], float(found["searched"]["peak"])), ("ok", most), (ranks, limit))
            self.assertEqual(found["1f1b"]["verdict"] == "ok", ranks <= most)

    def test_searched_takes_a_placement_and_an_objective(self):
        found = {(where, what): rows("--placement", where, "--minimise", what, "--schedule", "searched,1f1b", "--limit", 1,
                                     *times(18, 20, 10))
                 for where in ("straight", "vee") for what in ("span", "makespan")}
        for (where, what), both in found.items():
            self.assertEqual(both["1f1b"], found["straight", "span"]["1f1b"])
            self.assertEqual((both["searched"]["chunks"], both["searched"]["verdict"]), ("2" if where == "vee" else "1", "ok"))
            other = found[where, "makespan" if what == "span" else "span"]["searched"]
            self.assertLessEqual(float(both["searched"][f"bubble_{what}"]), float(other[f"bubble_{what}"]))
        self.assertLess(float(found["vee", "span"]["searched"]["bubble_span"]),
                        float(found["straight", "span"]["searched"]["bubble_span"]))
        usual = rows("--schedule", "searched", "--limit", 1, *times(18, 20, 10))
        self.assertEqual(found["straight", "span"]["searched"], usual["searched"])

    def test_what_is_drawn_is_well_formed(self):
        for name, actions in (("1f1b", 64), ("zb-v", 192), ("chimera", 64), ("pipedream-2bw", 64 + 8)):
            svg = xml.fromstring(answer("--schedule", name, "--format", "svg"))
            self.assertEqual(len(list(svg.iter("{http://www.w3.org/2000/svg}title"))), actions)
            events = json.loads(answer("--schedule", name, "--format", "trace"))["traceEvents"]
            self.assertEqual(sum(e["ph"] == "X" for e in events), actions)
            page = answer("--schedule", name, "--format", "html")
            data = json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0])
            self.assertTrue(data["drawings"][0]["title"].startswith(f"{name}: P = 4, M = 8"))
        self.assertIn("\nrank 3  .........000aaaaaa111", answer("--schedule", "1f1b", "--format", "text"))

    def test_pytorch_form_there_and_back(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "schedule.csv"
            for name, form in itertools.product(("1f1b", "interleaved", "zb-v", "dualpipe", "paired dualpipe-v"), ("torch", "torch-comms")):
                file.write_text(answer("--schedule", name, "--format", form))
                same = dict(rows("--read", file)[str(file)], schedule=name)
                self.assertEqual(same, rows("--schedule", name)[name])
                self.assertEqual(list(rows("--read", file, "--schedule", "1f1b")), [str(file), "1f1b"])
                self.assertEqual(list(rows("--read", file)), [str(file)])

    def test_what_is_asked_beside_a_file_is_of_its_size(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "schedule.csv"
            file.write_text("0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n")
            found = rows("--read", file, "--schedule", "all", "--forward", "1,2")
            self.assertEqual(list(found), [str(file), *NAMES])
            for row in found.values():
                self.assertEqual((row["ranks"], row["micro_batches"]), ("2", "3"))
            self.assertEqual(found[str(file)]["makespan"], found["1f1b"]["makespan"])
            self.assertEqual(rows("--read", file, "--ranks", 2, "--micro-batches", 3), rows("--read", file))
            for option, value, there in (("--ranks", 4, "2 ranks"), ("--micro-batches", 8, "3 micro-batches")):
                done = run("--read", file, option, value)
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (1, "", f"schedules: {option} {value} contradicts {file}, which has {there}\n"))
            done = run("--read", file, "--forward", "1,2,3,4")
            self.assertEqual(done.stderr, "schedules: --forward needs one time, or one per rank: 2, not 4\n")


class Searches(unittest.TestCase):
    def test_any_number_of_chunks_on_a_vee_and_a_loop(self):
        for where, chunks in itertools.product(("vee", "loop"), (1, 2, 3, 4, 5)):
            with self.subTest(where=where, chunks=chunks):
                asked = "--placement", where, "--chunks", chunks, "--limit", 1, "--effort", 0.1, *times(60, 60, 60)
                row = rows(*asked, "--schedule", "searched")["searched"]
                self.assertEqual((row["chunks"], row["verdict"]), (str(chunks), "ok"))
                self.assertLessEqual(float(row["peak"]), 4)
                # In the memory of 1F1B: ZB-H1's bubble divided by the chunks, which is the floor.
                self.assertLessEqual(float(row["bubble_span"]), 3 / (3 * 8 * chunks + 3) + 6e-5)
        straight = rows("--schedule", "searched", "--chunks", 3)["searched"]
        self.assertEqual(straight["chunks"], "1")

    def test_more_effort_is_never_worse_where_less_is_not_the_floor(self):
        asked = ("--ranks", 6, "--micro-batches", 14, "--hop", 3, "--limit", 0.7, "--schedule", "searched", "--placement", "vee",
                 *times(47, 61, 20))
        little, usual = rows(*asked, "--effort", 0.001)["searched"], rows(*asked)["searched"]
        self.assertEqual(usual, rows(*asked, "--effort", 1)["searched"])
        self.assertLess(float(usual["bubble_span"]), float(little["bubble_span"]))
        self.assertEqual((little["verdict"], usual["floor_span"]), ("ok", little["floor_span"]))

    def test_a_limit_for_each_rank(self):
        asked = ("--schedule", "searched,zb-h1,gpipe", *times(60, 60, 60))
        same = rows(*asked, "--limit", 0.75)
        self.assertEqual(same, rows(*asked, "--limit", "0.75,0.75,0.75,0.75"))
        self.assertEqual(same, rows(*asked, "--room", 3))
        self.assertEqual(same, rows(*asked, "--room", "15,15,15,15", "--memory", "5,-2,-3"))
        own = rows(*asked, "--room", "4,3,2,1")
        self.assertEqual((own["zb-h1"]["limit"], own["zb-h1"]["verdict"]), ("1.00-4.00", "needs more memory than the limit"))
        self.assertEqual(own["searched"]["verdict"], "ok")
        self.assertGreater(float(same["searched"]["bubble_span"]), float(own["searched"]["bubble_span"]))
        table = answer("--room", "4,3,2,1", "--schedule", "searched", "--format", "torch").splitlines()
        for room, row in zip((4, 3, 2, 1), table):
            kept = list(itertools.accumulate({"F": 1, "W": -1}.get(re.match(r"\d+(\w)", cell)[1], 0) for cell in row.split(",")))
            self.assertLessEqual(max(kept), room)
        vee = rows("--placement", "vee", "--room", 3, "--schedule", "searched,zb-v")
        self.assertEqual((vee["searched"]["limit"], vee["zb-v"]["verdict"]), ("3.00", "needs more memory than the limit"))


def problem(ranks=4, chunks=4, **more):
    cost = {"forward": 2, "backward_input": 3, "backward_weight": 1, "memory": [5, -2, -3, 0]}
    return {"ranks": ranks, "chunks": chunks, "micro_batches": 8, "costs": [cost] * chunks} | more


class Problems(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, content):
        (self.folder / name).write_text(json.dumps(content))
        return self.folder / name

    def test_a_problem_of_a_file_is_as_its_numbers(self):
        for chunks, names in ((4, ("gpipe", "1f1b", "zb-h1", "zb-1p", "searched", "chimera", "dualpipe")),
                              (8, ("interleaved", "zb-v", "v-half", "hanayo", "dualpipe-v"))):
            per_rank = chunks // 4
            file = self.write("a.json", problem(chunks=chunks, hop=1))
            numbers = "--memory", "5,-2,-3", *times(2 * per_rank, 3 * per_rank, per_rank)
            for more in ((), ("--limit", 1), ("--limit", "1,.75,1,.75"), ("--hop", "1,2,1"), ("--bytes", 7, "--bandwidth", "2,1,2"), ("--steps", 2)):
                found, same = rows("--problem", file, *more), rows(*numbers, *(() if "--hop" in more else ("--hop", 1)), *more)
                for name in names:
                    self.assertEqual(found[name], same[name], (name, more))
            self.assertEqual(answer("--problem", file, "--schedule", names[0], "--format", "torch"),
                             answer(*numbers, "--hop", 1, "--schedule", names[0], "--format", "torch"))

    def test_limits_of_the_file_and_others(self):
        own = self.write("own.json", problem(limit=15, rooms=[20, 0, 10, 5]))
        found = rows("--problem", own, "--schedule", "searched,zb-h1")
        self.assertEqual((found["searched"]["verdict"], found["zb-h1"]["limit"]), ("ok", "1.00-4.00"))
        self.assertEqual(found["searched"], rows("--problem", self.write("none.json", problem()), "--room", "20,15,10,5", "--schedule", "searched")["searched"])
        self.assertEqual(rows("--problem", own, "--limit", 1)["zb-h1"]["verdict"], "ok")
        none = rows("--problem", own, "--room", 4, "--schedule", "searched")["searched"]
        self.assertEqual(none["verdict"], "not even one micro-batch fits into the memory limit")

    def test_chunks_are_those_of_the_file(self):
        found = rows("--problem", self.write("v.json", problem(chunks=12)))
        self.assertEqual((found["searched"]["chunks"], found["searched"]["verdict"]), ("3", "ok"))
        self.assertEqual((found["interleaved"]["chunks"], found["interleaved"]["verdict"]), ("3", "ok"))
        self.assertEqual(found["1f1b"]["verdict"], "needs 4 chunks, and the problem has 12")
        self.assertEqual(found["zb-v"]["verdict"], "needs 8 chunks, and the problem has 12")
        around = rows("--problem", self.folder / "v.json", "--placement", "loop", "--schedule", "searched")["searched"]
        self.assertEqual((around["chunks"], around["verdict"]), ("3", "ok"))
        drawn = answer("--problem", self.folder / "v.json", "--schedule", "interleaved", "--format", "text")
        self.assertTrue(drawn.startswith(f"interleaved of {self.folder / 'v.json'}: P = 4, M = 8, 3 chunks per rank\n"), drawn)

    def test_large_times_are_counted_in_larger_units(self):
        cost = problem()["costs"][0]
        large = {name: value if name == "memory" else value * 10**14 for name, value in cost.items()}
        asked = "--schedule", "1f1b,zb-h1,searched"
        small = rows("--problem", self.write("small.json", problem()), *asked)
        for name, row in rows("--problem", self.write("large.json", problem(costs=[large] * 4)), *asked).items():
            self.assertEqual(row, small[name] | {"makespan": small[name]["makespan"] + "0" * 14})
        self.assertIn("; a unit of time is 10", answer("--problem", self.folder / "large.json", "--schedule", "1f1b", "--format", "html"))

    def test_several_problems_are_one_table(self):
        found = list(csv.DictReader(io.StringIO(answer("--format", "csv", "--ranks", "4,6", "--micro-batches", "8,12", "--schedule", "1f1b,zb-v"))))
        self.assertEqual([(row.pop("problem"), row["schedule"]) for row in found],
                         [(f"{p} x {m}", name) for p in (4, 6) for m in (8, 12) for name in ("1f1b", "zb-v")])
        for row in found:
            self.assertEqual(row, rows("--ranks", row["ranks"], "--micro-batches", row["micro_batches"], "--schedule", row["schedule"])[row["schedule"]])
        a, b = self.write("a.json", problem()), self.write("b.json", problem(ranks=2, chunks=2, micro_batches=5))
        lines = answer("--problem", f"{a},{b}", "--schedule", "1f1b").splitlines()
        self.assertEqual([line.split()[:4] for line in lines],
                         [["problem", "schedule", "ranks", "micro_batches"], [str(a), "1f1b", "4", "8"], [str(b), "1f1b", "2", "5"]])
        several = csv.DictReader(io.StringIO(answer("--problem", f"{a},{b}", "--micro-batches", "4,6", "--schedule", "gpipe", "--format", "csv")))
        self.assertEqual([(row["problem"], row["micro_batches"]) for row in several], [(str(of), m) for of in (a, b) for m in ("4", "6")])
        drawn = answer("--ranks", "4,2", "--schedule", "1f1b", "--format", "text")
        self.assertEqual(re.findall(r"^1f1b: P = \d", drawn, re.M), ["1f1b: P = 4", "1f1b: P = 2"])

    def test_a_schedule_is_judged_on_problems_of_its_size(self):
        schedule = self.folder / "schedule.csv"
        schedule.write_text(answer("--schedule", "zb-h1", "--format", "torch"))
        file = self.write("a.json", problem())
        found = rows("--problem", file, "--read", schedule, "--schedule", "zb-h1")
        self.assertEqual(dict(found[str(schedule)], schedule="zb-h1"), found["zb-h1"])
        of_its_size = rows("--problem", self.write("a.json", problem(micro_batches=9)), "--read", schedule)
        self.assertEqual(of_its_size[str(schedule)], found[str(schedule)])
        for size, complaint in ((dict(ranks=2, chunks=2), f"{file} 2 contradicts {schedule}, which has 4 ranks"),
                                (dict(chunks=8), f"{schedule}: needs 4 chunks, and the problem has 8")):
            done = run("--problem", self.write("a.json", problem(**size)), "--read", schedule)
            self.assertEqual((done.returncode, done.stderr), (1, f"schedules: {complaint}\n"))

    def test_what_is_refused(self):
        def refused(expected, content, *more):
            file = self.write("a.json", content)
            done = run("--problem", file, *more)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", f"schedules: {expected.format(file)}\n"))

        cost = problem()["costs"][0]
        refused("{}: ranks is missing", {})
        refused("{}: expected costs of 5 chunks, got 4", problem() | {"chunks": 5})
        refused("{}: chunk 0: forward is missing", problem(costs=[{"memory": [1, 0, -1, 0]}] * 4))
        refused("{}: times, memory or limits are too large to be added up: expected sums below 2^60", problem(hop=2**62))
        refused("{}: schedules have as many chunks on each rank, not 6 chunks on 4 ranks", problem(chunks=6))
        refused("{}: chunk 0: the memory of F must be at least 0, and that of F, B and W must add up to 0",
                problem(costs=[cost | {"memory": [5, -2, -2, 0]}] * 4))
        refused("too many actions for these ranks, chunks and micro-batches: at most 200 million", problem(micro_batches=50_000_000))
        refused("--limit must be above 0, not 0", problem(), "--limit", 0)
        refused("--room must be at least 1, not 0", problem(), "--room", 0)
        for option in ("--ranks", "--forward", "--backward", "--weight", "--chunks"):
            refused(f"--problem excludes {option}", problem(), option, 4)
        self.assertEqual(run("--problem", "no such file").stderr, "schedules: --problem: File does not exist: no such file\n")
        file = self.write("a.json", problem())
        self.assertEqual(run("--problem", file, "--out", file).stderr,
                         f"schedules: --out '{file}' would write over --problem '{file}': they are the same\n")


class ClosedForms(unittest.TestCase):
    """At F = B = W without hops; idle times in units of a stage's F."""
    IDLE = {
        "gpipe": lambda p, v: 3 * (p - 1),
        "1f1b": lambda p, v: 3 * (p - 1),
        "eager-1f1b": lambda p, v: 3 * (p - 1),
        "adapted-1f1b": lambda p, v: 3 * (p - 1),
        "interleaved": lambda p, v: 3 * (p - 1) / v,
        "interleaved-zb": lambda p, v: (p - 1) / v,
        "grouped-interleaved": lambda p, v: 3 * (p - 1) / v,
        "looped-bfs": lambda p, v: 3 * (p - 1) / v,
        "zb-h1": lambda p, v: p - 1,
        "zb-h2": lambda p, v: p - 1,
        "zb-v": lambda p, v: (p - 1) / 2,
        "v-half": lambda p, v: max(1, 3 * p - (4 if p % 2 else 7)) / 2,
        "v-min": lambda p, v: (4 * p - (7 if p % 3 == 0 or p in (2, 5, 8) else 5)) / 2,
        "dualpipe": lambda p, v: p / 2 - 1,
        "dualpipe-v": lambda p, v: (p - 1) / 2,
        "forward-only": lambda p, v: p - 1,
        "pipedream": lambda p, v: 3 * (p - 1),
        "pipedream-2bw": lambda p, v: 3 * (p - 1),
        "paci": lambda p, v: 3 * (p - 1),
    }
    PEAK = {
        "gpipe": lambda p, m, v: m,
        "1f1b": lambda p, m, v: p,
        "eager-1f1b": lambda p, m, v: 2 * p - 1,
        "adapted-1f1b": lambda p, m, v: p,
        "interleaved": lambda p, m, v: p + (p - 1) / v,
        "interleaved-zb": lambda p, m, v: p,
        "grouped-interleaved": lambda p, m, v: p,
        "looped-bfs": lambda p, m, v: m,
        "zb-h1": lambda p, m, v: p,
        "zb-h2": lambda p, m, v: 2 * p - 1,
        "zb-v": lambda p, m, v: p,
        "v-half": lambda p, m, v: (p + 2) // 2,
        "v-min": lambda p, m, v: (p + 4) // 3,
        "dualpipe": lambda p, m, v: p + 1,
        "dualpipe-v": lambda p, m, v: p + 0.5,
        "forward-only": lambda p, m, v: 1,
        "pipedream": lambda p, m, v: p,
        "pipedream-2bw": lambda p, m, v: p,
        "paci": lambda p, m, v: p,
    }

    def test_at_equal_times(self):
        unit = 12
        for p, m, v in ((2, 6, 2), (3, 9, 3), (4, 8, 2), (4, 16, 4), (6, 18, 3), (7, 21, 2), (8, 32, 4)):
            found = rows("--ranks", p, "--micro-batches", m, "--chunks", v, *times(unit, unit, unit))
            for name, idle in self.IDLE.items():
                row = found[name]
                if not row["makespan"]:
                    continue
                with self.subTest(schedule=name, p=p, m=m, v=v):
                    work = m if name == "forward-only" else 3 * m
                    makespan = work + idle(p, v)
                    self.assertEqual(float(row["makespan"]), unit * makespan)
                    self.assertAlmostEqual(float(row["bubble_makespan"]), 1 - work / makespan, delta=6e-5)
                    self.assertAlmostEqual(float(row["peak"]), self.PEAK[name](p, m, v), delta=6e-3)
            for name in ("zb-h2", "zb-v", "forward-only"):
                self.assertEqual(found[name]["bubble_span"], "0.0000")

    def test_where_forward_takes_as_long_as_backward(self):
        for p, m in ((4, 8), (4, 16), (6, 12), (8, 32)):
            found = rows("--ranks", p, "--micro-batches", m, *times(48, 24, 24))
            self.assertAlmostEqual(float(found["chimera"]["bubble_makespan"]), (p - 2) / (2 * m + p - 2), delta=6e-5)
            for waves in (1, 2):
                hanayo = rows("--ranks", p, "--micro-batches", m, "--chunks", 2 * waves, *times(48, 24, 24))["hanayo"]
                self.assertAlmostEqual(float(hanayo["bubble_makespan"]), (p - 1) / (2 * waves * m + p - 1), delta=6e-5)
                self.assertLessEqual(float(hanayo["peak"]), p)
            self.assertTrue(p / 2 + 1 <= float(found["chimera"]["peak"]) <= p)


class BadInput(unittest.TestCase):
    def refused(self, expected, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertEqual(done.stderr, f"schedules: {expected}\n")

    def test_impossible_problems(self):
        self.refused("--ranks must be at least 1, not 0", "--ranks", 0)
        self.refused("--micro-batches must be at least 1, not 0", "--micro-batches", 0)
        self.refused("--chunks must be at least 1, not 0", "--chunks", 0)
        self.refused("--hop must be at least 0, not -1", "--hop=-1")
        self.refused("--weight must be at least 0, not -1", "--weight=-1")
        self.refused("--forward needs one time, or one per rank: 4, not 2", "--forward", "1,2")
        for none in (0.2, 0, -1, "nan"):
            self.refused(f"--limit must hold one micro-batch: at least 1/4, not {none}", f"--limit={none}")
        self.refused("too many actions for these ranks, chunks and micro-batches: at most 200 million",
                     *"--ranks 100000 --micro-batches 100000".split())
        self.refused("--ranks must be at most 16384, not 16385", "--ranks", 16385, "--micro-batches", 1)
        for huge in ("--forward=9000000000000000000", "--hop=9000000000000000000", "--limit=1e30",
                     "--memory=4000000000000000000,0,-4000000000000000000", f"--memory=1,{2**63 - 1},-{2**63}",
                     f"--memory={2**63 - 1},{2**63 - 1},2", f"--weight={2**63 - 1}", "--backward=1000000000000000",
                     "--limit=inf"):
            self.refused("times, memory or limit are too large to be added up", huge)
        self.refused("--forward: 99999999999999999999 is too large", "--forward", "1,99999999999999999999")
        self.refused("--ranks: 4294967300 is too large", "--ranks", 4294967300)
        self.refused("--hop: '1e3' is no whole number", "--hop", "1e3")
        self.refused("--placement must be straight, vee or loop, not 'ring'", "--placement", "ring")
        self.refused("--placement bidirectional holds every chunk twice, which is not searched: chimera and dualpipe are such schedules",
                     "--placement", "bidirectional")
        for effort in (0, -1, 0.0009, 1001, "nan", "inf"):
            self.refused(f"--effort must be from 0.001 to 1000, not {effort}", f"--effort={effort}")
        self.refused("--limit needs one number, or one per rank: 4, not 2", "--limit", "1,2")
        self.refused("--limit must hold one micro-batch: at least 1/4, not 0.2", "--limit", "1,1,0.2,1")
        self.refused("--room needs one number, or one per rank: 4, not 3", "--room", "1,2,3")
        self.refused("--room must hold one micro-batch: at least 5, not 4", "--room", "9,9,4,9", "--memory", "5,-5,0")
        self.refused("--limit and --room say the same in two units: give one of them", "--limit", 1, "--room", 4)
        self.refused("--ranks must be at least 1, not 0", "--ranks", "4,0")
        self.refused("--format svg shows one schedule of one problem: say which with --schedule", "--ranks", "4,8", "--format", "svg",
                     "--schedule", "1f1b")
        self.refused("--steps must be at least 1, not 0", "--steps", 0)
        self.refused("--format torch is of one step", "--schedule", "1f1b", "--steps", 2, "--format", "torch")
        self.refused("--minimise must be span, makespan or period, not 'peak'", "--minimise", "peak")
        self.refused("--recompute must be nothing, in-backward or ahead, not 'all'", "--recompute", "all")
        self.refused("--memory: the numbers of F, B and W must add up to 0, not 1", "--memory", "3,-1,-1")
        self.refused("chimera needs an even number of ranks", *"--ranks 3 --schedule chimera --format svg".split())
        self.refused("--format svg shows one schedule: say which with --schedule", "--format", "svg")
        self.refused("--format must be table, csv, text, svg, html, trace, torch, torch-comms or policy, not 'png'", "--format", "png")
        self.refused(f"no schedule is called '2f2b'; there are: {', '.join(NAMES)}", "--schedule", "2f2b")

    def test_the_largest_times_are_added_up(self):
        for p, m, largest in ((4, 8, 10**12), (1, 1, 5 * 10**12), (64, 1, 10**11)):
            found = rows("--ranks", p, "--micro-batches", m, *times(largest, largest, largest), "--schedule", "gpipe,searched")
            self.assertEqual(int(found["gpipe"]["makespan"]), 3 * largest * (m + p - 1))
            self.assertEqual(found["searched"]["floor_makespan"], rows(
                "--ranks", p, "--micro-batches", m, "--schedule", "searched")["searched"]["floor_makespan"])

    def test_options_that_cannot_be_read(self):
        self.refused("The following arguments were not expected: 4 --rank", "--rank", 4)
        self.refused("--ranks: 'four' is no whole number", "--ranks", "four")
        self.refused("--limit: 1 required FLOAT missing", "--limit")
        self.refused("--memory: At least 3 required but received 2", "--memory", "1,-1")
        self.refused("--read: File does not exist: no such file", "--read", "no such file")
        self.refused(f"no schedule is called 'a\ufffd[31m\ufffd'; there are: {', '.join(NAMES)}", "--schedule", "a\x1b[31m\n")
        self.assertIn("--minimise", answer("--help"))

    def test_a_file_that_is_read_is_not_written_over(self):
        with tempfile.TemporaryDirectory() as folder:
            file, link = Path(folder) / "schedule.csv", Path(folder) / "link"
            file.write_text("0F0,0B0\n")
            link.hardlink_to(file) if hasattr(link, "hardlink_to") else link.symlink_to(file)
            self.refused(f"--out '{link}' would write over --read '{file}': they are the same", "--read", file, "--out", link)
            self.assertEqual(file.read_text(), "0F0,0B0\n")

    @unittest.skipUnless(Path("/dev/full").exists(), "needs a device that is always full")
    def test_output_that_finds_no_room_is_told(self):
        for arguments in ([], ["--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stderr), (1, "schedules: cannot write all of the output: No space left on device\n"))

    def test_malformed_files(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "schedule.csv"
            for text, expected in (("", "line 1, column 1: expected at least 1 action, found none"),
                                   ("0F0,0B0\n1F0,1X0\n", "line 2, column 5: '1X0' is no action that is known here: "
                                    "F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, WAIT_SEND_F, WAIT_SEND_B, "
                                    "UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD, (...;...)OVERLAP_F_B"),
                                   ("0F0\n\x1b[2J\0\n", "line 2, column 1: expected the number of a stage"),
                                   ("0F0\n1\x1b[2J\0\n", "line 2, column 1: '1\\x1b[2J\\x00' is no action that is known here: "
                                    "F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, WAIT_SEND_F, WAIT_SEND_B, "
                                    "UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD, (...;...)OVERLAP_F_B"),
                                   ("0F0,0B\n", "line 1, column 5: expected the number of a micro-batch")):
                file.write_text(text)
                self.refused(f"{file}: {expected}", "--read", file)
            # These can be read, but are no schedules.
            for text, size, verdict in (
                    ("0F0,0B0\n1B0,1F0\n", (2, 1), "BW of chunk 1 and micro-batch 0 on rank 1, position 0: "
                     "what it needs comes later on its own rank"),
                    ("0F0,0F1,0B0,0B1\n1F0,1F1,1B0\n\n3F0\n", (4, 2), "BW of chunk 1 and micro-batch 1 on rank 1, position 3: "
                     "it is never done"),
                    ("0F1,0F0,0B0,0B1\n", (1, 2), "F of chunk 0 and micro-batch 0 on rank 0, position 1: a later micro-batch "
                     "has already been through this chunk in this direction"),
                    ("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", (2, 2), "BW of chunk 0 and micro-batch 0 on rank 0, position 1: "
                     "it waits for another rank, which waits for this one")):
                file.write_text(text)
                done = run("--format", "csv", "--read", file, "--limit", 1 / size[0])
                self.assertEqual((done.returncode, done.stderr), (1, f"schedules: {file}: {verdict}\n"))
                row = next(csv.DictReader(io.StringIO(done.stdout)))
                self.assertEqual((int(row["ranks"]), int(row["micro_batches"])), size)
                self.assertEqual((row["makespan"], row["verdict"]), ("", verdict))
                for form in ("svg", "html", "trace", "torch"):
                    self.refused(f"{file}: {verdict}", "--read", file, "--format", form)
                self.assertEqual(run("--read", file, "--format", "text").stdout, f"{file}: {verdict}\n\n")
                done = run("--read", file, "--schedule", "gpipe,1f1b")
                self.assertEqual((done.returncode, done.stdout.count("ok")), (1, 2))
            file.write_text("0F0,0F16000000\n1F0\n")
            self.refused("too many actions for these ranks, chunks and micro-batches: at most 200 million", "--read", file)


if __name__ == "__main__":
    unittest.main()
