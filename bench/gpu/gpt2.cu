// SPDX-License-Identifier: BSL-1.0
//
// GPT-2 124M on one GPU: tokens per second, and what each of its kernels takes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

namespace {

using Block = Seq<Residual<LayerNorm, Attention<12>>, Residual<LayerNorm, Linear<3072>, GELU, Linear<768>>>;
struct Gpt2 : Model<Tokens<50304, 1024>, Named<"wte", Embedding<768>>, Positions, Repeat<12, Block>, LayerNorm,
                    Tied<"wte">, CrossEntropy> {};

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

/// Whether the loss fell.
template <class Precision>
bool run(int steps) {
  using Trainer = Pipeline<Gpt2, MicroBatches<2>, MicroBatchSize<8>, AdamW, Precision, Cuda>;
  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 3e-4}, .clip_norm = 1});
  std::vector<int> tokens(std::size_t(Trainer::samples * Trainer::inputs_per_sample)), next(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = int(random_block(1, 1, i).word[0] % 50257);
  for (std::size_t i = 0; i < tokens.size(); ++i) next[i] = tokens[(i + 1) % tokens.size()];
  std::printf("GPT-2 124M, %s, %d samples of 1024 tokens, %.1f GB, on %s\n", Precision::name, Trainer::samples,
              double(trainer.allocated_bytes(0)) * 1e-9, trainer.runs_on().c_str());

  std::vector<double> seconds;
  double first = 0, last = 0;
  for (int step = 0; step < steps; ++step) {
    auto const r = trainer.step({tokens, next});
    if (step == 0) first = r.loss;
    if (step > 1) seconds.push_back(r.seconds);
    last = r.loss;
  }
  std::printf("loss %.4f -> %.4f in %d steps\n", first, last, steps);
  std::printf("figure gpt2_tokens_per_second_%s %.0f\n", Precision::name, double(tokens.size()) / median(seconds));

  struct cost {
    int launches = 0;
    long nanoseconds = 0;
  };
  std::map<int, cost> of_group;
  trainer.watch({tokens, next}, [&](launch_seen const& seen) {
    cost& c = of_group[seen.what->group];
    ++c.launches;
    c.nanoseconds += seen.nanoseconds;
  });
  std::vector<std::pair<int, cost>> sorted(of_group.begin(), of_group.end());
  std::sort(sorted.begin(), sorted.end(),
            [](auto const& a, auto const& b) { return a.second.nanoseconds > b.second.nanoseconds; });
  auto const leaf = leaf_names(Gpt2::leaves{});
  for (auto const& [group, c] : sorted)
    std::printf("%9.1f us  %4d launches  %s\n", double(c.nanoseconds) * 1e-3, c.launches,
                group_text(Trainer::compiled::group_at(group), leaf).c_str());
  return last < first;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int const steps = argc > 1 ? std::atoi(argv[1]) : 12;
    bool const exact = run<FP32>(steps), half = run<BF16>(steps);
    return exact && half ? 0 : 1;
  } catch (error const& e) {
    std::fprintf(stderr, "gpt2: %s\n", e.what());
    return 2;
  }
}
