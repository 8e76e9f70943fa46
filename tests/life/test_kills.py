#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""A run is killed at random calls of the system, and started again: it goes on from a checkpoint that is no older than the last one that was there,
ends with the bits of a run that nothing has disturbed, and leaves no temporary files.

    test_kills.py LAUNCHER PROCESSES KILLS STRIKE PROGRAM

LAUNCHER: none, sockets, or an mpirun. PIPE_KILL_SEED: other kills, PIPE_KILLS: their number.
"""
import os
import random
import re
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from starts import SKIPPED, Starts, is_skipped

LAUNCHER, STRIKE, PROGRAM = sys.argv[1], sys.argv[4], sys.argv[5]
PROCESSES, KILLS = int(sys.argv[2]), int(os.environ.get("PIPE_KILLS", sys.argv[3]))
SEED = int(os.environ.get("PIPE_KILL_SEED", "1"))
STEPS, EVERY = 24, 3
AT_ONCE = 2 if LAUNCHER == "none" else 4  # runs; processes that have lost one mostly wait


class Run:
    """A folder, in which the program is started again and again."""

    def __init__(self, root, mode):
        self.folder, self.mode = Path(root), mode
        self.starts = Starts(LAUNCHER, STRIKE, [PROGRAM, root, str(STEPS), str(EVERY), mode], self.folder)

    def told(self):
        """What the starts have said: (number of steps, those of the newest checkpoint) or (None, number of steps at the start)."""
        path = self.folder / "told"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(None, int(line[1])) if line[0] == "from" else (int(line[0]), int(line[1])) for line in lines if line != ["end"]]

    def problems(self):
        """What is wrong with the places from which starts went on."""
        steps = saved = 0
        found = []
        for step, checkpoint in self.told():
            if step is not None:
                steps, saved = step, max(saved, checkpoint)
                continue
            # A checkpoint that training waits for is there when its step is over; one that is written meanwhile, when it was seen.
            least = max(saved, steps // EVERY * EVERY) if self.mode == "sync" else saved
            if not least <= checkpoint <= steps + 1:
                found.append(f"goes on from {checkpoint} after {steps} steps, of which {least} were saved")
            saved = max(saved, checkpoint)
        return found

    def start(self, ways={}):  # noqa: B006
        code, output = self.starts.start(PROCESSES, {process: way + ":getsid" for process, way in ways.items()})
        if code is None or (code != 0 and not ways):
            raise AssertionError(f"exit code {code}:\n{output}")
        return code, output

    def kill(self, process, call):
        """Returns the name of the call, or "" if the run made fewer."""
        code, output = self.start({process: f"kill={call}"})
        name = next((name for name in self.starts.struck(process) if name != "calls"), "")
        if (code == 0) == bool(name):
            raise AssertionError(f"{name or 'no kill'}, but exit code {code}:\n{output}")
        return name

    def end(self):
        """What is there after a start without a kill: the bytes of the end, steps in the metrics, temporary files, and checkpoints beyond two. If the
        run had nothing more to save, those may stay that `latest` lists, and the one that it goes on from."""
        self.start()
        rows = [int(line.split(",")[0]) for line in (self.folder / "metrics.csv").read_text().splitlines()[1:]]
        there = sorted(self.folder.glob("run/step-*[0-9].safetensors"), key=lambda path: int(re.search(r"step-(\d+)", path.name)[1]))
        if next(step for none, step in reversed(self.told()) if none is None) == STEPS:
            listed = (self.folder / "run" / "latest").read_text().split()
            there = [path for path in there if path == there[-1] or path.name not in listed]
        return (self.folder / "end").read_bytes(), rows, [path.name for path in self.folder.rglob("*.tmp-*")], [path.name for path in there[:-2]]


def stories(chosen, kills, calls):
    """Runs with that number of kills in all, one to three in each: lists of (process, call)."""
    while kills > 0:
        length = min(chosen.randint(1, 3), kills)
        kills -= length
        processes = [chosen.randrange(PROCESSES) for _ in range(length)]
        yield [(process, chosen.randint(1, calls[process])) for process in processes]


def killed(mode, story, whole):
    """Runs a story to its end. Returns the number of kills, and what is wrong, as text."""
    with tempfile.TemporaryDirectory() as root:
        run = Run(root, mode)
        names = [run.kill(process, call) for process, call in story]
        ends = zip(("the end", "metrics", "temporary files", "checkpoints that should be removed"), whole, run.end())
        problems = run.problems() + [f"{name}: {str(found)[:200]}" for name, expected, found in ends if expected != found]
    told = [f"process {process} at call {call}, {name or 'which was not reached'}" for (process, call), name in zip(story, names)]
    return sum(map(bool, names)), f"{mode}: {'; '.join(told)}: {'; '.join(problems)}" if problems else ""


class Kills(unittest.TestCase):
    def test_a_run_that_is_killed_goes_on(self):
        for mode in ("sync", "async"):
            chosen = random.Random(f"{SEED} {mode}")
            with tempfile.TemporaryDirectory() as root:
                run = Run(root, mode)
                run.start({process: "count" for process in range(PROCESSES)})
                calls = [run.starts.struck(process)["calls"] for process in range(PROCESSES)]
                whole = run.end()
            self.assertEqual((list(range(1, STEPS + 1)), [], []), whole[1:])
            kills, problems = 0, []
            with ThreadPoolExecutor(AT_ONCE) as threads:
                while kills < KILLS // 2:
                    ends = list(threads.map(lambda story: killed(mode, story, whole), stories(chosen, KILLS // 2 - kills, calls)))  # noqa: B023
                    kills += sum(number for number, _ in ends)
                    problems += [text for _, text in ends if text]
            self.assertFalse(problems, f"seed {SEED}, {len(problems)} of {kills} kills:\n" + "\n".join(problems))
            print(f"{mode}: {kills} kills, seed {SEED}")


if __name__ == "__main__":
    if is_skipped(STRIKE):
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
