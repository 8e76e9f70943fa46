// SPDX-License-Identifier: BSL-1.0
//
// Prompts of several lengths that a decoder reads together, against decoders that read each alone,
// bit by bit.
#include "catch.hpp"

#include <vector>

#include <pipe/infer/decoder.hpp>
#include <pipe/infer/model_weights.hpp>

#include "infer/disturbed_weights.hpp"
#include "laws/data.hpp"
#include "message_of.hpp"

using namespace pp;

namespace {

/// More than 256 tokens of several texts, and a context of three pages of keys.
struct Gpt : Model<Tokens<61, 300>, Embedding<96>, Positions,
                   Repeat<2, Residual<LayerNorm, Attention<3>>,
                          Residual<LayerNorm, Linear<130>, GELUTanh, Linear<96>>>,
                   LayerNorm, Linear<61>, CrossEntropy> {};
struct Llama
    : Model<Tokens<31, 140>, Embedding<32>,
            Repeat<2, Residual<RMSNorm, Attention<4, KeyValueHeads<2>, RoPE<>, Window<90>, NoBias>>,
                   Residual<RMSNorm, Linear<40, NoBias>, SwiGLU, Linear<32, NoBias>>>,
            RMSNorm, Linear<31, NoBias>, CrossEntropy> {};
/// No attention: nothing is kept.
struct Flat : Model<Tokens<7, 9>, Embedding<8>, Positions, Tanh, Linear<7>, CrossEntropy> {};

/// Reads lists of tokens of the lengths given, call by call, in one decoder and in one for each
/// text.
template <class M>
void same_as_alone(detail::decoder_settings settings,
                   std::vector<std::vector<int>> const& lengths) {
  constexpr int vocabulary = M::graph.inputs[0].vocabulary;
  disturbed_weights<M> weights;
  detail::decoder_settings one = settings;
  one.texts = 1;
  settings.texts = int(lengths[0].size());
  decoder together(weights, settings);
  std::vector<std::vector<int>> texts(lengths[0].size());
  for (std::vector<int> const& of_call : lengths) {
    std::vector<std::vector<int>> next(texts.size());
    for (std::size_t k = 0; k < texts.size(); ++k)
      for (int i = 0; i < of_call[k]; ++i) {
        double const drawn = laws::uniform(k, 3, texts[k].size());
        next[k].push_back(int((drawn + 1) / 2 * vocabulary));
        texts[k].push_back(next[k].back());
      }
    std::span<float const> logits = together.read_each(next);
    for (std::size_t k = 0; k < texts.size(); ++k) {
      CHECK(together.position(int(k)) == int(texts[k].size()));
      if (next[k].empty()) continue;
      INFO("text " << k << " of " << texts[k].size() << " tokens");
      decoder alone(weights, one);
      REQUIRE(logits.size() >= std::size_t(vocabulary));
      CHECK(laws::same_numbers(logits.first(vocabulary), alone.read(texts[k])));
      logits = logits.subspan(vocabulary);
    }
    CHECK(logits.empty());
  }
}

}  // namespace

TEST_CASE("prompts of several lengths that are read together have the logits of each alone") {
  std::vector<std::vector<int>> const long_texts{
      {1, 2, 130, 257, 33, 0}, {1, 40, 0, 3, 128, 299}, {200, 1, 1, 40, 100, 1}};
  for (int threads : {1, 3}) {
    INFO(threads << " threads");
    same_as_alone<Gpt>({.threads = threads}, long_texts);
    same_as_alone<Llama>({.threads = threads}, {{5, 1, 31, 64, 0}, {1, 130, 33, 0, 2}});
  }
  same_as_alone<Gpt>({.threads = 2, .weights = decoder_weights::int8}, long_texts);
  same_as_alone<Flat>({}, {{4, 1, 0}, {2, 8, 9}});
}

TEST_CASE("prompts of several lengths that cannot be read are refused") {
  disturbed_weights<Flat> weights;
  decoder read(weights, {.texts = 2});
  auto const refused = [&](std::vector<std::vector<int>> const& tokens) {
    return message_of([&] { read.read_each(tokens); });
  };
  CHECK(refused({{1}}) == "decoder: expected tokens for each of 2 texts, got 1");
  CHECK(refused({{}, {}}) == "decoder: expected at least one token, got none");
  CHECK(refused({{1, 2}, {3, -1}}) == "token -1 at position 1 is not in [0, 7)");
  CHECK(refused({{1, 2}, std::vector<int>(10, 1)}) ==
        "decoder: expected at most 9 tokens after 0 of a context of 9, got 10");
  CHECK(read.position(0) == 0);
}
