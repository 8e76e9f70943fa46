# SPDX-License-Identifier: BSL-1.0
"""The protocol of processes by sockets as anyone can speak it: its frames, a false process that joins a job, and a false process 0."""
import hashlib
import hmac
import os
import re
import socket
import struct
import time
from pathlib import Path

MAGIC = b"pipe/job"
VERSION = int(re.search(r"#define PIPE_VERSION (\d+)", (Path(__file__).resolve().parents[2] / "include/pipe/base/config.hpp").read_text())[1])
HELLO, CHALLENGE, PROOF, ACCEPTED, LIVES, BEGINS, REFUSED, CALL = range(1, 9)
HEAD, HELLO_SIZE = 24, 48


def frame(kind, length=0, number=0, magic=MAGIC, version=VERSION):
    return magic + struct.pack("<IIII", version, kind, length, number)


def hello(plan=1, process=1, processes=2, channel=0, host=0, milliseconds=60_000, length=HELLO_SIZE, kind=HELLO, nonce=None, **more):
    return frame(kind, length, **more) + (nonce or os.urandom(16)) + struct.pack("<QiiiiII", plan, process, processes, host, channel, milliseconds, 0)


def proof(token, role, said, nonce_of_host):
    """said: the frame and the hello of the guest."""
    return hmac.new(token, b"pipe job 1 " + role + said + nonce_of_host, hashlib.sha256).digest()


def token_of_user(port):
    """That of a job on loopback to which none was given."""
    key = Path(f"/tmp/pipe-{os.geteuid()}/key").read_bytes()
    return hmac.new(key, b"pipe port %d" % port, hashlib.sha256).digest()[:16]


def connect(port, wait=10):
    end = time.monotonic() + wait
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=20)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def read(s, count):
    """Exactly this number of bytes; fewer if the connection ends."""
    data = b""
    try:
        while len(data) < count and (more := s.recv(count - len(data))):
            data += more
    except (ConnectionError, TimeoutError):
        pass
    return data


def read_all(s):
    return read(s, 1 << 20)


def prove(s, said, token):
    """As a guest: sends a hello, and proves to have the token. Returns what the host has said, its nonce and proof."""
    s.sendall(said)
    challenge = read(s, HEAD + 48)
    assert challenge[12:16] == struct.pack("<I", CHALLENGE), challenge
    nonce, of_host = challenge[HEAD:HEAD + 16], challenge[HEAD + 16:]
    s.sendall(frame(PROOF, 32) + proof(token, b"g", said, nonce))
    return nonce, of_host


def answer_to(port, data, token=None):
    """What a host answers to a hello and, with a token, to the proof, until it ends the connection."""
    with connect(port) as s:
        if token is None:
            try:
                s.sendall(data)
            except ConnectionError:
                pass
        else:
            prove(s, data, token)
        return read_all(s)


def fnv(text):
    value = 0xcbf29ce484222325
    for byte in text:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


def call(name, number, data, length=None, mark=None):
    """An operation of all processes, by its name and number."""
    mark = (fnv(name) ^ number * 0x9e3779b9) % 2**32 if mark is None else mark
    return frame(CALL, len(data) if length is None else length, mark) + data


def word(what, process, number=0, text=b"", length=None, unused=0):
    """What the watch says: 1 lives, 2 parts, 3 leaves, 4 failed, 5 lost."""
    return struct.pack("<iiqII", what, process, number, len(text) if length is None else length, unused) + text


def identity(machine=7, numbers=7, number=99, unused=0):
    return struct.pack("<QQiI", machine, numbers, number, unused)


def own_identity(process):
    """Of a process of this machine, as it says it itself."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    return identity(fnv(boot.ljust(64, b"\0")), os.stat("/proc/self/ns/pid").st_ino, process)


class FalseProcess:
    """Process 1 of 2 after the hand-shake: its connections for calls and for the watch. It joins as many channels as it is told, and waits
    for the begin after two."""

    def __init__(self, port, plan, token=None, channels=2, process=1, processes=2):
        connect(port).close()
        token = token or token_of_user(port)
        self.all = []
        for channel in range(channels):
            s = connect(port)
            self.all.append(s)
            prove(s, hello(plan, process, processes, channel), token)
            self.expect(s, ACCEPTED)
        if channels == 2 and processes == 2:
            self.expect(self.all[0], BEGINS)
        self.calls, self.watch = self.all[0], self.all[-1]

    def expect(self, s, kind):
        while (answer := read(s, HEAD))[12:16] == struct.pack("<I", LIVES):
            pass
        assert answer[12:16] == struct.pack("<I", kind), answer

    def start(self, who=None):
        """The first operation, of all."""
        self.calls.sendall(call(b"the start", 0, who or identity()))

    def close(self):
        for s in self.all:
            s.close()


class FalseHost:
    """A process 0 of 2, at a port: it takes process 1 in, if it has the token of its job."""

    def __init__(self, server, token):
        server.settimeout(20)
        self.all = []
        for _ in range(2):
            s = self.welcome(server, token)
            s.sendall(frame(ACCEPTED))
            self.all.append(s)
        self.calls, self.watch = self.all

    @staticmethod
    def welcome(server, token):
        """A connection whose guest has proved to have the token."""
        s = server.accept()[0]
        s.settimeout(20)
        said = read(s, HEAD + HELLO_SIZE)
        nonce = os.urandom(16)
        s.sendall(frame(CHALLENGE, 48) + nonce + proof(token, b"h", said, nonce))
        shown = read(s, HEAD + 32)
        assert shown[HEAD:] == proof(token, b"g", said, nonce), shown
        return s

    def begin(self):
        self.calls.sendall(frame(BEGINS))

    def hear(self):
        """The next operation of process 1: its mark and its bytes; signs of life are passed over."""
        while True:
            head = read(self.calls, HEAD)
            if len(head) < HEAD:
                return None, b""
            kind, length, mark = struct.unpack("<III", head[12:])
            data = read(self.calls, length)
            if kind != LIVES:
                return mark, data

    def answer(self, mark, data):
        self.calls.sendall(call(b"", 0, data, mark=mark))

    def start(self, own=None):
        """The first operation, with this identity of process 0."""
        self.begin()
        mark, theirs = self.hear()
        self.answer(mark, (own or identity()) + theirs)

    def lives(self):
        self.watch.sendall(word(1, 0))

    def close(self):
        for s in self.all:
            s.close()
