# SPDX-License-Identifier: BSL-1.0
"""Steps that follow each other without a barrier: what is planned for eight ranks, and what two cores of this machine do.

    bench/run.sh steady [--only planned|measured]

steady_bubble_100          planned idle share of the makespan of 100 steps: 6.2B times, 8 ranks, 64 micro-batches, twice 1F1B's memory
steady_bubble_100_1p       the same on a V in 1F1B's memory, equal times without hops
steady_over_barrier_2      two stages of about a millisecond: a step with the barrier over one without
pipedream_step_over_1f1b   a step without a flush over one with it
..._planned, _predicted    beside both: the plan's ratio, in which updates take no time, and a simulation with the times of steps with a barrier
..._with_own_times         the same simulation, but with the own times of steps without a barrier"""

import argparse
import os
import pathlib
import subprocess


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", choices=["planned", "measured"])
    only = options.parse_args().only
    for part in ("planned", "measured"):
        if only in (None, part):
            subprocess.run([pathlib.Path(os.environ["PIPE_BUILD"]) / "bench" / f"steady_{part}"], check=True)


if __name__ == "__main__":
    main()
