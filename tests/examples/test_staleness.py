#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the example `staleness` writes: runs that repeat to the byte, a page of their means and spreads, and the page of a run that is stopped."""
import csv
import io
import signal
import statistics
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
HEADER = "schedule,optimizer,rate_factor,learning_rate,seed,steps,tokens,training_loss,evaluation_loss,diverged"
SCHEDULES = ["1f1b", "pipedream", "pipedream-2bw", "paci"]
SVG = "{http://www.w3.org/2000/svg}"


def command(folder, *arguments):
    Path(folder, "text").write_text("".join(f"{i} times {i} makes {i * i}.\n" for i in range(3000)))
    usual = [word for option, value in (("--text", "text"), ("--out", "page.html")) if option not in arguments for word in (option, value)]
    return [PROGRAM, *usual, *map(str, arguments)]


def run(folder, *arguments):
    return subprocess.run(command(folder, *arguments), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def results(folder):
    """The page as a tree, and the rows of the table beside it."""
    return xml.fromstring(Path(folder, "page.html").read_text()), Path(folder, "page.csv").read_text()


def table(page, name):
    """The cells of a table's rows, by the first two words or by the first."""
    rows = [[cell.text for cell in row] for row in page.find(f".//table[@id='{name}']").find("tbody")]
    return {tuple(r[:2]): r[2:] for r in rows} if name == "best" else {r[0]: r[1:] for r in rows}


class Staleness(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def check_words(self, shown, losses):
        """"2.1034 ± 0.0021" is the mean and spread of these, to what a last digit may be rounded."""
        mean, *spread = map(float, shown.split(" ± "))
        self.assertAlmostEqual(mean, statistics.mean(losses), delta=6e-5)
        self.assertEqual(len(spread), len(losses) > 1)
        for s in spread:
            self.assertAlmostEqual(s, statistics.stdev(losses), delta=6e-5)

    def test_the_page_is_what_the_runs_are(self):
        done = run(self.folder, "--steps", 4, "--seeds", 2, "--rates", "2,.5")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page, text = results(self.folder)
        self.assertEqual(text.splitlines()[0], HEADER)
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(rows), len(SCHEDULES) * 2 * 2 * 2)
        losses, rates = {}, {}
        for r in rows:
            self.assertEqual((r["steps"], r["tokens"], r["diverged"]), ("4", str(4 * 512), "0"))
            losses.setdefault((r["optimizer"], r["schedule"], float(r["rate_factor"])), []).append(float(r["evaluation_loss"]))
            rates[r["optimizer"], float(r["rate_factor"])] = float(r["learning_rate"])
        best_rows = table(page, "best")
        for optimizer in ("adamw", "muon"):
            grid = table(page, f"rates-{optimizer}")
            self.assertEqual(list(grid), SCHEDULES)
            best = {}
            for schedule in SCHEDULES:
                for factor, shown in zip((.5, 2), grid[schedule]):
                    self.check_words(shown, losses[optimizer, schedule, factor])
                best[schedule] = min((.5, 2), key=lambda f: statistics.mean(losses[optimizer, schedule, f]))
                _, versions, rate, shown, difference, verdict = best_rows[optimizer, schedule]
                self.assertEqual(versions, {"pipedream": "4", "pipedream-2bw": "2"}.get(schedule, "1"))
                self.assertAlmostEqual(float(rate), rates[optimizer, best[schedule]], places=6)
                self.check_words(shown, losses[optimizer, schedule, best[schedule]])
                self.assertIn("edge", verdict)  # of two rates both are
                if schedule == "1f1b":
                    self.assertEqual(difference, "-")
                else:
                    self.check_words(difference, [a - b for a, b in zip(losses[optimizer, schedule, best[schedule]],
                                                                        losses[optimizer, "1f1b", best["1f1b"]])])
        charts = list(page.iter(f"{SVG}svg")) or list(page.iter("svg"))
        self.assertEqual(len(charts), 4)
        for chart in charts:
            words = [t.text for t in chart.iter() if t.tag.endswith("text")]
            for needed in ("loss (nats per byte)", *SCHEDULES):
                self.assertIn(needed, words)
            self.assertTrue({"tokens", "learning rate (logarithmic)"} & set(words))
        self.assertNotIn("http", Path(self.folder, "page.html").read_text())
        self.assertIn("wrote page.html and page.csv", done.stdout)

        # The same again, of which less is asked: each row is what it was.
        done = run(self.folder, "--tokens", 4 * 512 - 1, "--seeds", 1, "--rates", ".5", "--schedules", "1f1b,paci", "--optimizers", "adamw")
        self.assertEqual(done.returncode, 0, done.stderr)
        page, again = results(self.folder)
        lines = again.splitlines()[1:]
        self.assertEqual([line.split(",")[0] for line in lines], ["1f1b", "paci"])
        for line in lines:
            self.assertIn(line, text.splitlines())
        self.assertNotIn("±", "".join(table(page, "best")["adamw", "paci"]))

    def test_a_run_that_is_stopped_shows_what_is_done(self):
        process = subprocess.Popen(command(self.folder, "--steps", 4, "--seeds", 30, "--optimizers", "adamw"), cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line.startswith("step") and "run 1/" not in line:
                break
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, errors)
        self.assertRegex(errors, r"^staleness: stopped by SIGINT after \d+ of 360 runs\n$")
        page, text = results(self.folder)
        done = len(text.splitlines()) - 1
        self.assertGreaterEqual(done, 1)
        self.assertIn(f"{done} of 360 runs ended", page.find(".//p").text)

    def test_wrong_options_are_refused(self):
        for arguments, code in ((("--schedules", "gpipe"), 2), (("--steps", 0), 2), (("--steps", 1, "--tokens", 5), 2),
                                (("--rates", "0"), 2), (("--text", "nowhere"), 1), (("--out", "text"), 1), (("--out", "a.csv"), 1)):
            done = run(self.folder, *arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
