#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Start-up of a job by sockets, and the loss of a process in every phase: what does not fit is named in one sentence, before the deadline.

    test_start_up.py PROGRAM OTHER_PROGRAM
"""
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from job import LIMIT
from job import Job as AnyJob
from peer import ACCEPTED, CHALLENGE, HEAD, REFUSED, VERSION, FalseProcess, answer_to, call, connect, frame, hello, token_of_user

PROGRAM, OTHER = sys.argv[1], sys.argv[2]
TOKEN = "00112233445566778899aabbccddeeff"
DEADLINE = 2  # seconds of a start that is to fail


class Job(AnyJob):
    """Processes of the program, given by their arguments."""

    def add(self, rank, command, program=PROGRAM, key=None, **variables):
        return super().add(rank, [program, *command.split()], key, **variables)


def plan_of_program():
    return int(subprocess.run([PROGRAM, "plan"], text=True, capture_output=True, check=True).stdout)


def wait_until_joined(job, processes):
    """Until this number of processes has both of its connections with process 0."""
    end = time.monotonic() + LIMIT
    joined = 0
    while joined < processes:
        if time.monotonic() > end or any(process.poll() is not None for process in job.running.values()):
            raise AssertionError(f"{joined} of {processes} processes have joined process 0 at port {job.port}: {job.end(1)}")
        time.sleep(0.02)
        with open("/proc/net/tcp", encoding="ascii") as file:
            lines = [line.split() for line in file]
        joined = sum(line[1].endswith(f":{job.port:04X}") and line[3] == "01" for line in lines) // 2
    time.sleep(0.2)  # what is on its way arrives


class StartUp(unittest.TestCase):
    def expect(self, job, *expected, fails=True):
        """expected: by process an expression for its last line."""
        outputs = job.end()
        for rank, expression in enumerate(expected):
            if expression is not None:
                self.assertRegex(outputs[rank].rstrip().split("\n")[-1], rf"^process {rank}: {expression}$", outputs)
        self.assertLess(job.seconds, LIMIT, outputs)
        for rank, code in job.codes().items():
            self.assertIn(fails, (code != 0, None), (rank, outputs))

    def test_processes_meet(self):
        for number in (1, 2, 5):
            job = Job(*["world"] * number)
            outputs = job.end()
            for rank in range(number):
                self.assertIn(f"process {rank}: is right\nprocess {rank}: ends\n", outputs[rank], outputs)
        self.expect(Job("program", "program", "program"), *["ends"] * 3, fails=False)

    def test_the_order_of_coming_does_not_matter(self):
        job = Job(None, "world", "world", size=3)
        time.sleep(0.3)
        self.expect(job.add(0, "world"), *["ends"] * 3, fails=False)

    def test_it_listens_on_loopback_unless_told_otherwise(self):
        def listens_at(**variables):
            job = Job("world 1000", None, size=2, **variables)
            connect(job.port).close()
            wanted = f":{job.port:04X}"
            with open("/proc/net/tcp", encoding="ascii") as file:
                found = {line.split()[1][:8] for line in file if line.split()[3] == "0A" and line.split()[1].endswith(wanted)}
            job.end()
            return found

        self.assertEqual({"0100007F"}, listens_at())
        self.assertEqual({"0100007F"}, listens_at(MASTER_ADDR="localhost"))

    def test_a_token_is_shared(self):
        self.expect(Job("world", "world", PIPE_JOB_TOKEN=TOKEN), "ends", "ends", fails=False)

    def test_a_missing_process_is_named(self):
        missing = r"rank_error: process 2 of 3 has not come to process 0 at 127\.0\.0\.1:\d+ within 2 s"
        self.expect(Job("world 2000", "world 2000", None, size=3), missing, missing)
        self.expect(Job("world 500", *[None] * 19, size=20),
                    r"rank_error: processes 1, 2, 3, 4, 5, 6, 7, 8 and 11 more of 20 have not come to process 0 at .* within 0\.5 s")

    def test_no_process_0(self):
        self.expect(Job(None, "world 1000", size=2), None,
                    r"rank_error: process 1 has found no process 0 at 127\.0\.0\.1:\d+ within 1 s: Connection refused")

    def test_a_name_that_is_looked_up_for_ever(self):
        self.expect(Job("world 1000", "world 1000", MASTER_ADDR="slow.example", PIPE_JOB_TOKEN=TOKEN),
                    r"error: process 0 cannot listen at slow\.example:\d+: its name is still being looked up",
                    r"rank_error: process 1 has found no process 0 at slow\.example:\d+ within 1 s: its name is still being looked up")

    def test_a_process_that_is_there_twice_is_named(self):
        twice = r"error: process 1 is there twice, at 127\.0\.0\.1:\d+ and at 127\.0\.0\.1:\d+: every process needs a RANK of its own"
        job = Job("world", "world", None, size=3)
        wait_until_joined(job, 1)
        job.add(1, "world", key="again")
        self.expect(job, twice, twice)
        self.assertRegex(job.outputs["again"], twice)

    def test_a_process_that_comes_again_is_refused_and_the_job_goes_on(self):
        job = Job("idle", "idle")
        wait_until_joined(job, 1)
        again = Job(None, "world 5000", port=job.port, size=2)
        self.expect(again, None, r"error: process 1 is there twice, at .*: every process needs a RANK of its own")
        self.assertEqual({0: None, 1: None}, {rank: process.poll() for rank, process in job.running.items()})
        job.running[1].kill()
        job.end()

    def test_other_numbers_of_processes(self):
        job = Job("world", None, size=2)
        job.add(2, "world", key=1, WORLD_SIZE="3")
        self.expect(job, r"error: the process at 127\.0\.0\.1:\d+ is process 2 of 3, and process 0 is one of 2: all need the same WORLD_SIZE")
        self.assertIn("is process 2 of 3, and process 0 is one of 2", job.outputs[1])

    def test_another_program_is_refused(self):
        job = Job("world", "world", None, size=3)
        wait_until_joined(job, 1)
        job.add(2, "world", program=OTHER)
        other = r"error: process 2 at 127\.0\.0\.1:\d+ has another plan than process 0: start the same program in all processes"
        self.expect(job, other, other, other)

    def test_another_version_is_refused(self):
        job = Job("world", None, size=2)
        connect(job.port).close()
        answer = answer_to(job.port, hello(version=99), token_of_user(job.port))
        self.assertIn(f"has version 99 of pipe, and process 0 has version {VERSION}: start the same program in all processes".encode(), answer)
        self.expect(job, rf"error: the process at .* has version 99 of pipe, and process 0 has version {VERSION}: .*")

    def test_strangers_do_not_disturb(self):
        """What no process of the job sends: each is told so, and the job begins. Memory does not grow with what is announced."""
        plan = plan_of_program()
        job = Job("world 20000", None, size=2, PIPE_JOB_TOKEN=TOKEN)
        token = bytes.fromhex(TOKEN)
        connect(job.port).close()
        before = memory_of(job.running[0].pid)
        no_token = b"it has not shown to have the PIPE_JOB_TOKEN of this job"
        for data, why in (
            (b"GET / HTTP/1.1\r\n\r\n", b"it has sent no hand-shake of pipe"),
            (os.urandom(5000), b"it has sent no hand-shake of pipe"),
            (hello(plan, magic=b"pipe/udp"), b"it has sent no hand-shake of pipe"),
            (hello(plan, length=2**32 - 1) + bytes(100_000), b"it has announced 4294967295 bytes, and this part of a hand-shake has 48"),
            (hello(plan, length=2**31), b"it has announced 2147483648 bytes"),
            (hello(plan, length=0), b"it has announced 0 bytes"),
            (hello(plan, kind=77), b"bytes, and this part of a hand-shake has 48"),
            (hello(plan) + frame(77, 32) + bytes(32), b"bytes, and this part of a hand-shake has 32"),
            (hello(plan) + frame(3, 2**32 - 1) + bytes(32), b"it has announced 4294967295 bytes"),
            (hello(plan) + frame(3, 32) + bytes(32), no_token),
        ):
            self.assertIn(why, answer_to(job.port, data), data[:64])
        wrong = bytes.fromhex(TOKEN[:-1] + "e")
        for said in (hello(plan), hello(plan, processes=9), hello(plan, version=99), hello(7), hello(plan, process=0)):
            answer = answer_to(job.port, said, wrong)
            self.assertIn(no_token, answer)
            self.assertNotIn(token, answer)
        with connect(job.port) as half:  # half a frame, and then the end
            half.sendall(hello(plan)[:33])
            half.shutdown(socket.SHUT_WR)
            self.assertIn(b"it has ended after 33 of 72 bytes of a hand-shake", half.recv(4096))
        self.assertLess(memory_of(job.running[0].pid) - before, 1 << 20)
        job.add(1, "world 20000", PIPE_JOB_TOKEN=TOKEN)
        self.expect(job, "ends", "ends", fails=False)

    def test_silent_and_slow_connections_keep_none_out(self):
        job = Job("world 20000", None, size=2)
        connections = [connect(job.port) for _ in range(300)]
        for s in connections[::2]:
            try:
                s.sendall(hello()[:5])
            except OSError:
                pass  # newer ones have taken its place
        job.add(1, "world 20000")
        self.expect(job, "ends", "ends", fails=False)
        for s in connections:
            s.close()

    def test_strangers_who_are_silent_do_not_delay_a_start(self):
        """Process 0 is stopped while they come, so that they all come at once, and the job's own process behind them."""
        job = Job("world 20000", None, size=2)
        connect(job.port).close()
        job.running[0].send_signal(signal.SIGSTOP)
        connections = [connect(job.port) for _ in range(300)]
        job.add(1, "world 20000")
        time.sleep(0.5)
        more = [connect(job.port) for _ in range(300)]
        job.running[0].send_signal(signal.SIGCONT)
        begun = time.monotonic()
        self.expect(job, "ends", "ends", fails=False)
        self.assertLess(time.monotonic() - begun, LIMIT)
        for s in connections + more:
            s.close()

    def test_strangers_are_named_when_a_process_is_missing(self):
        job = Job("world 1500", None, size=2)
        answer_to(job.port, b"SSH-2.0-OpenSSH_9.2\r\n")
        self.expect(job, r"rank_error: process 1 of 2 has not come to process 0 at .* within 1\.5 s; it has refused 1 other connection, from "
                         r"127\.0\.0\.1:\d+: it has sent no hand-shake of pipe")

    def test_what_listens_is_no_process_0(self):
        other = r"error: what listens at .* is no process 0 of pipe: it does not answer a hand-shake"
        none = r"rank_error: process 1 has found no process 0 at .* within 1 s: what listens there "
        for data, words in (
            (b"SSH-2.0-OpenSSH_9.2\r\n", other),
            (frame(CHALLENGE, 2**32 - 1), other),
            (frame(REFUSED, 2**32 - 1), other),
            (frame(ACCEPTED), other),
            (frame(CHALLENGE, 48) + bytes(48), r"error: what listens at .* is process 0 of another job: its PIPE_JOB_TOKEN is not .*"),
            (frame(REFUSED, 9) + b"go away\x1b!", none + r"says: go away\?!"),
            (frame(CHALLENGE, 48)[:20], none + "does not answer"),
            (b"", none + "does not answer"),
            (None, none + "has ended the connection"),
        ):
            with socket.create_server(("127.0.0.1", 0)) as server:
                job = Job(None, "world 1000", size=2, port=server.getsockname()[1])
                server.settimeout(0.2)
                kept = []
                end = time.monotonic() + 10
                while job.running[1].poll() is None and time.monotonic() < end:
                    try:
                        kept.append(server.accept()[0])
                    except TimeoutError:
                        continue
                    if data is None:
                        kept[-1].close()
                    else:
                        kept[-1].sendall(data)
                for s in kept:
                    s.close()
                self.expect(job, None, words)

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            job = Job("world 2000", None, size=2, port=server.getsockname()[1])
            self.expect(job, r"error: process 0 cannot listen at 127\.0\.0\.1:\d+: the port is in use, perhaps by another job: .*")

    def test_an_address_that_is_not_here(self):
        self.expect(Job("world 2000", None, size=2, MASTER_ADDR="192.0.2.1", PIPE_JOB_TOKEN=TOKEN),
                    r"error: process 0 cannot listen at 192\.0\.2\.1:\d+: it is no address of this machine, and MASTER_ADDR must be one of "
                    r"process 0's")

    def test_two_jobs_on_one_port_do_not_mix(self):
        """Without a token, and with all processes of both there at once: who belongs to whom is not known, so neither begins. On a busy machine
        the second may find the port only when the first has ended, and then begins alone."""
        first = Job("program", None, size=2)
        connect(first.port).close()
        second = Job("program", "program", port=first.port, size=2)
        first.add(1, "program")
        outputs = [*first.end().values(), *second.end().values()]
        begun = [text for text in outputs if "ends\n" in text or "has begun" in text]
        if begun:
            self.assertEqual(list(second.outputs.values()), begun, outputs)
        else:
            self.assertRegex(second.outputs[0], r"error: process 0 cannot listen at .*: the port is in use, perhaps by another job")
        self.assertRegex(outputs[0], r"error: (process [01] is there twice, at 127.* and at 127.*: every process needs a RANK of its own|"
                                     r"MASTER_PORT \d+ has two jobs: process [01] is there twice, as \d+ and as \d+ of the system's processes: .*)")

    def test_a_second_process_0_that_does_not_listen_ends_the_start(self):
        job = Job("world", None, size=2)
        connect(job.port).close()
        Job("world", None, size=2, port=job.port).end()
        self.expect(job, r"error: process 0 is there twice, at 127\.0\.0\.1:\d+ and at 127\.0\.0\.1:\d+: every process needs a RANK of its own")

    def test_a_process_elsewhere_of_the_same_number_keeps_a_job_from_beginning(self):
        """It has not come yet, and could be the one that is meant."""
        job = Job("world", None, size=2)
        connect(job.port).close()
        job.add(1, "sleeps", key="other")
        job.add(1, "world")
        two = r"error: MASTER_PORT \d+ has two jobs: process 1 is there twice, as \d+ and as \d+ of the system's processes: " \
              r"give each a MASTER_PORT of its own, or a PIPE_JOB_TOKEN"
        self.expect(job, two, two)

    def test_two_launchers_on_one_port(self):
        first = Job("idle", None, size=2, PIPE_JOB_TOKEN=TOKEN)
        connect(first.port).close()
        second = Job("world 3000", "world 3000", port=first.port, PIPE_JOB_TOKEN=TOKEN[::-1])
        self.expect(second, r"error: process 0 cannot listen at .*: the port is in use, perhaps by another job: MASTER_PORT must be free",
                    r"error: what listens at .* is process 0 of another job: its PIPE_JOB_TOKEN is not that of process 1")
        first.add(1, "idle", PIPE_JOB_TOKEN=TOKEN)
        wait_until_joined(first, 1)
        self.assertEqual({0: None, 1: None}, {rank: process.poll() for rank, process in first.running.items()})
        first.running[1].kill()
        first.end()

    def test_wrong_variables_are_named(self):
        for variables, words in (
            ({"RANK": "2"}, r"RANK is '2': expected a number from 0 to 1"),
            ({"RANK": "one"}, r"RANK is 'one': expected a number from 0 to 1"),
            ({"WORLD_SIZE": "0"}, r"WORLD_SIZE is '0': expected a number from 1 to 1000000"),
            ({"WORLD_SIZE": None}, r"RANK is '0', and WORLD_SIZE is not set: set both, or unset RANK for a process that is alone"),
            ({"RANK": None}, r"WORLD_SIZE is '2', and RANK is not set: set both, or unset WORLD_SIZE for a process that is alone"),
            ({"MASTER_ADDR": "192.0.2.1"}, r"PIPE_JOB_TOKEN is not set, and MASTER_ADDR is '192\.0\.2\.1', which other machines may reach: set it .*"),
            ({"MASTER_ADDR": "0.0.0.0"}, r"PIPE_JOB_TOKEN is not set, and MASTER_ADDR is '0\.0\.0\.0', which other machines may reach: set it .*"),
            ({"MASTER_PORT": None}, r"MASTER_PORT is not set: expected a number from 1"),
            ({"MASTER_PORT": "http"}, r"MASTER_PORT is 'http': expected a number from 1 to 65535"),
            ({"PIPE_JOB_TOKEN": "secret"}, r"PIPE_JOB_TOKEN has 6 characters: expected 32 hexadecimal digits, as of `openssl rand -hex 16`"),
        ):
            job = Job(None, None).add(0, "world", **variables)
            self.expect(job, "error: " + words)

    def test_calls_that_differ_are_named(self):
        words = r"error: process 1 makes another call than process 0, where a barrier of 0 bytes is expected \(8 have come\): .*"
        job = Job("other_call", "other_call")
        self.expect(job, words, "rank_" + words.replace("rank_", ""))
        self.expect(Job("other_plan_later", "other_plan_later"),
                    "error: process 1 has another plan than process 0: start the same program in all processes",
                    "error: process 0 has another plan than process 1: start the same program in all processes")

    def test_what_no_process_sends_is_no_call(self):
        for make in (lambda other: other.calls.sendall(call(b"the start", 0, bytes(24), length=2**32 - 1)),
                     lambda other: other.calls.sendall(call(b"", 0, bytes(24), mark=0)),
                     lambda other: other.calls.sendall(os.urandom(HEAD - 1) + b"\xff" * 1000)):
            job = Job("idle", None, size=2)
            other = FalseProcess(job.port, plan_of_program())
            make(other)
            self.expect(job, "error: process 1 makes another call than process 0, where the start of 24 bytes is expected .*")
            other.close()

    def test_a_failure_reaches_all(self):
        self.expect(Job("fails", "fails", "fails"), "rank_error: process 1: broken", "error: broken", "rank_error: process 1: broken")

    def test_a_process_that_is_late_is_named(self):
        late = r"rank_error: process 1: timed out after 2 s waiting for process 0, late"
        self.expect(Job("late", "late"), None, late, fails=None)

    def test_a_process_that_ends_early_is_named(self):
        early = r"rank_error: process 1 has ended the program, while process {} was training"
        job = Job("ends_early", "ends_early", "ends_early")
        outputs = job.end()
        self.assertRegex(outputs[0] + outputs[2], early.format("[02]"))
        self.assertLess(job.seconds, LIMIT)


