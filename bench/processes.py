# SPDX-License-Identifier: BSL-1.0
"""What processes cost, and what replicas bring: a simulated cluster, then bench/processes/main.cpp in two processes of this machine, one core each.

    bench/run.sh processes [--only PART...] [--link 25e9 ...]      the options of the simulation: --only cluster --help

cluster_over_published_... simulated TFLOP/s of a GPU over those that are published for Megatron: the least and the greatest ratio
mpi_2_over_in_process      a step of two stages of about a millisecond, in two processes over two threads of one
replicas_2_speedup         a step of a GPT of 3.3 million parameters in one process of one core, over the same in two replicas
shares_by_speed_speedup    a step of two replicas, of which one takes 10 ms for an accumulation, and the other 20, with as many accumulations each over accumulations by speed
allreduce_over_mpi         our sum over replicas of GPT-2's gradients (124 million floats), in a binary tree, over MPI_Allreduce
mpi_hand_off_..._us        a boundary value from one process to another: half a round trip"""

import argparse
import os
import pathlib
import subprocess
import sys

MEASURED = {"hand_off": [], "stages": ["--bind-to", "none"], "replicas": [], "shares": [], "allreduce": []}  # with the options of Open MPI


def main():
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--only", nargs="+", choices=["cluster", *MEASURED], default=["cluster", *MEASURED])
    chosen, simulation = options.parse_known_args()
    folder = pathlib.Path(os.environ["PIPE_BUILD"]) / "bench"
    if "cluster" in chosen.only:
        subprocess.run([folder / "cluster", *simulation], check=True)
    measured = [part for part in chosen.only if part != "cluster"]
    if not measured:
        return
    if not (folder / "mpirun").exists():
        sys.exit("processes: there is no MPI (Debian's openmpi-bin and libopenmpi-dev, or mpich and libmpich-dev)")
    launcher = (folder / "mpirun").read_text()
    version = subprocess.run([launcher, "--version"], text=True, capture_output=True, check=True).stdout.splitlines()[0]
    print(f"{version}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    of_open_mpi = "Open MPI" in version or "OpenRTE" in version
    permission = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    for part in measured:
        more = MEASURED[part] if of_open_mpi else []
        subprocess.run([launcher, "-n", "2", *more, folder / "processes", part], env={**os.environ, **permission}, check=True)


if __name__ == "__main__":
    main()
