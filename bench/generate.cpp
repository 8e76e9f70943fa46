// SPDX-License-Identifier: BSL-1.0
//
// A token by the decoder, which keeps keys and values, against a token by a forward pass over the
// whole context: what a program without one does. Tokens are read one by one until the context is
// full. One thread.
//
// Argument: rounds (default 9).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <pipe/infer/decoder.hpp>
#include <pipe/pipe.hpp>

#include "peer/machine.hpp"
#include "peer/turns.hpp"

using namespace pp;

namespace {

template <int Heads, int Width>
using Block = Seq<Residual<LayerNorm, Attention<Heads>>,
                  Residual<LayerNorm, Linear<4 * Width>, GELUTanh, Linear<Width>>>;

/// examples/gpt
struct Small : Model<Tokens<256, 128>, Embedding<96>, Positions, Repeat<8, Block<3, 96>>, LayerNorm,
                     Linear<256>, CrossEntropy> {};
/// Blocks as wide as GPT-2's, with its context: weights that no cache holds.
struct Wide : Model<Tokens<256, 1024>, Embedding<768>, Positions, Repeat<4, Block<12, 768>>,
                    LayerNorm, Linear<256>, CrossEntropy> {};

/// How many times as fast.
template <class M>
double compare(char const* name, int rounds) {
  using Trainer = Pipeline<M>;
  Trainer trainer({.seed = 1});
  decoder read(trainer);
  std::vector<int> tokens(Trainer::inputs_per_sample);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = int(i * i % 251);
  std::vector<float> logits(Trainer::outputs_per_sample);
  bench::turns const t({[&] {
                          read.rewind(0);
                          for (int const token : tokens) read.read(token);
                        },
                        [&] { trainer.forward(tokens, logits); },
                        [&] {
                          read.rewind(0);
                          read.read(tokens);
                        }},
                       rounds);
  double const n = double(tokens.size());
  std::printf(
      "%-6s decoder %7.1f tokens/s, by forward passes %7.1f tokens/s, a prompt %7.0f tokens/s\n",
      name, n / t.median(0), 1 / t.median(1), n / t.median(2));
  return t.ratio(1, 0) * n;
}

}  // namespace

int main(int count, char** arguments) {
  int const rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 9;
  std::printf("%s, one thread, %d rounds\n", bench::instruction_set(), rounds);
  double const small = compare<Small>("small", rounds), wide = compare<Wide>("wide", rounds);
  std::printf("figure generate_small_over_forward %.1f\n", small);
  std::printf("figure generate_wide_over_forward %.1f\n", wide);
}
