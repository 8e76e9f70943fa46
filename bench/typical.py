# SPDX-License-Identifier: BSL-1.0
"""What g++ needs for five programs as users write them, with -O2, and what saving and loading adds to one of them.

    bench/run.sh typical [--commit REVISION] [--rounds N] [--only PROGRAM...]

typical_NAME_s             processor seconds (user) of the compiler: regression, an MLP on numbers; classifier, an MLP with dropout and
                           class weights that saves and loads checkpoints; gpt, a Transformer of characters that generates text; cnn, a small
                           network of pictures; export, the classifier that saves and loads weights
typical_checkpoint_s       what save() and load() add to the classifier, its headers included
typical_weights_s          the same of save_weights() and load_weights()
typical_network_over_trainer
                           a network that only runs over a trainer, the same model, each less a program that includes the headers alone

--commit: also with the headers of that commit, in turns; the figures then have `_before` in their names. --only: these programs. Each figure is
the median of the rounds; what is added is the median of the differences within a round."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """#include <cstdio>
#include <random>
#include <string>
#include <vector>
#include <pipe/pipe.hpp>
HEADERS
using namespace pp;
"""
CLASSIFIER = HEAD + """
struct Net : Model<Input<8>, Linear<32>, ReLU, Dropout<1, 5>, Linear<32>, ReLU, Dropout<1, 5>, Linear<3>,
                   With<CrossEntropy, ClassWeights<1, 5, 2>>> {};
using Trainer = Pipeline<Net, MicroBatches<2>, MicroBatchSize<32>, AdamW>;
int main() {
  Trainer trainer;
  std::mt19937 random(1);
  std::vector<float> x(std::size_t(Trainer::samples) * Trainer::inputs_per_sample);
  std::vector<int> y(Trainer::samples);
  for (float& v : x) v = float(random() % 1000) / 500 - 1;
  for (int& v : y) v = int(random() % 3);
  double best = 1e9;
  for (int i = 0; i < 100; ++i) {
    trainer.step({x, y});
    double const loss = trainer.evaluate({x, y});
    if (loss < best) best = loss;
  }
  SAVE
  std::printf("%g\\n", best);
}
"""
REGRESSION = HEAD + """
struct Net : Model<Input<8>, Linear<64>, Tanh, Linear<64>, Tanh, Linear<1>, MSE> {};
using Trainer = Pipeline<Net, MicroBatchSize<32>, Adam>;
int main() {
  Trainer trainer;
  std::mt19937 random(1);
  std::vector<float> x(std::size_t(Trainer::samples) * 8), y(Trainer::samples), out(Trainer::samples);
  for (float& v : x) v = float(random() % 1000) / 500 - 1;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[8 * i] * x[8 * i + 1];
  for (int i = 0; i < 100; ++i) trainer.step({x, y});
  trainer.forward(x, out);
  std::printf("%g\\n", double(out[0]));
}
"""
GPT = HEAD + """
using Block = Seq<Residual<LayerNorm, Attention<4>>, Residual<LayerNorm, Linear<256>, GELU, Linear<64>>>;
struct Net : Model<Tokens<128, 64>, Embedding<64>, Positions, Repeat<4, Block>, LayerNorm, Linear<128>, CrossEntropy> {};
using Trainer = Pipeline<Net, MicroBatches<4>, MicroBatchSize<4>, AdamW>;
int main() {
  Trainer trainer;
  std::vector<int> tokens(std::size_t(Trainer::samples) * 64);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = int(i * 7 % 128);
  for (int i = 0; i < 100; ++i) trainer.step({tokens, tokens});
  std::vector<int> const prompt{1, 2, 3};
  for (int const token : generate(trainer, prompt, {.tokens = 20})) std::printf("%d ", token);
}
"""
CNN = HEAD + """
struct Net : Model<Input<32, 32, 3>, Conv2d<16, 3, Padding<1>>, ReLU, MaxPool2d<2>, Conv2d<32, 3, Padding<1>>, ReLU, MaxPool2d<2>,
                   Flatten, Linear<10>, CrossEntropy> {};
