# SPDX-License-Identifier: BSL-1.0
"""What the care for a run of weeks costs in each step: bench/life/main.cpp on this machine.

    bench/run.sh life [--only PART...]

watch_cost   a step of some milliseconds with progress, three metrics files and a live page that is read, over one without"""

import argparse
import os
import pathlib
import subprocess
import tempfile

PARTS = ["watch"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    chosen = options.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    for part in chosen.only:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([pathlib.Path(os.environ["PIPE_BUILD"]) / "bench" / "life", part, folder], check=True)


if __name__ == "__main__":
    main()
