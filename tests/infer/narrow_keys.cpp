// SPDX-License-Identifier: BSL-1.0
//
// Decoders that keep keys and values in bfloat16: exact where these are bfloat16 numbers, elsewhere
// off by what rounding may change, with the same bits however a text is divided.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <pipe/infer/decoder.hpp>
#include <pipe/infer/model_weights.hpp>
#include <pipe/infer/perplexity.hpp>

#include "infer/logits_of.hpp"
#include "laws/data.hpp"
#include "message_of.hpp"

using namespace pp;

namespace {

/// Shared key heads, rotation, and scores with rules, over several pages.
struct Story : Model<Tokens<50, 300>, Embedding<36>,
                     Residual<RMSNorm, Attention<6, KeyValueHeads<2>, HeadSize<20>, RoPE<>>>,
                     Residual<RMSNorm, Attention<3, Window<200>, ALiBi>>,
                     Residual<RMSNorm, Linear<300>, GELUTanh, Linear<36>>, RMSNorm, Linear<50>,
                     CrossEntropy> {};
/// Keys and values are sums of few small integers.
struct Whole : Model<Tokens<9, 150>, Embedding<7>, Attention<2, HeadSize<5>, NoBias>, Linear<9>,
                     CrossEntropy> {};

std::vector<int> tokens_of(int n, int vocabulary) {
  std::vector<int> tokens(std::size_t(n), 0);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = int((laws::uniform(5, 3, i) + 1) / 2 * vocabulary);
  return tokens;
}
template <class Weights, class Number>
void write_weights(Weights& weights, Number const& number) {
  for (auto const& p : weights.parameters())
    for (std::size_t i = 0; i < p.values.size(); ++i)
      p.values[i] = number(p, float(laws::uniform(7, std::uint64_t(p.index), i)));
}

}  // namespace

TEST_CASE("keys and values in bfloat16 have the same bits however a text is divided") {
  model_weights<Story> weights;
  write_weights(weights, [](auto const& p, float x) { return (p.rows == 1 ? 1.0f : 0.2f) * x; });
  auto const tokens = tokens_of(300, 50);
  decoder wide(weights);
  // [keys]
  decoder read(weights, {.keys_in_bf16 = true});
  // [/keys]
  std::vector<float> const last = logits_of(read, tokens, {300}),
                           exact = logits_of(wide, tokens, {300});
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < last.size(); ++i) {
    apart += std::pow(double(last[i]) - double(exact[i]), 2);
    size += std::pow(double(exact[i]), 2);
  }
  CHECK(apart > 0);
  CHECK(std::sqrt(apart / size) < 0x1p-8);
  for (int const threads : {1, 3}) {
    decoder other(weights, {.threads = threads, .texts = 2, .keys_in_bf16 = true});
    for (std::vector<std::size_t> const& sizes :
         {std::vector<std::size_t>{1}, {257, 1, 2, 1, 3, 17, 8, 11}}) {
      auto const all = logits_of(other, tokens, sizes);
      CHECK(laws::same_numbers(std::vector<float>(all.end() - 50, all.end()), last));
    }
    // A copy of a text that goes on otherwise.
    other.copy_text(0, 1);
    other.rewind(0, 130);
    other.read(0, std::span(tokens).subspan(130, 20));
    other.rewind(1, 299);
    auto const again = other.read(1, std::span(tokens).subspan(299, 1));
    CHECK(laws::same_numbers(std::vector<float>(again.begin(), again.end()), last));
  }
  double const in_full = perplexity(wide, tokens), rounded = perplexity(read, tokens);
  CHECK(rounded != in_full);
  CHECK(rounded == Approx(in_full).epsilon(0.01));
}
TEST_CASE("keys and values that are bfloat16 numbers are kept as they are") {
  model_weights<Whole> weights;
  write_weights(weights, [](auto const&, float x) { return std::nearbyint(2 * x); });
  auto const tokens = tokens_of(150, 9);
  decoder wide(weights), read(weights, {.keys_in_bf16 = true});
  for (std::vector<std::size_t> const& sizes : {std::vector<std::size_t>{150}, {1, 40}})
    CHECK(laws::same_numbers(logits_of(wide, tokens, sizes), logits_of(read, tokens, sizes)));
}
TEST_CASE("keys and values in bfloat16 take half of the memory") {
  struct Wide : Model<Tokens<9, 1024>, Embedding<64>, Attention<2>, Linear<9>, CrossEntropy> {};
  model_weights<Wide> weights;
  decoder wide(weights), read(weights, {.keys_in_bf16 = true});
  long const kept = 2L * 1024 * 64, workspace = 4L * 128 * (32 + 32);
  CHECK(read.bytes() == wide.bytes() - 2 * kept + workspace);
  struct Double : Model<Tokens<7, 9>, Embedding<6>, Attention<1>, Linear<7>, CrossEntropy> {};
  model_weights<Double, double> of_double;
  CHECK(message_of([&] { decoder refused(of_double, {.keys_in_bf16 = true}); }) ==
        "decoder: keys_in_bf16: a decoder of double keeps them in double");
}
