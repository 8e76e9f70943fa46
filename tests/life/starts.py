# SPDX-License-Identifier: BSL-1.0
"""Starts of a program, of which one process is struck at."""
import os
import shlex
import subprocess
import sys
from pathlib import Path

sys.path[1:1] = [str(Path(__file__).parent.parent / folder) for folder in ("tcp", "mpi")]
from job import Job  # noqa: E402
from run import start as start_by_mpi  # noqa: E402

SKIPPED = 77


def is_skipped(strike):
    """Whether the system lets no program trace another, which is printed."""
    skipped = subprocess.run([strike, "count", os.devnull, "true"], check=False).returncode == SKIPPED
    if skipped:
        print("the system lets no program trace another")
    return skipped


class Starts:
    """launcher: none, sockets, or an mpirun. folder: where it is told what was struck at."""

    def __init__(self, launcher, strike, command, folder):
        self.launcher, self.strike, self.command, self.folder = launcher, strike, command, folder

    def start(self, processes, ways={}, timeout=120):  # noqa: B006
        """Strikes at the processes that have a way. Returns the exit code, or None if they had to be ended, and what they printed."""
        commands = [self.command] * processes
        for process, way in ways.items():
            self.report(process).unlink(missing_ok=True)
            commands[process] = [self.strike, way, str(self.report(process)), *self.command]
        if self.launcher in ("none", "sockets"):
            job = Job(*commands)
            output = "".join(job.end(timeout).values())
            return None if output.endswith("hangs\n") else max(map(abs, job.codes().values())), output
        # One command for all: the mpirun of Open MPI 5.0 crashes where each process has another.
        choices = " ".join(f"{process}) exec {shlex.join(command)} ;;" for process, command in enumerate(commands))
        by_number = f"case ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} in {choices} esac"
        return start_by_mpi(self.launcher, processes, ["sh", "-c", by_number], timeout)

    def report(self, process):
        return self.folder / f"struck.{process}"

    def struck(self, process=0):
        """The number of "calls" of a process, and how often each was struck at, by its name."""
        path = self.report(process)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return {name: int(times) for name, times in map(str.split, text.splitlines())}
