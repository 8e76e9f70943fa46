// SPDX-License-Identifier: BSL-1.0
//
// Decoders with rounded matrices against decoders in floats that have the rounded numbers, bit by
// bit, and against what rounding may change.
#include "catch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <pipe/infer/generate.hpp>
#include <pipe/infer/model_weights.hpp>

#include "laws/data.hpp"
#include "message_of.hpp"

using namespace pp;

namespace {

/// A table that is tied to the scores of the vocabulary, widths that fill neither a panel nor a
/// group, and products large enough for several threads.
struct Gpt : Model<Tokens<290, 300>, Named<"tokens", Embedding<150>>, Positions,
                   Repeat<2, Residual<LayerNorm, Attention<3>>,
                          Residual<LayerNorm, Linear<299>, GELUTanh, Linear<150>>>,
                   LayerNorm, Tied<"tokens">, CrossEntropy> {};
/// Grouped queries, gates, and a table of its own.
struct Llama
    : Model<Tokens<330, 300>, Embedding<128>,
            Repeat<2, Residual<RMSNorm, Attention<4, KeyValueHeads<2>, RoPE<>, NoBias>>,
                   Residual<RMSNorm, Linear<340, NoBias>, SwiGLU, Linear<128, NoBias>>>,
            RMSNorm, Linear<330, NoBias>, CrossEntropy> {};

float rounded_to_bf16(float x) {
  std::uint32_t const bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u);
}
/// Rounds n numbers `stride` apart, consecutive inputs of one output, in groups. Returns the
/// largest change in steps of the group's scale.
double round_inputs(float* x, long n, long stride, long group) {
  double most = 0;
  for (long p = 0; p < n; p += group) {
    long const end = std::min(n, p + group);
    float largest = 0;
    for (long i = p; i < end; ++i) largest = std::max(largest, std::abs(x[i * stride]));
    float const scale = largest / 127;
    for (long i = p; i < end && scale > 0; ++i) {
      float const step = float(std::nearbyint(double(x[i * stride]) / double(scale)));
      most = std::max(most, double(std::abs(step * scale - x[i * stride])) / double(scale));
      x[i * stride] = step * scale;
    }
  }
  return most;
}
/// Rounds all matrices of a model whose Linears are [inputs, outputs] and whose tables have a row
/// for each token, as a decoder should. Returns the largest change in steps.
template <class M, class Weights>
double round_matrices(Weights& weights, decoder_weights how, long group) {
  double most = 0;
  for (auto const& p : weights.parameters()) {
    if (p.rows == 1 || p.rows == 300) continue;  // biases, norms, positions
    if (how == decoder_weights::bf16)
      for (float& x : p.values) x = rounded_to_bf16(x);
    else if (p.rows == M::graph.inputs[0].vocabulary)
      for (long t = 0; t < p.rows; ++t)
        most = std::max(most,
                        round_inputs(p.values.data() + t * p.columns, p.columns, 1, group));
    else
      for (long j = 0; j < p.columns; ++j)
        most = std::max(most, round_inputs(p.values.data() + j, p.rows, p.columns, group));
  }
  return most;
}

template <class M>
std::vector<int> tokens_for(std::uint64_t seed) {
  std::vector<int> tokens(300);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = int((laws::uniform(seed, 3, i) + 1) / 2 * M::graph.inputs[0].vocabulary);
  return tokens;
}
/// The logits after each group of tokens of the given sizes by turns.
template <class Decoder>
std::vector<float> logits_of(Decoder& read, std::vector<int> const& tokens,
                             std::vector<std::size_t> const& sizes) {
  std::vector<float> all;
  read.rewind(0);
  for (std::size_t at = 0, turn = 0; at < tokens.size(); ++turn) {
    std::size_t const n = std::min(sizes[turn % sizes.size()], tokens.size() - at);
    auto const logits = read.read(std::span(tokens).subspan(at, n));
    all.insert(all.end(), logits.begin(), logits.end());
    at += n;
  }
  return all;
}

template <class Weights>
void write_weights(Weights& weights) {
  for (auto const& p : weights.parameters())
    for (std::size_t i = 0; i < p.values.size(); ++i)
      p.values[i] = (p.rows == 1 ? 1.0f : 0.2f) * float(laws::uniform(7, std::uint64_t(p.index), i));
}

template <class M, class Backend>
void same_as_rounded(decoder_weights how, int group) {
  using Weights = model_weights<M, float, Backend>;
  Weights given, rounded;
  write_weights(given);
  write_weights(rounded);
  double const most = round_matrices<M>(rounded, how, group);
  if (how == decoder_weights::int8) {
    CHECK(most > 0.49);
    CHECK(most < 0.5001);
  }
  auto const tokens = tokens_for<M>(5);
  decoder expected(rounded), in_full(given);
  for (std::vector<std::size_t> const& sizes :
       {std::vector<std::size_t>{1}, {300}, {257, 1, 2, 1, 3, 17, 8, 11}}) {
    auto const logits = logits_of(expected, tokens, sizes);
    CHECK_FALSE(laws::same_numbers(logits, logits_of(in_full, tokens, sizes)));
    for (int threads : {1, 2, 3}) {
      INFO(threads << " threads, " << sizes[0] << " tokens first");
      decoder read(given, {.threads = threads, .weights = how, .group = group});
      CHECK(laws::same_numbers(logits_of(read, tokens, sizes), logits));
    }
  }
}

/// All 8-bit steps of a scale that is a power of two, so that rounding changes nothing.
template <class Weights>
void write_steps(Weights& weights) {
  for (auto const& p : weights.parameters())
    for (std::size_t i = 0; i < p.values.size(); ++i)
      p.values[i] = float(int(i * 41 % 255) - 127) / 1024;
}

}  // namespace

TEST_CASE("a decoder with rounded matrices has the bits of one in floats: GPT-2") {
  same_as_rounded<Gpt, PortableHost>(decoder_weights::bf16, 64);
  same_as_rounded<Gpt, PortableHost>(decoder_weights::int8, 64);
}
TEST_CASE("a decoder with rounded matrices has the bits of one in floats: Llama") {
  same_as_rounded<Llama, HostKernels<host::isa::avx2>>(decoder_weights::bf16, 64);
  same_as_rounded<Llama, HostKernels<host::isa::avx2>>(decoder_weights::int8, 32);
  same_as_rounded<Llama, HostKernels<host::isa::avx512>>(decoder_weights::bf16, 64);
  same_as_rounded<Llama, HostKernels<host::isa::avx512>>(decoder_weights::int8, 100);
}