using Trainer = Pipeline<Net, MicroBatchSize<16>, SGD>;
int main() {
  Trainer trainer;
  std::vector<float> x(std::size_t(Trainer::samples) * Trainer::inputs_per_sample);
  std::vector<int> y(Trainer::samples);
  for (int i = 0; i < 100; ++i) std::printf("%g\\n", double(trainer.step({x, y}).loss));
}
"""
NETWORK = HEAD + """
struct Net : Model<Input<8>, Linear<64>, Tanh, Linear<64>, Tanh, Linear<1>, MSE> {};
int main() {
  network<Net> net;
  network<Net>::workspace room;
  std::vector<float> x(8), out(1);
  net.forward(x, out, room);
  std::printf("%g\\n", double(out[0]));
}
"""
CHECKPOINT = ["#include <pipe/checkpoint/checkpoint.hpp>", 'trainer.save("run.safetensors"), trainer.load("run.safetensors");']
WEIGHTS = ["#include <pipe/weights/weights.hpp>", 'save_weights(trainer, "net.safetensors"), load_weights(trainer, "net.safetensors");']


def with_parts(text, headers="", save=""):
    return text.replace("HEADERS", headers).replace("SAVE", save)


INFER = "#include <pipe/infer/network.hpp>"
PROGRAMS = {
    "regression": with_parts(REGRESSION),
    "classifier": with_parts(CLASSIFIER, *CHECKPOINT),
    "gpt": with_parts(GPT, "#include <pipe/infer/generate.hpp>"),
    "cnn": with_parts(CNN),
    "export": with_parts(CLASSIFIER, *WEIGHTS),
    "classifier without files": with_parts(CLASSIFIER),
    "network": with_parts(NETWORK, INFER),
    "headers": with_parts(HEAD) + "int main() {}\n",
    "headers of networks": with_parts(HEAD, INFER) + "int main() {}\n",
}
FIVE = list(PROGRAMS)[:5]


def seconds(text, headers, folder):
    """Processor seconds of a compilation; None if these headers have not all that the program uses."""
    source = folder / "program.cpp"
    if "CrossEntropyWith" in (headers / "pipe/nn/loss.hpp").read_text():  # the name of With<CrossEntropy, ...> until then
        text = text.replace("With<CrossEntropy, ClassWeights<1, 5, 2>>", "CrossEntropyWith<ClassWeights<1, 5, 2>>")
    if not (headers / "pipe/checkpoint/checkpoint.hpp").exists():  # its place until then
        text = text.replace("pipe/checkpoint/checkpoint.hpp", "pipe/train/checkpoint.hpp")
    if not (headers / "pipe/weights/weights.hpp").exists():
        text = text.replace("pipe/weights/weights.hpp", "pipe/train/weights.hpp")
    source.write_text(text)
    process = subprocess.Popen(["g++", "-O2", "-std=c++20", "-I", headers, "-c", source, "-o", folder / "program.o"],
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime if process.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", metavar="REVISION")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="PROGRAM", choices=list(PROGRAMS), default=list(PROGRAMS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        sides = {"": ROOT / "include"}
        if options.commit:
            archive = subprocess.run(["git", "-C", ROOT, "archive", options.commit, "include"], capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
            sides["_before"] = folder / "include"
        runs = {(name, side): [] for name in options.only for side in sides}
        for _ in range(options.rounds):
            for name, side in runs:
                runs[name, side].append(seconds(PROGRAMS[name], sides[side], folder))
    if refused := [name for name in options.only if None in runs[name, ""]]:
        sys.exit(f"g++ refused {', '.join(refused)}")
    for side in sides:
        def figure(name, values):
            print(f"figure typical_{name}{side} {statistics.median(values):.2f}", flush=True)

        def has(*names):
            return all(name in options.only and None not in runs[name, side] for name in names)

        for name in FIVE:
            if has(name):
                figure(name + "_s", runs[name, side])
        for name, program in ("checkpoint", "classifier"), ("weights", "export"):
            if has(program, "classifier without files"):
                figure(name + "_s", [a - b for a, b in zip(runs[program, side], runs["classifier without files", side])])
        if has("network", "headers of networks", "regression", "headers"):
            figure("network_over_trainer", [(n - h) / (t - e) for n, h, t, e in zip(
                *(runs[name, side] for name in ("network", "headers of networks", "regression", "headers")))])


if __name__ == "__main__":
    main()
