# SPDX-License-Identifier: BSL-1.0
"""Processes of one job, started with the variables of a launcher."""
import os
import random
import re
import socket
import subprocess
import time

# Seconds from the loss of a process, or from a start that fails, to the end of all. It takes up to ten on a machine that does nothing else; tests run
# beside others.
LIMIT = 40
LAUNCHERS = re.compile(r"OMPI_|PMIX?_|MPI_|SLURM_|TORCHELASTIC_|LOCAL_|MASTER_|PIPE_|(RANK|WORLD_SIZE)$")
PORTS = range(20000, 32000)  # none that Linux gives to an outgoing connection
reservations = []


def free_port():
    """A port of loopback on which nothing listens, and which no other call of this function gives, in any process, until this process has ended."""
    for port in random.sample(PORTS, len(PORTS)):
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0pipe-test-port-{port}")  # in no folder: it ends with the process
            with socket.socket() as s:
                # A program that another thread starts has this socket, too, until it is executed, and must not hinder who listens.
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
            continue
        reservations.append(reservation)
        return port
    raise OSError("no port is free")


class Job:
    """Some processes of one job: the command of each, or None where it is left out."""

    def __init__(self, *processes, port=None, size=None, **variables):
        self.port = port or free_port()
        self.size = size or len(processes)
        self.begun = time.monotonic()
        self.running, self.outputs = {}, {}
        for rank, command in enumerate(processes):
            if command is not None:
                self.add(rank, command, **variables)

    def add(self, rank, command, key=None, **variables):
        mine = {"RANK": str(rank), "WORLD_SIZE": str(self.size), "MASTER_PORT": str(self.port), **variables}
        clean = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
        self.running[rank if key is None else key] = subprocess.Popen(
            command, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**clean, **{k: v for k, v in mine.items() if v is not None}})
        return self

    def end(self, timeout=LIMIT):
        """Waits for all; returns what each has said. One that does not end is killed, and has said so."""
        end = time.monotonic() + timeout
        for rank, process in self.running.items():
            try:
                self.outputs[rank] = process.communicate(timeout=max(0.1, end - time.monotonic()))[0]
            except subprocess.TimeoutExpired:
                process.kill()
                self.outputs[rank] = process.communicate()[0] + "hangs\n"
        self.seconds = time.monotonic() - self.begun
        return self.outputs

    def codes(self):
        return {rank: process.returncode for rank, process in self.running.items()}
