#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Peers that are no processes of pipe, with the job's token and without, before, in and after the hand-shake: each ends in one error, or is
sent away, and memory stays whole, which AddressSanitizer watches.

    test_rogues.py PROGRAM
"""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from job import LIMIT, Job, free_port
from peer import (ACCEPTED, BEGINS, CHALLENGE, HEAD, HELLO_SIZE, LIVES, PROOF, REFUSED, FalseHost, FalseProcess, answer_to, call, connect, frame, hello,
                  identity, own_identity, proof, prove, read, token_of_user, word)

PROGRAM = sys.argv[1]
TOKEN = "00112233445566778899aabbccddeeff"
SECRET = bytes.fromhex(TOKEN)
PLAN = int(subprocess.run([PROGRAM, "plan"], text=True, capture_output=True, check=True).stdout)
NOT_SENT = "has sent what no process of this"


def command(case, deadline=20000):
    return [PROGRAM, case, str(deadline)]


def entrance(address=b"127.0.0.1", port=1, number=5, unused=0):
    """Where a process listens for data: see tcp_entrance."""
    return struct.pack("<64siiQ", address, port, unused, number)


class Rogues(unittest.TestCase):
    def expect(self, job, rank, words, code=1):
        output = job.end()[rank]
        self.assertNotRegex(output, "Sanitizer|runtime error", output)
        self.assertRegex(output.rstrip().split("\n")[-1], rf"^process {rank}: {words}$", output)
        self.assertEqual(code, job.codes()[rank], output)
        self.assertLess(job.seconds, LIMIT, output)

    # ---- a false process 0 ----

    def with_host(self, act, words, case="mesh", deadline=20000):
        """Process 1 meets a process 0 that has the token, and acts after it has let process 1 in."""
        with socket.create_server(("127.0.0.1", free_port())) as server:
            job = Job(None, command(case, deadline), size=2, port=server.getsockname()[1], PIPE_JOB_TOKEN=TOKEN)
            host = FalseHost(server, SECRET)
            try:
                act(host, job)
            except ConnectionError:
                pass  # process 1 has ended
            self.expect(job, 1, words)
            host.close()

    def test_entrances_that_are_none(self):
        """Process 1 once used the address as a text that ends, and looked up whatever lay behind it."""
        for bad in (b"\xff" * 80, bytes(80), entrance(b"x" * 64), entrance(b"127.0.0.1" + b" " * 55), entrance(b"localhost"),
                    entrance(b"example.org\n\x1b[2J"), entrance(port=0), entrance(port=-1), entrance(port=65536), entrance(number=0),
                    entrance(b"")):
            def act(host, job, bad=bad):
                host.start()
                mark, theirs = host.hear()
                host.answer(mark, bad + theirs)

            with self.subTest(bad):
                self.with_host(act, "error: process 0 has sent an entrance that is none")

    def test_what_a_process_has_sent_is_not_changed(self):
        def act(host, job):
            host.start()
            mark, theirs = host.hear()
            host.answer(mark, entrance() + theirs[:-1] + bytes([theirs[-1] ^ 1]))

        self.with_host(act, "error: process 0 has sent other bytes than it was sent")

    def test_processes_that_are_not_what_they_say(self):
        """A watch may end a process that is stopped, by its number."""
        for make in (lambda pid: identity(number=0), lambda pid: identity(number=-1), lambda pid: identity(number=-2**31), lambda pid: identity(unused=1),
                     own_identity):
            with self.subTest(make):
                self.with_host(lambda host, job, make=make: host.start(make(job.running[1].pid)),
                               "error: process 0 has sent a number that its process has not")

    def test_a_host_that_says_nothing_more(self):
        self.with_host(lambda host, job: None, "rank_error: process 0 was lost: it has not answered for 5 s, while process 1 was starting")
        self.with_host(lambda host, job: host.begin(), "rank_error: process 1: timed out after 5 s waiting for process 0, starting")

    def test_a_host_that_lives_and_does_not_begin(self):
        """It ends a second after the time of a start, whatever it is told."""
        def act(host, job):
            while job.running[1].poll() is None and time.monotonic() < job.begun + LIMIT:
                host.calls.sendall(frame(LIVES))
                time.sleep(0.1)

        self.with_host(act, "rank_error: process 0 at .* did not report that all processes have connected; process 1 waited for this report", deadline=1500)

    def test_a_host_that_sends_what_is_no_frame(self):
        for data, words in (
            (b"\xff" * 500, "error: what listens at .* is no process 0 of pipe: it does not answer a hand-shake"),
            (frame(BEGINS, 2**32 - 1), "error: what listens at .* is no process 0 of pipe: .*"),
            (frame(REFUSED, 2**32 - 1), "error: what listens at .* is no process 0 of pipe: .*"),
            (frame(REFUSED, 1001) + bytes(1001), "error: what listens at .* is no process 0 of pipe: .*"),
            (frame(LIVES, 8) + bytes(8), "error: what listens at .* is no process 0 of pipe: .*"),
            (frame(REFUSED, 11) + b"\x1b[2J\xc2\x9b2J\xff\xc3\xa4", "error: \\?\\[2J\\?\\?2J\\?ä"),
            (frame(REFUSED, 4, 2**32 - 1) + b"\x00\x08\x7f!", "error: \\?\\?\\?!"),
        ):
            with self.subTest(data[:40]):
                self.with_host(lambda host, job, data=data: host.calls.sendall(data), words)

    def test_a_host_whose_operations_are_others(self):
        for answer in (lambda mark, theirs: call(b"", 0, bytes(48), mark=mark ^ 1), lambda mark, theirs: call(b"", 0, b"", 2**32 - 1, mark),
                       lambda mark, theirs: call(b"", 0, bytes(24), mark=mark), lambda mark, theirs: b"\xff" * 4096):
            def act(host, job, answer=answer):
                host.begin()
                host.calls.sendall(answer(*host.hear()))

            self.with_host(act, "error: process 0 makes another call than process 1, where the start of 24 bytes is expected .*")

    def test_words_of_a_false_host(self):
        for said in (word(2, 1), word(2, 0) * 2, word(2, 2), word(2, -1), word(2, 0, -1), word(3, 1), word(3, 0, 2**40), word(4, 0), word(5, 0),
                     word(1, 0, text=b"x"), word(1, 0, unused=1), word(1, 1), word(99, 0), word(4, 0, length=2**32 - 1) + bytes(5000), b"\xff" * 5000):
            def act(host, job, said=said):
                host.start()
                host.watch.sendall(said)

            with self.subTest(said[:40]):
                with socket.create_server(("127.0.0.1", free_port())) as server:
                    job = Job(None, command("idle"), size=2, port=server.getsockname()[1], PIPE_JOB_TOKEN=TOKEN)
                    host = FalseHost(server, SECRET)
                    act(host, job)
                    output = job.end()[1]
                    self.assertNotRegex(output, "Sanitizer|runtime error", output)
                    self.assertRegex(output, f"process 0 was lost: it {NOT_SENT} job sends, while process 1 was ", output)
                    host.close()

    # ---- a false process 1 ----

    def with_guest(self, act, words, case="mesh", last=True, **more):
        """Process 0 meets a process 1 that has the token, and acts once it has joined."""
        job = Job(command(case), None, size=2, PIPE_JOB_TOKEN=TOKEN)
        guest = FalseProcess(job.port, PLAN, SECRET, **more)
        try:
            act(guest)
        except ConnectionError:
            pass  # process 0 has ended
        if last:
            self.expect(job, 0, words)
        else:
            output = job.end()[0]
            self.assertNotRegex(output, "Sanitizer|runtime error", output)
            self.assertRegex(output, words, output)
            self.assertLess(job.seconds, LIMIT, output)
        guest.close()

    def test_a_guest_that_is_not_what_it_says(self):
        for bad in (identity(number=0), identity(number=-1), identity(unused=7)):
            self.with_guest(lambda guest, bad=bad: guest.start(bad), "error: process 1 has sent a number that its process has not")

    def test_a_guest_that_says_nothing_more(self):
        """Also one that has taken one of its places, or both, before others have come."""
        self.with_guest(lambda guest: None, "rank_error: process 0: timed out after 5 s waiting for process 1, starting")
        self.with_guest(lambda guest: None, "rank_error: process 1 was lost: it has not answered for 5 s, while process 0 was starting", channels=1)

    def test_a_guest_that_floods(self):
        def act(guest):
            guest.calls.sendall(frame(LIVES) * 100_000)

        self.with_guest(act, "(rank_)?error: process 1 (makes another call than process 0|was lost: ).*")

    def test_words_of_a_false_guest(self):
        for said in (word(4, 1, length=2**32 - 1) + b"x" * 5000, word(77, 1), word(2, 2), word(2, 0), word(2, 1, -1), word(2, 1) * 2, word(5, 1, text=b"lost"),
                     word(3, 0), word(3, 1, -2**40), word(4, 1), word(4, 7, text=b"x"), word(1, 1, unused=1), os.urandom(3) + b"\xff" * 3000):
            def act(guest, said=said):
                guest.start()
                guest.watch.sendall(word(1, 1)[:7])
                guest.watch.sendall(word(1, 1)[7:] + said)

            with self.subTest(said[:40]):
                self.with_guest(act, f"process 1 was lost: it {NOT_SENT} job sends, while process 0 was ", case="idle", last=False)

    def test_entrances_of_a_false_guest(self):
        for bad in (b"\xff" * 80, entrance(b"localhost"), entrance(port=70000)):
            def act(guest, bad=bad):
                guest.start()
                guest.calls.sendall(call(b"a gathering", 1, bad))

            self.with_guest(act, "error: process 1 has sent an entrance that is none")

    def test_messages_of_a_false_guest(self):
        def message(kind, trainer=0, tag=3, size=1, data=b""):
            return struct.pack("<IIqq", kind, trainer, tag, size) + data

        receives, sends, ends = 1, 2, 3
        for said in (message(receives, trainer=1), message(receives, trainer=2**32 - 1), message(receives, tag=4), message(receives, tag=-1),
                     message(receives, tag=-2**63), message(receives, size=-1), message(sends, size=2**62), message(sends, size=-1),
                     message(sends, tag=0), message(sends, data=b"b") * 2, message(ends, tag=0, size=0) * 2, message(ends, tag=0, size=-1),
                     message(ends, tag=1, size=0), message(0), message(4), b"\xff" * 4096):
            def act(guest, said=said):
                guest.start()
                guest.calls.sendall(call(b"a gathering", 1, entrance()))
                read(guest.calls, HEAD + 48)  # of the start
                _, port, _, number = struct.unpack("<64siiQ", read(guest.calls, HEAD + 160)[HEAD:HEAD + 80])
                data = connect(port)
                prove(data, hello(number, 1, 2, 0), SECRET)
                self.assertEqual([ACCEPTED, BEGINS], [read(data, HEAD)[12], read(data, HEAD)[12]])
                try:
                    data.sendall(said)
                finally:
                    guest.all.append(data)
                end = time.monotonic() + 2
                while time.monotonic() < end:  # it lives
                    guest.watch.sendall(word(1, 1))
                    time.sleep(0.1)

            with self.subTest(said[:40]):
                self.with_guest(act, f"rank_error: process 0: process 1 {NOT_SENT} program sends", case="links")

    def test_a_false_hello_with_the_token(self):
        """What is out of range ends the start, with a sentence."""
        for said in (hello(PLAN, process=-1), hello(PLAN, process=2**31 - 1), hello(PLAN, processes=0), hello(PLAN, processes=-2**31), hello(PLAN, channel=-1),
                     hello(PLAN, channel=2), hello(PLAN, host=1), hello(PLAN, process=0)):
            job = Job(command("mesh"), None, size=2, PIPE_JOB_TOKEN=TOKEN)
            answer_to(job.port, said, SECRET)
            self.expect(job, 0, r"error: (the process at \S+ is process -?\d+ of -?\d+, and process 0 is one of 2: .*|process \d is there twice, .*)")

    # ---- peers without the token ----

    def reflecting(self, s):
        """Sends back what comes, until the end."""
        try:
            while data := s.recv(4096):
                s.sendall(data)
        except OSError:
            pass

    def test_what_is_reflected_is_no_proof(self):
        job = Job(command("mesh"), None, size=2, PIPE_JOB_TOKEN=TOKEN)
        for take in (lambda said, nonce, shown: shown,  # the host's own proof
                     lambda said, nonce, shown: proof(bytes(16), b"g", said, nonce), lambda said, nonce, shown: bytes(32),
                     lambda said, nonce, shown: proof(SECRET, b"h", said, nonce), lambda said, nonce, shown: proof(SECRET, b"g", said, bytes(16)),
                     lambda said, nonce, shown: proof(SECRET, b"g", hello(PLAN), nonce)):
            with connect(job.port) as s:
                said = hello(PLAN)
                s.sendall(said)
                challenge = read(s, HEAD + 48)
                s.sendall(frame(PROOF, 32) + take(said, challenge[HEAD:HEAD + 16], challenge[HEAD + 16:]))
                self.assertIn(b"it has not shown to have the PIPE_JOB_TOKEN of this job", read(s, 4096))
        with connect(job.port) as s:
            s.sendall(hello(PLAN))
            self.reflecting(s)
        job.add(1, command("mesh"), PIPE_JOB_TOKEN=TOKEN)
        self.expect(job, 0, "ends", 0)
        self.expect(job, 1, "ends", 0)

    def test_a_hand_shake_is_not_used_twice(self):
        """All that a process of the job has sent does not open the next connection."""
        job = Job(command("idle"), None, size=3, PIPE_JOB_TOKEN=TOKEN)
        connect(job.port).close()
        with connect(job.port) as s:
            said = hello(PLAN, process=1, processes=3)
            nonce, _ = prove(s, said, SECRET)
            self.assertEqual(ACCEPTED, read(s, HEAD)[12])
            sent = said + frame(PROOF, 32) + proof(SECRET, b"g", said, nonce)
            self.assertIn(b"it has not shown to have the PIPE_JOB_TOKEN of this job", answer_to(job.port, sent))
        self.expect(job, 0, "rank_error: process 1 was lost: it has ended its connection, while process 0 was starting")

    def squat(self, answer, words, deadline=2000, port=None, **variables):
        """Process 1 meets whoever answers at its port, without the token. Returns all that it has said."""
        said = b""
        with socket.create_server(("127.0.0.1", port or free_port())) as server:
            job = Job(None, command("mesh", deadline), size=2, port=server.getsockname()[1], **variables)
            server.settimeout(0.2)
            kept = []
            while job.running[1].poll() is None and time.monotonic() < job.begun + LIMIT:
                try:
                    kept.append(server.accept()[0])
                    kept[-1].settimeout(5)
                    data = read(kept[-1], HEAD + HELLO_SIZE)
                    kept[-1].sendall(answer(data))
                    kept[-1].shutdown(socket.SHUT_WR)
                    said += data + read(kept[-1], 4096)
                except OSError:
                    continue
            for s in kept:
                s.close()
            self.expect(job, 1, words)
        return said

    def test_a_squatter_is_not_taken_for_process_0(self):
        other = r"error: what listens at \S+ is process 0 of another job: its PIPE_JOB_TOKEN is not that of process 1"
        none = r"error: what listens at \S+ is no process 0 of pipe: it does not answer a hand-shake"
        nonce = os.urandom(16)
        for answer, words in (
            (lambda data: data, none),  # reflects
            (lambda data: frame(ACCEPTED) + frame(BEGINS), none),
            (lambda data: frame(CHALLENGE, 48) + data[HEAD:HEAD + 16] + bytes(32), other),
            (lambda data: frame(CHALLENGE, 48) + nonce + proof(bytes(16), b"h", data, nonce), other),
            (lambda data: frame(CHALLENGE, 48) + nonce + proof(SECRET, b"g", data, nonce), other),  # the role of a guest
            (lambda data: frame(REFUSED, 4, 1) + b"gone", r"rank_error: process 1 has found no process 0 .* what listens there says: gone"),
        ):
            said = self.squat(answer, words, PIPE_JOB_TOKEN=TOKEN)
            self.assertNotIn(SECRET, said)
            self.assertNotIn(TOKEN.encode(), said)

    def test_the_token_is_never_sent(self):
        """Between two processes of a job, who are listened to in the middle."""
        port = free_port()
        real = Job(command("mesh"), None, size=2, PIPE_JOB_TOKEN=TOKEN)
        heard = bytearray()
        with socket.create_server(("127.0.0.1", port)) as server, ThreadPoolExecutor(4) as threads:
            server.settimeout(20)
            job = Job(None, command("mesh"), size=2, port=port, PIPE_JOB_TOKEN=TOKEN)

            def pass_on(from_, to):
                while data := from_.recv(65536):
                    heard.extend(data)
                    to.sendall(data)
                to.shutdown(socket.SHUT_WR)

            for _ in range(2):
                near, far = server.accept()[0], connect(real.port)
                threads.submit(pass_on, near, far)
                threads.submit(pass_on, far, near)
            self.expect(job, 1, "ends", 0)
            self.expect(real, 0, "ends", 0)
        self.assertGreater(len(heard), 4 * HEAD)
        self.assertNotIn(SECRET, heard)
        self.assertNotIn(TOKEN.encode(), heard)

    def test_a_squatter_on_the_port_of_process_0(self):
        with socket.create_server(("127.0.0.1", free_port())) as server:
            job = Job(command("mesh", 2000), None, size=2, port=server.getsockname()[1])
            self.expect(job, 0, r"error: process 0 cannot listen at 127\.0\.0\.1:\d+: the port is in use, perhaps by another job: .*")

    def test_strangers_at_another_address_of_the_name(self):
        """What listens at the first address of a name, and says nothing or something else, keeps no process from the second."""
        if not any(kind == socket.AF_INET6 for kind, *_ in socket.getaddrinfo("localhost", 1, type=socket.SOCK_STREAM)):
            self.skipTest("localhost has one address")
        for said in (b"", b"SSH-2.0\r\n", frame(ACCEPTED)):
            port = free_port()
            with socket.create_server(("::1", port), family=socket.AF_INET6) as server:
                job = Job(command("mesh"), command("mesh"), port=port, MASTER_ADDR="localhost", PIPE_JOB_TOKEN=TOKEN)
                server.settimeout(0.2)
                kept = []
                while None in job.codes().values() and time.monotonic() < job.begun + LIMIT:
                    for process in job.running.values():
                        process.poll()
                    try:
                        kept.append(server.accept()[0])
                        kept[-1].sendall(said)
                    except OSError:
                        continue
                for rank in (0, 1):
                    self.expect(job, rank, "ends", 0)
                for s in kept:
                    s.close()

    def test_a_stopped_job_that_lives_on(self):
        """A stop that is shorter than the patience ends nothing: neither of process 0 nor of another."""
        for stopped in (0, 1):
            job = Job(command("mesh"), command("mesh"), None, size=3, PIPE_JOB_TOKEN=TOKEN)
            time.sleep(1.5)
            job.running[stopped].send_signal(signal.SIGSTOP)
            time.sleep(2)
            job.running[stopped].send_signal(signal.SIGCONT)
            job.add(2, command("mesh"), PIPE_JOB_TOKEN=TOKEN)
            for rank in range(3):
                self.expect(job, rank, "ends", 0)

    def test_a_stranger_with_a_right_looking_hello_ends_nothing(self):
        """Without the token of the user, who was given none: another user of the machine."""
        job = Job(command("mesh"), None, size=2)
        connect(job.port).close()
        for said in (hello(PLAN), hello(PLAN, channel=1), hello(PLAN, processes=9), hello(PLAN, version=99), hello(1), hello(PLAN, process=0)):
            self.assertIn(b"it has not shown to have the PIPE_JOB_TOKEN", answer_to(job.port, said, bytes(16)))
        self.assertEqual(16, len(token_of_user(job.port)))
        job.add(1, command("mesh"))
        self.expect(job, 0, "ends", 0)
        self.expect(job, 1, "ends", 0)


def run(test):
    result = unittest.TestResult()
    test.run(result)
    return result


if __name__ == "__main__":
    tests = [Rogues(name) for name in unittest.TestLoader().getTestCaseNames(Rogues) if re.search("".join(sys.argv[2:]), name)]
    with ThreadPoolExecutor(8) as threads:  # they mostly wait
        results = list(threads.map(run, tests))
    problems = [f"--- {test}\n{text}" for result in results for test, text in result.failures + result.errors]
    print("\n".join(problems) if problems else f"{len(tests)} tests are good")
    sys.exit(1 if problems else 0)
