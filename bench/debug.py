# SPDX-License-Identifier: BSL-1.0
"""A training step of a program compiled for debugging (-O0 -g) over one of the same program at -O2, for the networks of mlp_step and
gpt_step on one stage. Programs take turns; each turn is the median of some steps. Of every compiler found, g++ makes the figures."""

import argparse
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

MODELS = {
    "mlp": ("Model<Input<784>, Linear<512>, ReLU, Linear<512>, ReLU, Linear<10>, CrossEntropy>",
            "MicroBatches<4>, MicroBatchSize<16>", 40),
    "gpt": ("Model<Tokens<256, 128>, Embedding<96>, Positions, Repeat<8, Seq<Residual<LayerNorm, Attention<3>>, "
            "Residual<LayerNorm, Linear<384>, GELUTanh, Linear<96>>>>, LayerNorm, Linear<256>, CrossEntropy>",
            "MicroBatches<8>, MicroBatchSize<2>", 4),
}
LEVELS = {"g++": ["-O0", "-Og", "-O2"], "clang++": ["-O0", "-Og", "-O2"]}
PROGRAM = """#include <pipe/pipe.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>
using namespace pp;
struct Net : {model} {{}};
using Trainer = Pipeline<Net, AdamW, {options}>;
int main() {{
  Trainer trainer({{.seed = 1}});
  std::vector<Trainer::input_type> inputs(Trainer::samples * Trainer::inputs_per_sample);
  std::vector<int> labels(Trainer::samples * Trainer::labels_per_sample);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = Trainer::input_type(i * 7919 % 13);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = int(i % 10);
  std::vector<double> seconds;
  double loss = 0;
  for (int step = 0; step < {steps}; ++step) {{
    auto const start = std::chrono::steady_clock::now();
    loss = trainer.step({{inputs, labels}}).loss;
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }}
  std::sort(seconds.begin(), seconds.end());
  std::printf("%.9f %a\\n", seconds[seconds.size() / 2], loss);
}}
"""


def compile_program(compiler, level, model, folder):
    text, options, steps = MODELS[model]
    source, program = folder / f"{model}.cpp", folder / f"{model}{level}-{compiler}"
    source.write_text(PROGRAM.format(model=text, options=options, steps=steps))
    subprocess.run([compiler, "-std=c++20", level, "-g", "-I", ROOT / "include", source, "-o", program, "-pthread"], check=True)
    return program


def turn(program):
    """Median seconds of a step, and the last loss to the bit."""
    seconds, loss = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), loss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    figures = {}
    with tempfile.TemporaryDirectory() as temporary:
        for compiler in (c for c in LEVELS if shutil.which(c)):
            for model in MODELS:
                programs = {level: compile_program(compiler, level, model, pathlib.Path(temporary)) for level in LEVELS[compiler]}
                turns = {level: [] for level in programs}
                for _ in range(rounds):
                    for level, program in programs.items():
                        turns[level].append(turn(program))
                seconds = {level: statistics.median(s for s, _ in all_of_it) for level, all_of_it in turns.items()}
                same = {loss for _, loss in turns["-O0"]} == {loss for _, loss in turns["-O2"]}
                for level in programs:
                    print(f"{compiler:8} {model} {level}: {seconds[level] * 1e3:9.3f} ms, "
                          f"{seconds[level] / seconds['-O2']:6.2f} times -O2", flush=True)
                print(f"{compiler:8} {model}: {'the same' if same else 'other'} bits at -O0 as at -O2", flush=True)
                if compiler == "g++":
                    figures[f"debug_step_over_release_{model}"] = seconds["-O0"] / seconds["-O2"]
    if not figures:
        sys.exit("g++ not found")
    for name, value in figures.items():
        print(f"figure {name} {value:.3f}")
    print(f"figure debug_step_over_release {max(figures.values()):.3f}")


if __name__ == "__main__":
    main()
