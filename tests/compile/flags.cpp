// SPDX-License-Identifier: BSL-1.0
//
// A program whose numbers flags of a compiler could change: prints the bits of what it has trained.
// See flags.py.
#include <cstdio>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 5>, Embedding<20>, Residual<LayerNorm, Attention<2>>,
                   Residual<Linear<33>, GELUTanh, Linear<20>>, Linear<7>, CrossEntropy> {};
using Trainer =
    Pipeline<Net, AdamW, HostKernels<host::isa::avx2>, MicroBatches<2>, MicroBatchSize<3>>;

int main() {
  Trainer trainer({.seed = 1, .clip_norm = 1});
  int tokens[30], labels[30];
  for (int i = 0; i < 30; ++i) tokens[i] = i * i % 7, labels[i] = (i + 3) % 7;
  for (int step = 0; step < 3; ++step) std::printf("%a\n", trainer.step({tokens, labels}).loss);
  unsigned long hash = 14695981039346656037ul;  // FNV-1a
  for (auto const& p : trainer.parameters())
    for (float value : p.values)
      hash = (hash ^ __builtin_bit_cast(unsigned, value)) * 1099511628211ul;
  std::printf("%016lx\n", hash);
}