def memory_of(pid):
    """Bytes that a process had at most."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmPeak:\s+(\d+) kB", file.read())[1]) * 1024


class Loss(unittest.TestCase):
    maxDiff = None

    """A process is lost in a phase: all end within LIMIT seconds, with one message."""

    def lose(self, case, phase, way, victim, words, count=3, deadline=20000):
        job = Job(*[f"{case} {deadline} {victim} {phase} {way}"] * count)
        outputs = job.end()
        text = "".join(outputs.values())
        struck = re.search(r"^strikes at ([\d.]+)$", text, re.MULTILINE)
        self.assertTrue(struck, outputs)
        self.assertLess(time.monotonic() - float(struck[1]), LIMIT, outputs)
        self.assertNotIn("hangs", text)
        if words is not None:
            found = re.findall(r"^process \d+ was lost: .*$", text, re.MULTILINE)
            self.assertEqual(1, len(found), outputs)
            self.assertRegex(found[0], f"^{words}$")
        for rank, code in job.codes().items():
            self.assertNotEqual(0, code, (rank, outputs))

    def test_in_every_phase(self):
        finder = {0: 1, 1: 0, 2: 0}
        ways = {"killed": "killed", "stopped": "it has not answered for 5 s", "exits": "it has ended with exit status 5"}
        cases = []
        for victim in (0, 2):
            for way in ("killed", "stopped"):
                for phase, does in (("steady", "training"), ("idle", "computing")):
                    words = f"process {victim} was lost: {ways[way]}, while process {finder[victim]} was {does}"
                    cases.append(("lost" if phase == "steady" else "idle", phase, way, victim, words))
            cases.append(("program", "steady", "exits", victim,
                          f"process {victim} was lost: {ways['exits']}, while process {finder[victim]} was outside of the trainers' calls"))

        def problem_of(case):
            try:
                self.lose(*case)
                return ""
            except AssertionError as e:
                return f"{case}: {e}"

        with ThreadPoolExecutor(len(cases)) as threads:
            self.assertEqual("", "\n".join(filter(None, threads.map(problem_of, cases))))

    def test_before_the_hand_shake(self):
        self.lose_before(2, r"rank_error: process 2 of 3 has not come to process 0 at .* within 2 s", 1)
        self.lose_before(0, r"rank_error: process 2 has found no process 0 at .* within 2 s: Connection refused", 2)

    def lose_before(self, victim, words, who):
        job = Job(*[f"world 2000 {victim} before killed"] * 3)
        outputs = job.end()
        self.assertRegex(outputs[who], words, outputs)
        self.assertLess(job.seconds, LIMIT)

    def test_in_the_hand_shake(self):
        """Of process 0, and of another, when both have been accepted, and a third is missing."""
        for victim, way, words in ((0, "kill", "rank_error: process 0 was lost: it has ended its connection, while process 1 was starting"),
                                   (1, "kill", "rank_error: process 1 was lost: it has ended its connection, while process 0 was starting"),
                                   (0, "stop", "rank_error: process 0 was lost: it has not answered for 5 s, while process 1 was starting"),
                                   (1, "stop", "rank_error: process 1 was lost: it has not answered for 5 s, while process 0 was starting")):
            job = Job("world 40000", "world 40000", None, size=3)
            wait_until_joined(job, 1)
            job.running[victim].send_signal({"kill": 9, "stop": 19}[way])
            other = 1 - victim
            outputs = {other: job.running[other].communicate(timeout=LIMIT)[0]}
            self.assertRegex(outputs[other], rf"process {other}: {words}\n", outputs)
            self.assertLess(time.monotonic() - job.begun, LIMIT)
            job.running[victim].kill()
            job.running[victim].communicate()

    def test_in_shutdown(self):
        """Process 2 has come to its end, and waits for the others to come to theirs."""
        job = Job("idle", "idle", "short")
        wait_until_joined(job, 2)
        for rank in (0, 1):
            self.assertIsNone(job.running[rank].poll())
        job.running[2].kill()
        outputs = job.end()
        self.assertRegex(outputs[0], r"process 2 was lost: killed, while process 0 was computing\n")


def run(test):
    result = unittest.TestResult()
    test.run(result)
    return result


if __name__ == "__main__":
    tests = [test for case in (Loss, StartUp) for test in map(case, unittest.TestLoader().getTestCaseNames(case))]
    with ThreadPoolExecutor(8) as threads:  # they mostly wait
        results = list(threads.map(run, tests))
    problems = [f"--- {test}\n{text}" for result in results for test, text in result.failures + result.errors]
    print("\n".join(problems) if problems else f"{len(tests)} tests are good")
    sys.exit(1 if problems else 0)
