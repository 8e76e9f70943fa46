#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Starts a program of tests in some processes, and looks at the word of each: MPICH's mpirun returns 0 where a process ended early.

    run.py LAUNCHER PROCESSES PROGRAM [ARGUMENT...]
"""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tcp"))
from job import LIMIT, Job  # noqa: E402, F401

# More processes than cores, and root, as in a container.
PERMISSION = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def start(launcher, processes, command, timeout=800):
    """Returns the exit code, or None if it was ended after `timeout` seconds, and what the processes printed. launcher: mpirun, or "sockets"."""
    if launcher == "sockets":
        job = Job(*[command] * processes)
        outputs = "".join(job.end(timeout).values())
        return None if "hangs\n" in outputs else max(map(abs, job.codes().values())), outputs
    version = subprocess.run([launcher, "--version"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    more = ["--oversubscribe"] if "Open MPI" in version or "OpenRTE" in version else []
    running = subprocess.Popen([launcher, *more, "-n", str(processes), *command], text=True, errors="replace", stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env={**os.environ, **PERMISSION}, start_new_session=True)
    try:
        output, _ = running.communicate(timeout=timeout)
        return running.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, 9)
        return None, running.communicate()[0]


def main():
    launcher, processes, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    code, output = start(launcher, processes, command)
    good = set(re.findall(rf"process (\d+) of {processes}: good", output))
    if code == 0 and len(good) == processes:
        print(f"{processes} processes are good")
        return 0
    print(f"{output}\n{len(good)} of {processes} processes are good; exit code {code}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
