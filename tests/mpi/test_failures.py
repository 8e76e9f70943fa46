#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Failures of a pipeline over processes, and the loss of one in every phase: all end soon, with one message that says what was wrong.

    test_failures.py LAUNCHER PROGRAM
    test_failures.py sockets PROGRAM
"""
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from run import LIMIT, start

LAUNCHER, PROGRAM = sys.argv[1], sys.argv[2]
BY_SOCKETS = LAUNCHER == "sockets"
PROCESSES = 4
LAUNCHED = "the launcher has started" if BY_SOCKETS else "MPI has started"
AT_ONCE = 10  # programs, which mostly wait
TIMEOUT = 90  # of a program, in seconds: longer than the minute for which a start waits, so that it says for whom

# The process that misses process 2: by MPI its neighbour, by sockets process 0. What it is doing then, by phase.
FINDER = 0 if BY_SOCKETS else 1
OUTSIDE, SAVES, ENDS = "outside of the trainers' calls", "passing values between processes", "ending a trainer"
AGREES = "agreeing with the other processes"  # at both ends of a save
RUNS = rf"in a run: rank {2 * FINDER}: .*; rank {2 * FINDER + 1}: .*"
PHASES = {
    "starting": "starting",
    "constructing": "constructing a trainer",
    "sending": RUNS,
    "computing": RUNS,
    "meeting": RUNS,
    "exchanging": "in a run: rank 0: adding up gradients with the other replicas",
    "adding": rf"in a run: rank {FINDER}: .*",
    "flowing": rf"in a run: rank {FINDER}: .*",
    "waving": f"({OUTSIDE}|waiting for the waves of other workers)",
    "saving": SAVES,
    "outside": OUTSIDE,
    "destroying": ENDS,
    "ending": "ending the program",
}
# What it may be doing besides where the loss is seen at once: on a busy machine it has not yet come to where it waits for process 2.
BEFORE = {
    "constructing": OUTSIDE,
    "sending": OUTSIDE,
    "exchanging": f"{OUTSIDE}|in a run: rank 0: .*",
    "saving": rf"{OUTSIDE}|{AGREES}|in a run: rank \d: .*",
    "outside": f"{SAVES}|{AGREES}",
    "destroying": f"{SAVES}|{AGREES}|{OUTSIDE}",
    "ending": ENDS,
}
if BY_SOCKETS:  # the start is another: see tests/tcp. Process 2 may be a call ahead of process 0.
    del PHASES["starting"]
    ANY = (r"(constructing a trainer|connecting to the other processes|in a run: rank \d: .*|passing values between processes|"
           r"agreeing with the other processes|outside of the trainers' calls|ending a trainer|ending the program|"
           r"waiting for the waves of other workers)")
    PHASES = {phase: ANY for phase in PHASES}
# What processes 2 and FINDER are besides, where they have not two of eight ranks each.
REPLICAS = (r" \(rank 0 of replica 2\)", rf" \(rank 0 of replica {FINDER}\)")
ONE_RANK = (r" \(rank 2\)", rf" \(rank {FINDER}\)")
RANKS = {"starting": ("", ""), "exchanging": REPLICAS, "waving": REPLICAS, "adding": ONE_RANK, "flowing": ONE_RANK}
WAYS = {
    "killed": "killed",
    "terminated": "killed",
    "stopped": "it has not answered for 5 s",
    "stopped_with_patience": "it has not answered for 2 s",
    "exits": "it has ended with exit status 5",
}
if BY_SOCKETS:
    RANKS["constructing"] = (r"(?: \(ranks 4 to 5\))?", r"(?: \(ranks 0 to 1\))?")
# In the other phases the process is in a call of MPI, in which no program exits.
ONLY = {"exits": ("computing", "adding", "waving", "outside", "destroying"), "stopped_with_patience": ("outside",)}
if BY_SOCKETS:  # stopped in the last word, it may have said it, and is missed no more
    ONLY["stopped"] = tuple(phase for phase in PHASES if phase != "ending")


def lives(process):
    """Whether a process is there; one that has ended, and is not yet waited for, is not."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def problems_of(phase, way):
    """Runs the loss of process 2. Returns what is wrong with the end of all, as text, the seconds from the loss to the end of mpirun, and whether mpirun
    has ended all before the watch said why."""
    with tempfile.TemporaryDirectory() as folder:
        code, output = start(LAUNCHER, PROCESSES, [PROGRAM, phase, way, f"{folder}/weights"], timeout=TIMEOUT)
    ended = time.monotonic()
    struck = re.search(r"^strikes at ([\d.]+)$", output, re.MULTILINE)
    if not struck:
        return f"no process was lost:\n{output}", 0, False
    begin = float(struck[1])
    pids = [int(n) for n in re.findall(r"^runs as (\d+)$", output, re.MULTILINE)]
    while any(map(lives, pids)) and time.monotonic() < begin + LIMIT:
        time.sleep(0.05)
    problems = []
    if len(pids) != PROCESSES:
        problems.append(f"{len(pids)} processes have begun")
    if code is None or ended - begin > LIMIT:
        problems.append(f"ended after {ended - begin:.1f} s")
    if code == 0:
        problems.append("exit code 0")
    if any(map(lives, pids)):
        problems.append("processes are left")
    # Programs say what they catch, after their number; the watch says what it has found. mpirun ends the others as soon as a signal has ended one, and
    # names the signal: MPICH's mostly before the watch says so, that of Open MPI where they are starting, before they know each other, and now and then
    # on a busy machine.
    found = re.findall(r"^process \d+ (?:\(.*?\) )?was lost: .*$", output, re.MULTILINE)
    ranks = RANKS.get(phase, (r" \(ranks 4 to 5\)", rf" \(ranks {2 * FINDER} to {2 * FINDER + 1}\)"))
    doing = PHASES[phase] if way.startswith("stopped") or phase not in BEFORE else f"({PHASES[phase]}|{BEFORE[phase]})"
    expected = rf"process 2{ranks[0]} was lost: {WAYS[way]}, while process {FINDER}{ranks[1]} was {doing}"
    signal = {"killed": "Killed", "terminated": "Terminated"}.get(way, "none")
    said_by_mpich = re.search(rf"^YOUR APPLICATION TERMINATED WITH THE EXIT STRING: {signal} ", output, re.MULTILINE)
    said_by_open_mpi = re.search(rf"^\S+ noticed that process rank 2 .* exited on\s+signal \d+ \({signal}\)", output, re.MULTILINE)
    if not (len(found) == 1 and re.fullmatch(expected, found[0]) or not found and (said_by_mpich or said_by_open_mpi)):
        problems.append(f"{len(found)} messages, expected {expected}")
    text = f"{phase}, {way}: {'; '.join(problems)}\n{output}" if problems else ""
    return text, ended - begin, bool(not found and said_by_open_mpi and phase != "starting")


