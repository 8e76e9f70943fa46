// SPDX-License-Identifier: BSL-1.0
//
// GPT-2 124M on one GPU: tokens per second, and what each of its kernels takes.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <pipe/pipe.hpp>

#include "measure.cuh"

namespace bench {

using pp::Attention, pp::Embedding, pp::GELUTanh, pp::LayerNorm, pp::Linear, pp::Named,
    pp::Positions, pp::Repeat, pp::Residual, pp::Seq, pp::Tied, pp::Tokens;

using Block = Seq<Residual<LayerNorm, Attention<12>>,
                  Residual<LayerNorm, Linear<3072>, GELUTanh, Linear<768>>>;
struct Gpt2 : pp::Model<Tokens<50304, 1024>, Named<"wte", Embedding<768>>, Positions,
                        Repeat<12, Block>, LayerNorm, Tied<"wte">, pp::CrossEntropy> {};

/// Floating-point operations of training on a token: 6 for each parameter of a product, and the
/// attention of half of the positions.
constexpr double operations_per_token =
    6 * (12.0 * 12 * 768 * 768 + 50304.0 * 768) + 12.0 * 6 * 1024 * 768;

/// Times of all launches of a mini-batch by kernel group, the longest first, after a step that
/// loads their code. Each launch is waited for.
template <class Trainer>
void print_kernels(Trainer& trainer, std::vector<int> const& tokens, std::vector<int> const& next) {
  struct cost {
    int launches = 0;
    long nanoseconds = 0;
  };
  std::map<int, cost> of_group;
  trainer.step({tokens, next});
  trainer.watch({tokens, next}, [&](pp::launch_seen const& seen) {
    cost& c = of_group[seen.what->group];
    ++c.launches;
    c.nanoseconds += seen.nanoseconds;
  });
  std::vector<std::pair<int, cost>> sorted(of_group.begin(), of_group.end());
  std::sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) {
    return a.second.nanoseconds > b.second.nanoseconds;
  });
  auto const leaf = pp::detail::leaf_names(Gpt2::leaves{});
  for (auto const& [group, c] : sorted)
    std::printf("%9.1f us  %4d launches  %s\n", double(c.nanoseconds) * 1e-3, c.launches,
                pp::detail::kernel_text<Trainer>(group, leaf).c_str());
}

/// main of a program: `--kernels` prints times of kernels, a number is of the steps (12). Figures
/// end with `name`. What is wrong, a loss that does not fall too, is a 2.
template <class Precision, class... Batch>
int train_gpt2(char const* name, int argc, char** argv) {
  return run("gpt2", [&] {
    using Trainer = pp::Pipeline<Gpt2, Batch..., pp::AdamW, Precision, pp::Cuda>;
    bool const wants_kernels = argc > 1 && std::strcmp(argv[1], "--kernels") == 0;
    int const steps = argc > 1 && !wants_kernels ? std::atoi(argv[1]) : 12;
    Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 3e-4}, .clip_norm = 1});
    std::vector<int> tokens(std::size_t(Trainer::samples * Trainer::inputs_per_sample)),
        next(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = int(pp::math::random_block(1, 1, i).word[0] % 50257);
    for (std::size_t i = 0; i < tokens.size(); ++i) next[i] = tokens[(i + 1) % tokens.size()];
    std::printf("GPT-2 124M, %s, %d samples of 1024 tokens, %.1f GB, on %s\n", Precision::name,
                Trainer::samples, double(trainer.allocated_bytes(0)) * 1e-9,
                trainer.runs_on().c_str());
    if (wants_kernels) return print_kernels(trainer, tokens, next);

    std::vector<double> seconds;
    double first = 0, last = 0;
    for (int step = 0; step < steps; ++step) {
      auto const r = trainer.step({tokens, next});
      std::printf("step %d: loss %.4f, %.4f s\n", step, r.loss, r.seconds);
      (step == 0 ? first : last) = r.loss;
      if (step > 1) seconds.push_back(r.seconds);
    }
    if (seconds.empty()) return;
    std::sort(seconds.begin(), seconds.end());
    double const tokens_per_second = double(tokens.size()) / seconds[seconds.size() / 2];
    figure(std::string("gpt2_tokens_per_second_") + name, tokens_per_second, 0);
    figure(std::string("gpt2_tflops_") + name, 1e-12 * operations_per_token * tokens_per_second, 0);
    if (!(last < first))
      throw pp::error("gpt2: expected the loss to fall from " + std::to_string(first) + ", got " +
                      std::to_string(last));
  });
}

}  // namespace bench
