// SPDX-License-Identifier: BSL-1.0
//
// A step of a small GPT on the executor of tests/ptx, whose kernels it mutates (tests/ptx/mutants.hpp): prints the bits of all that was computed.
#include <cstdio>
#include <cstring>
#include <vector>

#include <pipe/pipe.hpp>

#include "ptx/runtime.hpp"

using namespace pp;

namespace {

/// Sums are long enough for products and attention to use each stage of shared memory again.
struct Gpt : Model<Tokens<64, 144>, Embedding<32>, Positions, Residual<LayerNorm, Attention<1>>,
                   Residual<LayerNorm, Linear<192>, GELU, Linear<32>>, LayerNorm, Linear<64>, CrossEntropy> {};

/// FNV-1a, of 64 bits.
struct hash {
  unsigned long long value = 14695981039346656037u;
  void add(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    for (int k = 0; k < 4; ++k) value = (value ^ (bits >> (8 * k) & 255)) * 1099511628211u;
  }
};

template <class Precision>
void train() {
  using Trainer = Pipeline<Gpt, MicroBatchSize<1>, AdamW, Precision, OwnProducts, Cuda>;
  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 1e-3}, .clip_norm = 1});
  std::vector<int> tokens(std::size_t(Trainer::samples * Trainer::inputs_per_sample)), next(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = int(random_block(1, 1, i).word[0] % 64);
  for (std::size_t i = 0; i < tokens.size(); ++i) next[i] = tokens[(i + 1) % tokens.size()];
  double const loss = trainer.step({tokens, next}).loss;
  hash all;
  for (auto const& p : trainer.parameters()) {
    for (float const x : p.gradients) all.add(x);
    for (float const x : p.values) all.add(x);
  }
  std::printf("%s loss %.17g bits %016llx\n", Precision::name, loss, all.value);
}

}  // namespace

int main() {
  pipe_ptx_run_mutants();
  try {
    train<BF16>();
    return 0;
  } catch (error const& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
