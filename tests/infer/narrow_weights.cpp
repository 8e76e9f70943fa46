// SPDX-License-Identifier: BSL-1.0
//
// Decoders with rounded matrices against decoders in floats that have the rounded numbers, bit by
// bit, and against what rounding may change.
#include "catch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <pipe/infer/generate.hpp>
#include <pipe/infer/model_weights.hpp>
#include <pipe/infer/perplexity.hpp>

#include "infer/logits_of.hpp"
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
struct Llama : Model<Tokens<330, 300>, Embedding<128>,
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
        most = std::max(most, round_inputs(p.values.data() + t * p.columns, p.columns, 1, group));
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

template <class Weights>
void write_weights(Weights& weights) {
  for (auto const& p : weights.parameters())
    for (std::size_t i = 0; i < p.values.size(); ++i)
      p.values[i] =
          (p.rows == 1 ? 1.0f : 0.2f) * float(laws::uniform(7, std::uint64_t(p.index), i));
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
  decoder expected(rounded), in_full(given);
  for (std::vector<std::size_t> const& sizes :
       {std::vector<std::size_t>{1}, {300}, {257, 1, 2, 1, 3, 17, 8, 11}}) {
    auto tokens = tokens_for<M>(5);
    if (sizes == std::vector<std::size_t>{1}) tokens.resize(40);
    auto const logits = logits_of(expected, tokens, sizes);
    CHECK_FALSE(laws::same_numbers(logits, logits_of(in_full, tokens, sizes)));
    for (int threads : {1, 2, 3}) {
      INFO(threads << " threads, " << sizes[0] << " tokens first");
      decoder read(given, {.threads = threads, .weights = how, .group = group});
      CHECK(laws::same_numbers(logits_of(read, tokens, sizes), logits));
    }
  }
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

TEST_CASE("a decoder with rounded matrices has a copy of the parameters") {
  auto const tokens = tokens_for<Gpt>(5);
  auto weights = std::make_unique<model_weights<Gpt>>();
  write_weights(*weights);
  auto& all = *weights;
  // [weights]
  decoder small(all, {.weights = decoder_weights::int8});
  // [/weights]
  auto const before = logits_of(small, tokens, {300});
  for (auto const& p : weights->parameters())
    for (float& x : p.values) x = 0;
  weights.reset();
  CHECK(laws::same_numbers(logits_of(small, tokens, {300}), before));
}

TEST_CASE("rounded matrices take half of the memory in bf16, and about a quarter in int8") {
  // Products of whole panels, and no others.
  struct Wide : Model<Tokens<512, 8>, Embedding<512>, Linear<1024>, Linear<512>, CrossEntropy> {};
  model_weights<Wide> weights;
  long const numbers = 512L * 512 + 2 * 512L * 1024, biases = 4L * (1024 + 512);
  decoder as_trained(weights), bf16(weights, {.weights = decoder_weights::bf16}),
      int8(weights, {.weights = decoder_weights::int8}),
      fine(weights, {.weights = decoder_weights::int8, .group = 32});
  CHECK(bf16.bytes() == as_trained.bytes() + biases + 2 * numbers);
  CHECK(int8.bytes() == as_trained.bytes() + biases + numbers + numbers / 64 * 4);
  CHECK(fine.bytes() == as_trained.bytes() + biases + numbers + numbers / 32 * 4);
}

TEST_CASE("the perplexity of a text is that of each token's probability after those before it") {
  using Weights = model_weights<Llama>;
  Weights weights;
  write_weights(weights);
  std::vector<int> text = tokens_for<Llama>(5);
  for (int const token : tokens_for<Llama>(6)) text.push_back(token);
  text.resize(450);  // a whole window, and a part of one
  decoder alone(weights), four(weights, {.threads = 2, .texts = 4});
  double sum = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (i % 300 == 1) alone.rewind(0);
    auto const p = sampling::probabilities(alone.read(text[i - 1]), 1);
    sum -= std::log(p[std::size_t(text[i])]);
  }
  double const expected = std::exp(sum / 449);
  CHECK(perplexity(alone, text) == Approx(expected).epsilon(1e-9));
  CHECK(perplexity(four, text) == perplexity(alone, text));
  decoder bf16(weights, {.weights = decoder_weights::bf16}),
      int8(weights, {.weights = decoder_weights::int8});
  for (auto* read : {&bf16, &int8}) {
    double const rounded = perplexity(*read, text);
    CHECK(rounded != expected);
    CHECK(rounded == Approx(expected).epsilon(0.02));
  }
  CHECK(message_of([&] { perplexity(alone, std::span(text).first(1)); }) ==
        "perplexity: expected at least 2 tokens, got 1");
  text[3] = 330;
  CHECK(message_of([&] { perplexity(alone, text); }) ==
        "token 330 at position 3 is not in [0, 330)");
}

TEST_CASE("weights that cannot be rounded are refused") {
  model_weights<Gpt> weights;
  auto const refused = [&](detail::decoder_settings const& s) {
    return message_of([&] { decoder read(weights, s); });
  };
  CHECK(refused({.weights = decoder_weights::int8, .group = 0}) ==
        "decoder: group: 0 is not in [1, 1048576]");
  for (auto const& p : weights.parameters())
    if (p.columns == 299 && p.rows == 150) p.values[7] = std::numeric_limits<float>::infinity();
  CHECK(
      refused({.weights = decoder_weights::bf16}).find("is not finite, so it cannot be rounded") !=
      std::string::npos);
  struct Double : Model<Tokens<7, 9>, Embedding<6>, Linear<7>, CrossEntropy> {};
  model_weights<Double, double> of_double;
  CHECK(message_of([&] { decoder read(of_double, {.weights = decoder_weights::bf16}); }) ==
        "decoder: weights: a decoder of double keeps them as trained");
}