class Failures(unittest.TestCase):
    def ends(self, case, *expected, fails=True):
        """Runs a case; each expression of `expected` is in what the processes say."""
        code, output = start(LAUNCHER, PROCESSES, [PROGRAM, case], timeout=TIMEOUT)
        self.assertIsNotNone(code, f"hangs:\n{output}")
        self.assertEqual(code != 0, fails, output)
        for expression in expected:
            self.assertRegex(output, re.compile(expression, re.MULTILINE))

    def test_a_lost_process_ends_all(self):
        with ThreadPoolExecutor(AT_ONCE) as threads:
            cases = [(phase, way) for way in WAYS for phase in PHASES if phase in ONLY.get(way, PHASES)]
            ends = list(threads.map(lambda case: problems_of(*case), cases))
        problems = [text for text, _, _ in ends if text]
        print(f"all have ended {max(seconds for _, seconds, _ in ends):.1f} s after the loss of one, or before")
        self.assertLess(sum(by_mpirun for _, _, by_mpirun in ends), len(ends) / 8, "mpirun ends all before the watch says why")
        self.assertFalse(problems, f"{len(problems)} of {len(cases)}:\n" + "\n".join(problems))

    def test_an_exception_reaches_all(self):
        self.ends("throws", r"^process 3: broken$",
                  *(rf"^process {p}: process 3 \(ranks 6 to 7\): broken$" for p in range(3)),
                  r"^process 0: this trainer is broken, as a run over several processes has failed: process 3 \(ranks 6 to 7\): broken$")

    def test_a_rank_that_hangs_fails_all(self):
        hung = r"process 3 \(ranks 6 to 7\): timed out after 1 s waiting for rank 7 \(F of chunk 7, micro-batch 2, in layer \d+\)"
        self.ends("hangs", *(rf"^process {p}: {hung}" for p in range(3)),
                  r"^rank 6: BW of chunk 7, micro-batch 2, being received from rank 7, for \d+ s$")

    def test_a_process_that_does_not_come_fails_the_others(self):  # which may wait for one that waits for it
        self.ends("is_elsewhere", r"^process 0: process [012] \(ranks . to .\): timed out after 1 s waiting for "
                                  r"((another process|process \d), constructing a trainer|process \d, connecting to the other processes)$")

    def test_a_process_that_ends_early_fails_the_others(self):
        ended = "process 1 has ended its trainer, which this one still runs"
        self.ends("ends_early", *(rf"^process {p}: {ended}\n(.*\n)*?process {p}: this trainer is broken, as a run over several processes has failed: "
                                  rf"{ended}$" for p in (0, 2, 3)))

    def test_a_worker_that_makes_fewer_waves_fails_the_others(self):
        self.ends("worker_ends_early", *(rf"^process {p}: process 1 has ended its trainer, which this one still runs$" for p in (0, 2, 3)))

    def test_a_worker_that_is_late_fails_the_others(self):
        self.ends("worker_is_late", r"^process [012]: process [012] \(rank 0 of replica [012]\): timed out after 2 s waiting for wave 0 of another worker$")

    def test_a_replica_a_step_late_with_another_mini_batch_fails_all(self):
        other = (r"process \d \(rank 0 of replica \d\): process (1 makes another call than process [023]: step with samples 7, and not 8"
                 r"|[023] makes another call than process 1: step with samples 8, and not 7)")
        self.ends("late_other_call", *(rf"^process {p}: {other}$" for p in range(PROCESSES)))

    def test_a_replica_a_step_late_that_does_not_come_fails_the_others(self):
        self.ends("late_replica", r"^process [012]: process [012] \(rank 0 of replica [012]\): timed out after 2 s waiting for step 2 of another replica$")

    def test_a_process_that_exits_early_fails_the_others(self):
        begun = time.monotonic()
        self.ends("exits_early", r"^process 0: process 3 has ended its trainer, which this one still runs$")
        self.assertLess(time.monotonic() - begun, LIMIT)

    def test_a_rank_says_for_what_it_waits_at_the_end_of_a_run(self):
        self.ends("is_late", r"^rank [01]: exchanging losses, norms or shared parameters with rank \d, for \d+ s$")

    def test_an_end_of_steps_that_overlap_in_one_process_ends_all(self):
        for flow in ("ends_flow", "ends_steady"):
            self.ends(flow, r"^process 3: stopped$",
                      r"^process [0-2]: process [23] makes another call than process [03]: (the end of train, and not train|train, and not the end of train)$")

    def test_other_plans_are_refused(self):
        self.ends("other_plan", r"^process 0: process 1 has another plan than process 0: start the same program in all processes$",
                  r"^process 1: process 0 has another plan than process 1: start the same program in all processes$")

    def test_other_calls_are_refused(self):
        cases = (("seed", "step with seed (3, and not 4|4, and not 3)"),
                 ("decay", "step with other settings of the optimizer"),
                 ("clip", "step with clip_norm (0, and not 1|1, and not 0)"),
                 ("rate", r"step with learning_rate (0\.5, and not 0\.25|0\.25, and not 0\.5)"),
                 ("samples", "step with samples (8, and not 7|7, and not 8)"),
                 ("gradients", "(gradients, and not step|step, and not gradients)"),
                 ("evaluate", "(evaluate, and not step|step, and not evaluate)"),
                 ("forward", "(forward, and not evaluate|evaluate, and not forward)"))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            ends = list(threads.map(lambda case: start(LAUNCHER, PROCESSES, [PROGRAM, f"other {case[0]}"], timeout=TIMEOUT), cases))
        for (case, words), (code, output) in zip(cases, ends):
            self.assertNotIn(code, (0, None), f"{case}: {output}")
            said = re.findall(r"^process \d: (process .*)$", output, re.MULTILINE)
            self.assertTrue(said, output)  # those for which the call has ended go on to the next one, and say nothing
            for text in said:
                self.assertRegex(text, f"^process [01] makes another call than process [12]: {words}$")

    def test_other_labels_are_refused(self):
        for case in ("ranks", "replicas", "steps that overlap"):
            with self.subTest(case):
                code, output = start(LAUNCHER, PROCESSES, [PROGRAM, f"labels {'in' if case[0] == 's' else 'of'} {case}"], timeout=TIMEOUT)
                self.assertNotIn(code, (0, None), output)
                said = re.findall(r"^process \d: (process .*)$", output, re.MULTILINE)
                self.assertTrue(said, output)
                for text in said:
                    self.assertRegex(text, r"^process [01] makes another call than process [12]: (step|train) with other labels$")

    def test_other_lengths_are_refused(self):
        for case in ("ranks", "replicas"):
            with self.subTest(case):
                code, output = start(LAUNCHER, PROCESSES, [PROGRAM, f"lengths of {case}"], timeout=TIMEOUT)
                self.assertNotIn(code, (0, None), output)
                said = re.findall(r"^process \d: (process .*)$", output, re.MULTILINE)
                self.assertTrue(said, output)
                for text in said:
                    self.assertRegex(text, r"^process [01] makes another call than process [12]: step with other lengths$")

    def test_another_output_is_refused(self):
        code, output = start(LAUNCHER, PROCESSES, [PROGRAM, "outputs"], timeout=TIMEOUT)
        self.assertNotIn(code, (0, None), output)
        said = re.findall(r"^process \d: (process .*)$", output, re.MULTILINE)
        self.assertTrue(said, output)
        for text in said:
            self.assertRegex(text, r"^process [01] makes another call than process [12]: forward with other outputs$")

    def test_replicas_with_other_parameters_end_all(self):
        for case, step, ranks, other in (("step", 3, 1, 0), ("save", 5, 1, 0), ("train", 5, 2, 0)):
            names = [rf"process {p} \(rank {p % ranks} of replica {p // ranks}\)" for p in (2, other)]
            self.ends(f"compare {case}",
                      *(rf"^process {p}: {names[0]} has other parameters after step {step} than {names[1]}: replicas have the same ones, bit for bit, "
                        "unless a machine computes wrongly or a program writes to them$" for p in range(PROCESSES)))

    def test_processes_that_are_neither_ranks_nor_replicas_are_refused(self):
        self.ends("too_many_processes",
                  *(rf"^process {p}: {LAUNCHED} 4 processes for a pipeline of 3 ranks: start at most one for each rank, "
                    r"or for replicas a multiple$" for p in range(PROCESSES)),
                  *(rf"^process {p}: GradientAccumulation<2> has 2 accumulations, which 4 replicas cannot share: .*$" for p in range(PROCESSES)),
                  fails=False)

    @unittest.skipIf(BY_SOCKETS, "there is no MPI")
    def test_a_launcher_that_starts_no_mpi_is_refused(self):
        for variables in ({"RANK": "1", "WORLD_SIZE": "2"}, {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}):
            size = next(name for name, value in variables.items() if value == "2")
            run = subprocess.run([PROGRAM, "nothing"], env={**os.environ, **variables}, text=True, capture_output=True)
            self.assertNotEqual(0, run.returncode)
            self.assertIn(f"this is one of 2 processes by {size}, and MPI sees no other: start them by mpirun", run.stderr)

    def test_trainers_end_in_peace(self):
        self.ends("nothing", *(rf"^process {p}: ends$" for p in range(PROCESSES)), fails=False)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
