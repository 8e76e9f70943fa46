// SPDX-License-Identifier: BSL-1.0
//
// Decoders of several texts against decoders of one, bit by bit, and what texts that begin alike
// share.
#include "catch.hpp"

#include <algorithm>
#include <vector>

#include <pipe/infer/generate.hpp>
#include <pipe/infer/model_weights.hpp>

#include "infer/disturbed_weights.hpp"
#include "laws/data.hpp"
#include "message_of.hpp"

using namespace pp;

namespace {

/// Work for several threads, and a context of three pages of keys.
struct Gpt : Model<Tokens<290, 300>, Named<"tokens", Embedding<150>>, Positions,
                   Repeat<2, Residual<LayerNorm, Attention<3>>,
                          Residual<LayerNorm, Linear<299>, GELUTanh, Linear<150>>>,
                   LayerNorm, Tied<"tokens">, CrossEntropy> {};
struct Llama
    : Model<Tokens<31, 140>, Embedding<32>,
            Repeat<2, Residual<RMSNorm, Attention<4, KeyValueHeads<2>, RoPE<>, Window<90>, NoBias>>,
                   Residual<RMSNorm, Linear<40, NoBias>, SwiGLU, Linear<32, NoBias>>>,
            RMSNorm, Linear<31, NoBias>, CrossEntropy> {};
/// No attention: nothing is kept.
struct Flat : Model<Tokens<7, 9>, Embedding<8>, Positions, Tanh, Linear<7>, CrossEntropy> {};

template <class M>
std::vector<int> text_of(std::size_t tokens, std::uint64_t seed) {
  std::vector<int> text(tokens);
  for (std::size_t i = 0; i < tokens; ++i)
    text[i] = int((laws::uniform(seed, 3, i) + 1) / 2 * M::graph.inputs[0].vocabulary);
  return text;
}
std::vector<int> operator+(std::vector<int> a, std::vector<int> const& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The logits after a text by a decoder of one.
template <class Weights>
std::vector<float> alone(Weights& weights, std::vector<int> const& text,
                         detail::decoder_settings settings = {}) {
  decoder read(weights, settings);
  auto const logits = read.read(text);
  return {logits.begin(), logits.end()};
}

/// Texts of different lengths, of which two share a beginning, go on together, one of them with
/// pauses.
template <class M, class Backend>
void same_as_alone(detail::decoder_settings settings) {
  disturbed_weights<M, Backend> weights;
  std::size_t const width = std::size_t(M::graph.inputs[0].vocabulary);
  detail::decoder_settings const one = settings;
  settings.texts = 4;
  decoder read(weights, settings);
  std::vector<std::vector<int>> texts{text_of<M>(60, 1), text_of<M>(60, 1) + text_of<M>(71, 2),
                                      text_of<M>(3, 3), text_of<M>(60, 1)};
  read.read(texts[0]);
  read.copy_text(0, 1);
  CHECK(read.position(1) == 60);
  read.copy_text(0, 3);
  CHECK(laws::same_numbers(read.read(1, std::span(texts[1]).subspan(60)),
                           alone(weights, texts[1], one)));
  read.read(2, texts[2]);
  for (int step = 0; step < 6; ++step) {
    std::vector<int> tokens = text_of<M>(4, 10 + std::uint64_t(step));
    if (step % 2 == 1) tokens[1] = -1;
    std::span<float const> logits = read.read_each(tokens);
    for (std::size_t k = 0; k < 4; ++k) {
      if (tokens[k] < 0) continue;
      texts[k].push_back(tokens[k]);
      INFO("text " << k << ", step " << step);
      REQUIRE(logits.size() >= width);
      CHECK(laws::same_numbers(logits.first(width), alone(weights, texts[k], one)));
      logits = logits.subspan(width);
      CHECK(read.position(int(k)) == int(texts[k].size()));
    }
    CHECK(logits.empty());
  }
}

}  // namespace

TEST_CASE("each text of a decoder has the logits that it has alone") {
  for (int threads : {1, 2, 3}) {
    INFO(threads << " threads");
    same_as_alone<Gpt, PortableHost>({.threads = threads});
    same_as_alone<Llama, HostKernels<host::isa::avx2>>({.threads = threads});
  }
  same_as_alone<Gpt, HostKernels<host::isa::avx2>>({.weights = decoder_weights::int8});
  same_as_alone<Llama, PortableHost>({.threads = 2, .weights = decoder_weights::bf16});
}

TEST_CASE("texts without attention have nothing to share, and the logits that they have alone") {
  disturbed_weights<Flat> weights;
  decoder read(weights, {.texts = 20});
  std::vector<int> tokens(20);
  for (int i = 0; i < 20; ++i) tokens[std::size_t(i)] = i % 7;
  auto const logits = read.read_each(tokens);
  for (int k = 1; k < 20; ++k)
    CHECK(laws::same_numbers(logits.subspan(std::size_t(7 * k), 7), alone(weights, {k % 7})));
}

TEST_CASE("a text does not change when one that it was copied from or to goes on") {
  disturbed_weights<Gpt> weights;
  decoder read(weights, {.texts = 3});
  auto const beginning = text_of<Gpt>(150, 1);  // a page, and a part of one
  read.read(beginning);
  for (int to : {1, 2}) read.copy_text(0, to);
  std::vector<std::vector<int>> texts(3, beginning);
  for (int round = 0; round < 2; ++round)
    for (int k : {1, 0, 2}) {
      auto const more = text_of<Gpt>(5, std::uint64_t(10 * round + k));
      texts[std::size_t(k)] = texts[std::size_t(k)] + more;
      CHECK(laws::same_numbers(read.read(k, more), alone(weights, texts[std::size_t(k)])));
    }
  SECTION("nor when one is shortened and goes on otherwise") {
    read.copy_text(2, 1);
    read.rewind(2, 40);
    auto const more = text_of<Gpt>(100, 5);
    std::vector<int> const shorter(beginning.begin(), beginning.begin() + 40);
    CHECK(laws::same_numbers(read.read(2, more), alone(weights, shorter + more)));
    CHECK(laws::same_numbers(read.read(1, more), alone(weights, texts[2] + more)));
    CHECK(laws::same_numbers(read.read(0, more), alone(weights, texts[0] + more)));
  }
}

TEST_CASE("texts that begin alike share the memory of their beginning") {
  disturbed_weights<Gpt> weights;
  decoder one(weights), read(weights, {.texts = 8});
  long const page = 128L * 2 * 2 * (150 + 3 * 14) * 4;   // at most: two attentions, padded heads
  CHECK(read.bytes() < one.bytes() + 8 * 8 * 1200 * 4);  // the last rows of eight texts
  read.read(text_of<Gpt>(256, 1));                       // two of three pages
  long const before = read.bytes();
  for (int to = 1; to < 8; ++to) read.copy_text(0, to);
  std::vector<int> const tokens(8, 3);
  read.read_each(tokens);  // a page for each text: one is there already
  CHECK(read.bytes() > before);
  CHECK(read.bytes() <= before + 7 * page);
  long const most = read.bytes();
  for (int k = 1; k < 8; ++k) read.rewind(k, 0);
  for (int k = 1; k < 8; ++k) read.read(k, text_of<Gpt>(100, 2));  // in the pages that are free
  CHECK(read.bytes() == most);
}

TEST_CASE("texts that are generated together are those that each prompt gives alone") {
  disturbed_weights<Llama> weights;
  auto const prefix = text_of<Llama>(70, 1);
  std::vector<std::vector<int>> const prompts{prefix + text_of<Llama>(3, 2), prefix,
                                              text_of<Llama>(5, 4), prefix,
                                              prefix + text_of<Llama>(80, 3)};
  detail::generation_settings settings{.tokens = 90, .sampling = {.temperature = 1.3, .seed = 8}};
  // [generate]
  decoder together(weights, {.threads = 2, .texts = 6});
  std::vector<std::vector<int>> const said = generate(together, prompts, settings);
  // [/generate]
  decoder read(weights);
  auto const expected = [&](std::size_t k) {
    auto how = settings;
    how.sampling.seed += k;
    return generate(read, prompts[k], how);
  };
  SECTION("past the end of the context, too") {
    REQUIRE(said.size() == prompts.size());
    for (std::size_t k = 0; k < prompts.size(); ++k) CHECK(said[k] == expected(k));
    CHECK(said[1] != said[3]);  // other seeds
    settings.keep_at_end = 140;
    settings.sampling.temperature = 0;
    auto const again = generate(together, prompts, settings);
    for (std::size_t k = 0; k < prompts.size(); ++k) CHECK(again[k] == expected(k));
    CHECK(again[1] == again[3]);
  }
  SECTION("until an end token, or the callback, stops one") {
    settings.end = expected(2)[7];
    std::vector<std::vector<int>> heard(prompts.size());
    generate(together, prompts, settings, [&](int text, int token) {
      heard[std::size_t(text)].push_back(token);
      return text != 0 || heard[0].size() < 4;
    });
    for (std::size_t k = 0; k < prompts.size(); ++k) {
      auto whole = expected(k);
      if (k == 0 && whole.size() > 4) whole.resize(4);
      CHECK(heard[k] == whole);
    }
    CHECK(heard[2].back() == settings.end);
    CHECK(heard[2].size() <= 8);
  }
  SECTION("and none, if no token is wanted") {
    settings.tokens = 0;
    CHECK(generate(together, prompts, settings) == std::vector<std::vector<int>>(prompts.size()));
  }
}

TEST_CASE("what a decoder of several texts cannot read it refuses") {
  disturbed_weights<Flat> weights;
  decoder read(weights, {.texts = 2});
  auto const made = [&](int texts) {
    return message_of([&] { decoder refused(weights, {.texts = texts}); });
  };
  CHECK(made(0) == "decoder: texts: 0 is not in [1, 256]");
  CHECK(made(257) == "decoder: texts: 257 is not in [1, 256]");
  CHECK(message_of([&] { read.position(2); }) == "decoder: text 2 is not in [0, 2)");
  CHECK(message_of([&] { read.copy_text(0, -1); }) == "decoder: text -1 is not in [0, 2)");
  CHECK(message_of([&] { read.rewind(1, 1); }) == "rewind: position 1 is not in [0, 0]");
  auto const each = [&](std::vector<int> const& tokens) {
    return message_of([&] { read.read_each(tokens); });
  };
  CHECK(each({1}) == "decoder: expected a token for each of 2 texts, got 1");
  CHECK(each({-1, -1}) == "decoder: expected at least one token, got none");
  CHECK(each({-1, 7}) == "token 7 at position 0 is not in [0, 7)");
  read.read(1, std::vector<int>(9, 1));
  CHECK(each({1, 1}) == "decoder: expected at most 0 tokens after 9 of a context of 9, got 1");
  CHECK(read.position(0) == 0);
  std::vector<std::vector<int>> const three(3, {1}), none;
  CHECK(message_of([&] { generate(read, three, {.tokens = 1}); }) ==
        "generate: expected 1 to 2 prompts, got 3");
  CHECK(message_of([&] { generate(read, none, {.tokens = 1}); }) ==
        "generate: expected 1 to 2 prompts, got 0");
}
