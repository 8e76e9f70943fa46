# SPDX-License-Identifier: BSL-1.0
"""What the care for a run of weeks costs: the programs of bench/life on this machine.

    bench/run.sh life [--only PART...]

watch_cost                      a step of some milliseconds with progress, three metrics files and a live page that is read, over one without
checkpoint_stall_of_step        GPT-2 124M: the time that training waits for a checkpoint, as a share of a step of 4096 tokens
step_beside_a_write_over_step   a step during which the file is written, over one without
checkpoint_write_of_disk        bytes per second of a checkpoint, until it is on the disk, over dd's
restart_s                       from the kill of one of two processes under pipe-run to the first new step, and its parts"""

import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

BUILD = pathlib.Path(os.environ["PIPE_BUILD"])
STAGES = {"found_s": "started", "start_s": "met", "load_s": "loaded", "first_step_s": "step"}


def events(run):
    """Events of a run: (name, seconds, process)."""
    for line in run.stdout:
        word, name, seconds, process = line.split()
        assert word == "event", line
        yield name, float(seconds), int(process)


def restart(folder):
    """Seconds of each part of one restart. A part ends with the event of the process that comes last."""
    command = [BUILD / "tools" / "pipe-run", "-n", "2", "--restarts", "1", "--back-off", "0", BUILD / "bench" / "life_restart", folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        seen = events(run)
        victim = next(process for name, _, process in seen if name == "step")
        time.sleep(0.2)  # some checkpoints
        begin = time.time()
        os.kill(victim, signal.SIGKILL)
        ends = {}
        for name, seconds, _ in seen:
            if seconds < begin or (name == "step" and "loaded" not in ends):
                continue
            ends[name] = max(seconds, ends.get(name, 0)) if name != "step" else seconds
            if name == "step":
                break
        run.send_signal(signal.SIGTERM)
        run.stdout.read()
    parts, before = {"restart_s": ends["step"] - begin}, begin
    for part, name in STAGES.items():
        parts[part], before = ends[name] - before, ends[name]
    return parts


def restarts():
    all_parts = []
    for _ in range(7):
        with tempfile.TemporaryDirectory() as folder:
            all_parts.append(restart(folder + "/run"))
    for part in all_parts[0]:
        print(f"figure {part} {statistics.median(parts[part] for parts in all_parts):.3f}", flush=True)


def program(name):
    def run():
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:  # on a disk, where /tmp may be memory
            subprocess.run([BUILD / "bench" / name, folder], check=True)
    return run


PARTS = {"watch": program("life_watch"), "checkpoint": program("life_checkpoint"), "restart": restarts}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    chosen = options.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    for part in chosen.only:
        PARTS[part]()


if __name__ == "__main__":
    main()
