# SPDX-License-Identifier: BSL-1.0
"""This tree against a commit before it, by what a program pays for that uses nothing new: its compile time, and small steps.

    bench/run.sh against [--commit REVISION] [--rounds N]

compile_over_commit_NAME   processor seconds of g++ -O2, over those with the headers of the commit: for first_model, the
                           example, and gpt_12, the GPT of 12 blocks in four stages of `bench/run.sh compile`
work_over_commit_NAME      the instructions that its compiler proper executes, if valgrind is there, whatever the
                           machine's load
step_over_commit_NAME      time of a step over one with the headers of the commit: one_stage and two_stages of AdamW with 8 samples in a
                           micro-batch, and one_sample with a single one, by SGD; networks of width 64, whose steps take microseconds

Both sides take turns; a figure is the median of the ratios, and a step's time in a turn the median of thousands."""

import argparse
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import tempfile

from compile import GPT

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = """#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>
#include <pipe/pipe.hpp>
using namespace pp;
struct Small : Model<Input<64>, Repeat<4, Seq<Linear<64>, Tanh>>, MSE> {};
template <int Ranks, int Samples, class Optimizer>
void time_of_step(char const* name) {
  using Trainer = Pipeline<Small, Stages<Ranks>, MicroBatches<8>, MicroBatchSize<Samples>, Optimizer>;
  using clock = std::chrono::steady_clock;
  Trainer trainer;
  std::vector<float> const x(std::size_t(Trainer::samples) * 64, .1f);
  std::vector<double> times;
  for (int i = 0; i < 6000; ++i) {
    auto const begin = clock::now();
    trainer.step({x, x});
    times.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + 3000, times.end());
  std::printf("%s %.3f\\n", name, times[3000]);
}
int main() {
  time_of_step<1, 8, AdamW>("one_stage");
  time_of_step<2, 8, AdamW>("two_stages");
  time_of_step<1, 1, SGD>("one_sample");
}
"""


class Side:
    """A tree, and what was measured of it, by name."""

    def __init__(self, tree, folder):
        self.tree, self.folder, self.values = tree, folder, {}
        folder.mkdir()
        self.steps = folder / "steps"
        gpt = folder / "gpt_12.cpp"
        tanh = "GELUTanh" if "GELUTanh" in (tree / "include/pipe/nn/activation.hpp").read_text() else "GELU"  # its name until then
        gpt.write_text(GPT.replace("BLOCKS", "12").replace("GELUTanh", tanh))
        gcc = ["g++", "-std=c++20", "-O2", "-I", tree / "include"]  # headers look at __OPTIMIZE__
        self.texts = {}
        for source in (tree / "examples" / "first_model.cpp", gpt):
            self.texts[source.stem] = folder / (source.stem + ".ii")
            subprocess.run([*gcc, "-E", source, "-o", self.texts[source.stem]], check=True)

    def add(self, name, value):
        self.values.setdefault(name, []).append(float(value))

    def compile(self, name):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        command = ["g++", "-std=c++20", "-O2", "-c", self.texts[name], "-o", self.folder / "o"]
        subprocess.run(command, check=True)
        self.add("compile_over_commit_" + name, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)

    def build_steps(self):
        source = self.folder / "steps.cpp"
        source.write_text(STEPS)
        subprocess.run(["g++", "-std=c++20", "-O3", "-DNDEBUG", "-march=native", "-I", self.tree / "include", source, "-o", self.steps,
                        "-pthread"], check=True)

    def step(self):
        if not self.steps.exists():
            self.build_steps()
        for line in subprocess.run([self.steps], check=True, capture_output=True, text=True).stdout.splitlines():
            name, value = line.split()
            self.add("step_over_commit_" + name, value)

    def count_instructions(self, name):
        compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], check=True, capture_output=True, text=True).stdout.strip()
        run = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", compiler, "-quiet",
                              "-std=c++20", "-O2", self.texts[name], "-o", self.folder / "s"], check=True, capture_output=True, text=True)
        self.add("work_over_commit_" + name, re.search(r"I\s+refs:\s+([\d,]+)", run.stderr)[1].replace(",", ""))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--commit", default="HEAD~1", help="a revision of this repository (default: %(default)s)")
    options.add_argument("--rounds", type=int, default=15, help="0 counts instructions alone (default: %(default)s)")
    chosen = options.parse_args()
    git = ["git", "-C", ROOT]
    revision = subprocess.run([*git, "rev-parse", "--short", chosen.commit + "^{commit}"], check=True, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        before = folder / "before"
        subprocess.run([*git, "worktree", "add", "--quiet", "--detach", before, revision.stdout.strip()], check=True)
        try:
            sides = Side(before, folder / "old"), Side(ROOT, folder / "new")
            for _ in range(chosen.rounds):
                for name in sides[0].texts:
                    for side in sides:
                        side.compile(name)
            for _ in range(2 * chosen.rounds):
                for side in sides:
                    side.step()
            if shutil.which("valgrind"):
                for name in sides[0].texts:
                    for side in sides:
                        side.count_instructions(name)
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", before], check=True)
    old, new = (side.values for side in sides)
    print(f"against {revision.stdout.strip()}, {chosen.rounds} rounds of compiling, {2 * chosen.rounds} of steps")
    for name in new:
        print(f"{name}: {statistics.median(new[name]):g} and {statistics.median(old[name]):g}")
        print(f"figure {name} {statistics.median(b / a for a, b in zip(old[name], new[name])):.4f}")


if __name__ == "__main__":
    main()
