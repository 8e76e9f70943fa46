// SPDX-License-Identifier: BSL-1.0
//
// What checkpoints of GPT-2 124M cost: the time that training waits for one, and the speed at which
// one is written. See bench/life.py.
//
//     life_checkpoint FOLDER      prints: figure NAME VALUE
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/pipe.hpp>

#include "../peer/turns.hpp"

using namespace pp;

namespace {

using Block = Seq<Residual<LayerNorm, Attention<12>>,
                  Residual<LayerNorm, Linear<3072>, GELUTanh, Linear<768>>>;
struct Gpt2 : Model<Tokens<50304, 1024>, Named<"wte", Embedding<768>>, Positions, Repeat<12, Block>,
                    LayerNorm, Tied<"wte">, CrossEntropy> {};
using Trainer = Pipeline<Gpt2, Stages<2>, MicroBatches<4>, AdamW, Host>;

void measure(std::string const& folder) {
  Trainer trainer;
  std::vector<int> tokens(std::size_t(Trainer::samples * Trainer::inputs_per_sample)),
      next(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = int(math::random_block(1, 1, i).word[0] % 50257);
  for (std::size_t i = 0; i < tokens.size(); ++i) next[i] = tokens[(i + 1) % tokens.size()];
  auto const step = [&] { trainer.step({tokens, next}); };

  // Each second step is saved, and its file is written while the next one, which is not counted, or
  // the plain one runs: two steps are longer than a file takes.
  checkpoints<Trainer> saved(folder + "/run", {.every_steps = 2});
  saved.resume(trainer);
  step();
  std::vector<double> plain, waits, beside;
  for (int round = 0; round < 6; ++round) {
    double const second = bench::seconds_of(step, 1),
                 wait = bench::seconds_of([&] { saved.after_step(trainer, trainer.steps()); }, 1),
                 first = bench::seconds_of(step, 1);
    if (round == 0) continue;  // the copy's memory is new
    plain.push_back(second), waits.push_back(wait), beside.push_back(first);
  }
  saved.finish(trainer, trainer.steps());
  double const usual = bench::median(plain);
  std::printf("figure gpt2_step_s %.3g\nfigure checkpoint_copy_ms %.4g\n", usual,
              1e3 * bench::median(waits));
  std::printf("figure checkpoint_stall_of_step %.4f\n", bench::median(waits) / usual);
  std::printf("figure step_beside_a_write_over_step %.3f\n", bench::median(beside) / usual);

  // A file and as many bytes by dd, in turns, each until it is on the disk.
  std::string const file = folder + "/a.safetensors", plain_file = folder + "/b";
  trainer.save(file);
  auto const bytes = double(std::filesystem::file_size(file));
  std::string const copy = "dd if=/dev/zero of='" + plain_file +
                           "' bs=1M count=" + std::to_string(long(bytes) >> 20) +
                           " conv=fsync status=none";
  std::vector<double> ratios, rates;
  for (int round = 0; round < 7; ++round) {
    std::filesystem::remove(file), std::filesystem::remove(plain_file);
    double const ours = bench::seconds_of([&] { trainer.save(file); }, 1),
                 theirs = bench::seconds_of(
                     [&] {
                       if (std::system(copy.c_str()) != 0) std::exit(1);
                     },
                     1);
    ratios.push_back(theirs / ours), rates.push_back(1e-6 * bytes / ours);
  }
  std::printf("figure checkpoint_MB %.0f\nfigure checkpoint_MB_per_s %.0f\n", 1e-6 * bytes,
              bench::median(rates));
  std::printf("figure checkpoint_write_of_disk %.3f\n", bench::median(ratios));
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2) return measure(arguments[1]), 0;
  return std::fputs("life_checkpoint FOLDER\n", stderr), 2;
}
