#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The launcher with real processes: a run that is lost and started again ends with the bits of one that was not; what cannot go on ends with a
stated exit code and one line.

    test_pipe_run.py LAUNCHER STAGES REPLICAS
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tcp"))
from job import LAUNCHERS  # noqa: E402

LAUNCHER, STAGES, REPLICAS = sys.argv[1:4]
SAMPLES, EPOCHS = 42, 5
LAST = SAMPLES * EPOCHS
# A shell's background jobs are started to ignore it, and so would be what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
CLEAN = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}


def launch(*arguments, back_off="0.1", **variables):
    """A running launcher."""
    return subprocess.Popen([LAUNCHER, "--back-off", back_off, *map(str, arguments)], text=True, errors="replace", stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**CLEAN, **variables})


def run(*arguments, **variables):
    """(exit code, output, errors, the launcher's own lines)"""
    process = launch(*arguments, **variables)
    try:
        output, errors = process.communicate(timeout=100)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, output, errors, re.findall(r"^pipe-run: (.*)$", errors, re.MULTILINE)


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.02)
    return found


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class PipeRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def folder(self, name):
        (self.root / name).mkdir(exist_ok=True)
        return self.root / name

    def end_of(self, name):
        return (self.root / name / "end.safetensors").read_bytes()

    def undisturbed(self, program, processes=4):
        code, _, errors, own = run("-n", processes, program, self.folder("whole"), LAST)
        self.assertEqual((0, []), (code, own), errors)
        return self.end_of("whole")

    def starts(self, name):
        return [int(line) for line in (self.root / name / "starts").read_text().split()]

    def test_a_run_goes_on_after_a_loss_with_the_same_bits(self):
        whole = self.undisturbed(STAGES)
        for way, why in (("killed", r"process 2 was killed by signal 9 \(Killed\)"),
                         ("exits", r"process \d ended with exit status [135]"),
                         ("stopped", r"process 2 was killed by signal 9 \(Killed\)"),
                         ("throws", r"process \d ended with exit status [13]"),
                         ("leaves", r"process \d ended with exit status [13]")):
            with self.subTest(way):
                code, _, errors, own = run("-n", 4, "--restarts", 2, STAGES, self.folder(way), LAST, PIPE_TEST_LOSS=f"{way} 2 5 2")
                self.assertEqual(0, code, errors)
                self.assertEqual(3, len(own), errors)
                for i, line in enumerate(own[:2]):
                    self.assertRegex(line, rf"^{why}, \S+ s after the start: starting 4 processes, restart {i + 1} of 2, in 0\.[12] s$")
                self.assertRegex(own[2], r"^4 processes ended well after 2 restarts, in \S+ s$")
                self.assertEqual(whole, self.end_of(way))

    def test_a_run_goes_on_in_fewer_processes_with_the_same_bits(self):
        whole = self.undisturbed(STAGES)
        code, _, errors, own = run("-n", 4, "--min", 2, "--restarts", 1, STAGES, self.folder("fewer"), LAST, PIPE_TEST_LOSS="killed 1 5 4")
        self.assertEqual(0, code, errors)
        self.assertEqual([4, 4, 3, 3, 2], self.starts("fewer"))
        self.assertRegex(own[1], r"starting 3 processes, which are fewer, in 0\.2 s$")
        self.assertRegex(own[4], r"^2 processes ended well after 4 restarts, in \S+ s$")
        self.assertEqual(whole, self.end_of("fewer"))

    def test_each_sample_is_trained_on_once_whatever_the_number_of_replicas(self):
        # Four replicas of four samples each have mini-batches of 16; two have 8, and one has 4. The last step of a start was not saved.
        code, _, errors, _ = run("-n", "4,2,1", REPLICAS, self.folder("replicas"), LAST, PIPE_TEST_LOSS="killed 1 5 1")
        self.assertEqual(0, code, errors)
        code, _, errors, _ = run("-n", "2,1", REPLICAS, self.folder("replicas"), LAST + 2 * SAMPLES)
        self.assertEqual(0, code, errors)
        self.assertEqual([4, 2, 2], self.starts("replicas"))
        steps = {}
        for line in (self.root / "replicas" / "steps").read_text().splitlines():
            number, processes, *samples = line.split()
            steps[int(number)] = int(processes), samples  # one that was not saved is made again
        self.assertEqual(list(range(1, len(steps) + 1)), list(steps))
        self.assertEqual({4, 2}, {processes for processes, _ in steps.values()})
        seen = [sample for _, samples in steps.values() for sample in samples]
        self.assertEqual(SAMPLES, len(set(seen)))
        for epoch in range(0, len(seen), SAMPLES):
            self.assertEqual(set(seen), set(seen[epoch:epoch + SAMPLES]))

    def test_a_run_that_fails_too_often_ends_with_the_code_of_the_failure(self):
        code, _, errors, own = run("-n", 2, "--restarts", 1, STAGES, self.folder("often"), LAST, PIPE_TEST_LOSS="killed 1 5 9")
        self.assertEqual(137, code, errors)
        self.assertEqual(2, len(own))
        self.assertRegex(own[1], r"^process 1 was killed by signal 9 \(Killed\), \S+ s after the start: given up after 1 restart, in \S+ s: "
                                 r"exit code 137$")

    def test_a_program_that_always_fails(self):
        code, output, errors, own = run("-n", 2, "--restarts", 2, "sh", "-c", '[ $RANK = 0 ] && sleep 1000; echo "start $PIPE_RESTART"; exit 7')
        self.assertEqual((7, "start 0\nstart 1\nstart 2\n"), (code, output), errors)
        self.assertRegex(own[-1], r"^process 1 ended with exit status 7, \S+ s after the start: given up after 2 restarts, ")

    def test_signals_are_passed_on_and_end_the_run(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                process = launch("-n", 3, "--restarts", 5, "sh", "-c", f'trap "exit 0" {number.name[3:]}; echo $$; while :; do sleep 0.01; done')
                pids = [int(process.stdout.readline()) for _ in range(3)]
                process.send_signal(number)
                _, errors = process.communicate(timeout=60)
                self.assertEqual(128 + number, process.returncode, errors)
                self.assertRegex(errors, rf"(?m)^pipe-run: ended by signal {int(number)} \(\w+\) after 0 restarts, in \S+ s: exit code {128 + number}$")
                wait_for(lambda: not any(map(is_alive, pids)))

    def test_a_process_that_takes_its_time_to_end_is_asked_once(self):
        script = ('[ $RANK = 1 ] && trap "exit 1" TERM || trap "echo asked; n=0" TERM; n=1000; echo begun; '
                  'while [ $((n += 1)) != 50 ]; do sleep 0.01; done; echo ended')
        process = launch("-n", 2, "--restarts", 1, "sh", "-c", script)
        self.assertEqual(["begun\n"] * 2, [process.stdout.readline() for _ in range(2)])
        process.terminate()
        output, errors = process.communicate(timeout=60)
        self.assertEqual((143, "asked\nended\n"), (process.returncode, output), errors)

    def test_a_program_that_notes_a_signal_ends_as_it_wants(self):
        process = launch("-n", 1, STAGES, self.folder("asked"), 10**9, PIPE_TEST_NOTES_SIGNALS="1")
        wait_for((self.root / "asked" / "steps").exists)
        process.terminate()
        _, errors = process.communicate(timeout=60)
        self.assertEqual(143, process.returncode, errors)
        self.assertEqual("ends\n", (self.root / "asked" / "asked").read_text())

    def test_a_signal_between_two_starts_ends_the_run(self):
        process = launch("--restarts", 1, "false", back_off="50")
        wait_for(lambda: process.stderr.readline())
        process.terminate()
        _, errors = process.communicate(timeout=30)
        self.assertEqual(143, process.returncode)
        self.assertIn("ended by signal 15", errors)

    def test_what_ignores_a_request_is_killed_and_so_is_what_it_has_started(self):
        script = 'trap "" TERM; sleep 1000 & echo $! $$; [ $RANK = 1 ] && exit 4; wait; wait'
        process = launch("-n", 3, "--grace", "0.3", "sh", "-c", script)
        pids = [int(pid) for _ in range(3) for pid in process.stdout.readline().split()]
        _, errors = process.communicate(timeout=60)
        self.assertEqual(4, process.returncode, errors)
        wait_for(lambda: not any(map(is_alive, pids)))

    def test_no_process_outlives_a_launcher_that_is_killed(self):
        process = launch("-n", 2, "sh", "-c", "echo $$; exec sleep 1000")
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
        process.communicate(timeout=30)
        wait_for(lambda: not any(map(is_alive, pids)))

    def test_a_process_that_ends_well_is_no_failure(self):
        code, output, errors, own = run("-n", 3, "--restarts", 3, "sh", "-c", "[ $RANK = 1 ] || sleep 0.3; echo $RANK")
        self.assertEqual((0, []), (code, own), errors)
        self.assertEqual("1", output.splitlines()[0])

    def test_lines_have_their_rank_on_request(self):
        script = 'for i in 1 2 3; do echo "line $i"; done; printf "no end"; echo wrong >&2'
        code, output, errors, _ = run("-n", 2, "--prefix", "sh", "-c", script)
        self.assertEqual(0, code)
        for rank in range(2):
            mine = [line for line in output.splitlines() if line.startswith(f"[{rank}] ")]
            self.assertEqual([f"[{rank}] {text}" for text in ("line 1", "line 2", "line 3", "no end")], mine)
            self.assertIn(f"[{rank}] wrong\n", errors)

    def test_processes_know_their_place(self):
        names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT PIPE_JOB_TOKEN PIPE_RESTART"
        script = f'for n in {names}; do eval "printf \'%s \' \\$$n"; done; echo; [ $PIPE_RESTART = 1 ] || exit 1'
        code, output, errors, _ = run("--restarts", 1, "sh", "-c", script, RANK="7", WORLD_SIZE="9", MASTER_ADDR="elsewhere",
                                      OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="1")
        self.assertEqual(0, code, errors)
        first, second = (line.split() for line in output.splitlines())
        for i, line in enumerate((first, second)):
            self.assertEqual(["0", "1", "0", "1", "127.0.0.1"], line[:5])
            self.assertTrue(1 <= int(line[5]) <= 65535)
            self.assertRegex(line[6], "^[0-9a-f]{32}$")
            self.assertEqual(str(i), line[7])
        self.assertNotEqual(first[6], second[6])

    def test_what_cannot_be_started_is_not_tried_again(self):
        for program, code, why in (("./there-is-none", 127, "No such file or directory"), ("/", 126, "Permission denied")):
            found, _, errors, own = run("--restarts", 5, program)
            self.assertEqual((code, [f"cannot start '{program}': {why}"]), (found, own), errors)
        for wrong in (["-n", "0", "true"], ["-n", "2,", "true"], ["-n", "2", "--min", "3", "true"], ["--window", "-1", "true"], []):
            self.assertEqual(125, run(*wrong)[0])

    def test_a_program_that_hangs_is_started_again(self):
        whole = self.undisturbed(STAGES)
        code, _, errors, own = run("-n", 4, "--restarts", 1, "--hang", 3, STAGES, self.folder("hangs"), LAST, PIPE_TEST_LOSS="hangs 3 5 1")
        self.assertEqual(0, code, errors)
        self.assertRegex(own[0], r"^no process has completed a call for 3 s: process 0: \d+ calls, process 1: \d+ calls, process 2: \d+ calls, "
                                 r"process 3: \d+ calls, \S+ s after the start: starting 4 processes, restart 1 of 1, ")
        self.assertEqual(whole, self.end_of("hangs"))
        code, _, errors, own = run("--hang", 0.5, STAGES, self.folder("hangs_again"), LAST, PIPE_TEST_LOSS="hangs 0 5 1")
        self.assertEqual(124, code, errors)
        self.assertRegex(own[0], r": given up after 0 restarts, in \S+ s: exit code 124$")

    def test_a_stopped_run_does_not_hang(self):
        process = launch("--hang", 3, STAGES, self.folder("stopped"), 10**9)
        wait_for((self.root / "stopped" / "steps").exists)
        child = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8"))
        for of in (child, process.pid):  # one process alone, and all by Ctrl-Z
            os.kill(of, signal.SIGSTOP if of == child else signal.SIGTSTP)
            wait_for(lambda of=of: Path(f"/proc/{of}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T")
            time.sleep(4)
            self.assertIsNone(process.poll())
            os.kill(of, signal.SIGCONT)
        seen = (self.root / "stopped" / "steps").stat().st_size
        wait_for(lambda: (self.root / "stopped" / "steps").stat().st_size > seen)
        process.terminate()
        self.assertIn("ended by signal 15", process.communicate(timeout=60)[1])

    def test_the_interval_between_checkpoints(self):
        code, output, _, _ = run("--interval", 30, "--machines", 512)
        self.assertEqual(0, code)
        self.assertIn("a failure within a day: 74.9 %\n", output)
        self.assertIn("a checkpoint that takes 30 s: every 1915 s\n", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
