# SPDX-License-Identifier: BSL-1.0
"""How far each family of schedules is from the best possible in its own memory: a table of proofs and gaps, over ranks and micro-batches.

At F = B = W, and at the published times of two GPTs. The program is examples/run.sh schedules, whose rows have a gap and a proof. --ranks and --times
take numbers by commas: ranks, and micro-batches per rank.
"""
import argparse
import csv
import io
import os
import subprocess

FAMILIES = ("gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "interleaved", "grouped-interleaved", "interleaved-zb", "looped-bfs", "zb-v", "v-half", "v-min",
            "hanayo", "dualpipe-v")
MODELS = {
    "F = B = W": ("--forward", 2, "--backward", 2, "--weight", 2),
    "1.5B": ("--forward", 18513, "--backward", 18086, "--weight", 9331, "--hop", 626),
    "6.2B": ("--forward", 29802, "--backward", 29428, "--weight", 19530, "--hop", 577),
}


def rows(ranks, micro_batches, model, minimised):
    program = os.path.join(os.environ["PIPE_BUILD"], "examples", "schedules")
    asked = [program, "--ranks", ranks, "--micro-batches", micro_batches, "--schedule", ",".join(FAMILIES), "--minimise", minimised, "--format", "csv"]
    done = subprocess.run([*map(str, asked), *map(str, MODELS[model])], stdout=subprocess.PIPE, text=True, check=True)
    return {row["schedule"]: row for row in csv.DictReader(io.StringIO(done.stdout)) if row["gap"]}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ranks", default="4,6,8,12,16")
    options.add_argument("--times", default="2,4,6")
    numbers = options.parse_args()
    sizes = [(p, p * k) for p in map(int, numbers.ranks.split(",")) for k in map(int, numbers.times.split(","))]
    columns = [(model, minimised) for model in MODELS for minimised in ("span", "makespan")]
    print(f"proved optimal of {len(sizes)} sizes, and the mean gap in percent of the time")
    print(f"{'family':<20}" + "".join(f"{f'{model}, {minimised}':>21}" for model, minimised in columns))
    found = {column: [rows(*size, *column) for size in sizes] for column in columns}
    for family in FAMILIES:
        line = f"{family:<20}"
        for column in columns:
            mine = [row[family] for row in found[column] if family in row]
            gap = 100 * sum(float(row["gap"]) for row in mine) / len(mine)
            line += f"{sum(row['proved'] == 'yes' for row in mine):>14}{gap:7.2f}"
        print(line)


if __name__ == "__main__":
    main()
