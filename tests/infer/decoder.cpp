// SPDX-License-Identifier: BSL-1.0
//
// A decoder against forward() on the whole context, bit by bit.
#include "catch.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <pipe/infer/generate.hpp>
#include <pipe/infer/model_weights.hpp>
#include <pipe/weights/copy_weights.hpp>

#include "laws/data.hpp"
#include "message_of.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

/// All that GPT-2 has, and what else runs row by row, products and differences too; widths that
/// fill no vector.
struct Gpt : Model<Tokens<13, 40>, Named<"tokens", Embedding<12>>, Positions, Dropout<1, 10>,
                   Repeat<2, Residual<LayerNorm, Attention<3>>,
                          Residual<LayerNorm, Linear<19>, GELUTanh, Linear<12>>>,
                   Stash<"a">, Linear<12>, Tanh, Stash<"b">, Softmax, Pop<"b", Concat>, Linear<12>,
                   Pop<"a">, LayerNorm, Normalize, ProductOf<Tanh, Linear<12>>, Pop<"a", Subtract>,
                   ConcatOf<Identity, DotOf<Linear<16>, Linear<16>>, DotOf<Tanh, Linear<12>>,
                            CosineSimilarityOf<Recall<"a">, Linear<12>>,
                            PairwiseDistanceOf<Tanh, Linear<12>>>,
                   Linear<12>, Tied<"tokens">, CrossEntropy> {};

/// Llama, with a context of more than one block of keys.
struct Llama
    : Model<
          Tokens<11, 150>, Embedding<16>,
          Repeat<2, Residual<RMSNorm, Attention<4, KeyValueHeads<2>, HeadSize<6>, RoPE<>, NoBias>>,
                 Residual<RMSNorm, Linear<40, NoBias>, SwiGLU, Linear<16, NoBias>>>,
          RMSNorm, Linear<11, NoBias>, CrossEntropy> {};

/// Rules for scores of every kind that does not look ahead, over more than one block of keys.
struct Stripes {
  static constexpr bool visible(int q, int k) { return q - k < 9 || k % 3 == 0; }
};
struct Ruled : Model<Tokens<11, 150>, Embedding<16>,
                     Residual<RMSNorm, Attention<4, KeyValueHeads<2>, QKNorm<>, HeadSize<6>, RoPE<>,
                                                 Window<40>, SoftCap<2>>>,
                     Residual<RMSNorm, Attention<2, ALiBi, Mask<Stripes>>>, Linear<11>, SoftCap<3>,
                     CrossEntropy> {};

/// Cut inside of its attention.
struct Sines : Model<Tokens<7, 9>, Embedding<6>, SinusoidalPositions,
                     CutInside<Residual<Attention<2>>>, GLU, Linear<7>, CrossEntropy> {};
struct Slopes : Model<Tokens<7, 9>, Embedding<17>, PReLU, Linear<23>, With<PReLU, PerChannel>,
                      Linear<7>, CrossEntropy> {};

template <class Trainer>
std::vector<int> tokens_for(std::uint64_t seed) {
  constexpr int vocabulary = Trainer::model::graph.inputs[0].vocabulary;
  std::vector<int> tokens;
  for (long i = 0; i < Trainer::inputs_per_sample; ++i)
    tokens.push_back(int((laws::uniform(seed, 3, std::uint64_t(i)) + 1) / 2 * vocabulary));
  return tokens;
}

/// After every token, handed over in groups of the given sizes by turns.
template <class Trainer>
void same_as_forward(std::vector<std::vector<int>> const& sizes) {
  using T = typename Trainer::element;
  Trainer trainer({.seed = 3});
  laws::disturb(trainer, 4, 0.3);
  std::vector<int> const tokens = tokens_for<Trainer>(5);
  std::vector<T> logits(Trainer::outputs_per_sample);
  trainer.forward(tokens, logits);
  decoder read(trainer);
  CHECK(read.runs_on() == trainer.runs_on());
  long kept = 0;  // keys and values
  for (int i = 0; i < Trainer::model::graph.size.ops; ++i)
    if (detail::op const& o = Trainer::model::graph.ops[i]; o.kind == op_kind::attention)
      kept += 2L * read.context * o.attributes.attention().kv_heads *
              (o.columns / o.attributes.attention().heads) * long(sizeof(T));
  CHECK(read.bytes() >= kept);
  std::size_t const width = std::size_t(read.vocabulary);
  for (auto const& groups : sizes) {
    read.rewind(0);
    for (std::size_t at = 0, turn = 0; at < tokens.size(); ++turn) {
      std::size_t const n = std::min(std::size_t(groups[turn % groups.size()]), tokens.size() - at);
      auto const found = read.read(std::span(tokens).subspan(at, n));
      at += n;
      INFO("after " << at << " tokens, the last " << n << " together");
      CHECK(laws::same_numbers(found, std::span(logits).subspan((at - 1) * width, width)));
    }
    CHECK(read.position() == read.context);
  }
}

/// What generate() should say, by a forward pass over the whole window for every token.
template <class Trainer>
std::vector<int> said_without_cache(Trainer& trainer, std::vector<int> text, long tokens,
                                    sampling_settings const& how, std::size_t keep) {
  using T = typename Trainer::element;
  constexpr std::size_t context = Trainer::inputs_per_sample,
                        width = Trainer::outputs_per_sample / context;
  std::size_t first = text.size() > context ? text.size() - context : 0;
  std::vector<int> said, window(context);
  std::vector<T> logits(Trainer::outputs_per_sample);
  for (long i = 0; i < tokens; ++i) {
    if (text.size() - first > context) first = text.size() - keep;
    std::fill(window.begin(), window.end(), -1);
    std::copy(text.begin() + long(first), text.end(), window.begin());
    trainer.forward(window, logits);
    std::size_t const last = text.size() - first - 1;
    text.push_back(sampling::sample(std::span<T const>(logits).subspan(last * width, width), how,
                                    std::uint64_t(i)));
    said.push_back(text.back());
  }
  return said;
}

}  // namespace

using GptTrainer = Pipeline<Gpt, Stages<2>, PortableHost>;

TEST_CASE("a decoder gives the bits of a forward pass: GPT-2") {
  same_as_forward<GptTrainer>({{1}, {40}, {3, 1, 7}, {33, 2}});
}

// Each instruction set has one of these models.
TEST_CASE("a decoder gives the bits of a forward pass: Llama") {
  same_as_forward<Pipeline<Llama, HostKernels<host::isa::avx2>>>({{1}, {32, 1, 31}, {150}});
}

TEST_CASE("a decoder gives the bits of a forward pass: rules for scores") {
  same_as_forward<Pipeline<Ruled, HostKernels<host::isa::avx512>>>(
      {{1}, {32, 1, 31}, {150}, {7, 2}});
}

TEST_CASE("a decoder gives the bits of a forward pass: trained slopes") {
  same_as_forward<Pipeline<Slopes, HostKernels<host::isa::avx2>>>({{1}, {2, 3}});
}

TEST_CASE("a decoder gives the bits of a forward pass: in double") {
  same_as_forward<Pipeline<Sines, PortableHost, FP64, Stages<3>, Cut<2, 3>>>({{1}, {2, 3}});
}

TEST_CASE(
    "text goes on as a forward pass for every token would let it, past the end of the context "
    "too") {
  GptTrainer trainer({.seed = 3});
  laws::disturb(trainer, 4, 0.5);
  std::vector<int> const prompt{1, 2, 3}, long_prompt = [] {
    std::vector<int> tokens = tokens_for<GptTrainer>(6);
    for (int i = 0; i < 25; ++i) tokens.push_back(i % 13);
    return tokens;
  }();
  sampling_settings const random{.temperature = 1.5, .top_k = 9, .top_p = 0.95, .seed = 8},
      greedy{.temperature = 0};
  for (auto const& how : {random, greedy})
    for (auto const& from : {prompt, long_prompt}) {
      CHECK(generate(trainer, from, {.tokens = 70, .sampling = how}) ==
            said_without_cache(trainer, from, 70, how, 20));
      CHECK(generate(trainer, from, {.tokens = 50, .sampling = how, .keep_at_end = 40}) ==
            said_without_cache(trainer, from, 50, how, 40));
    }
  auto const said = generate(trainer, prompt, {.tokens = 30, .sampling = random});
  SECTION("as it comes, until the callback or an end token stops it") {
    std::vector<int> heard;
    generate(trainer, prompt, {.tokens = 30, .sampling = random}, [&](int token) {
      heard.push_back(token);
      return heard.size() < 5;
    });
    CHECK(heard == std::vector(said.begin(), said.begin() + 5));
    auto const end = std::find(said.begin(), said.end(), said[9]);
    CHECK(generate(trainer, prompt, {.tokens = 30, .sampling = random, .end = said[9]}) ==
          std::vector(said.begin(), end + 1));
  }
  SECTION("with one decoder for several texts, and another text from the middle of one") {
    decoder read(trainer);
    generate(read, long_prompt, {.tokens = 3});
    CHECK(generate(read, prompt, {.tokens = 30, .sampling = random}) == said);
    read.rewind(0);
    read.read(prompt);
    read.read(said[0]);
    read.rewind(3);
    std::vector<float> again(13), alone(13);
    std::ranges::copy(read.read(4), again.begin());
    read.rewind(0);
    std::ranges::copy(read.read(std::vector{1, 2, 3, 4}), alone.begin());
    CHECK(laws::same_numbers(again, alone));
  }
  SECTION("with the parameters as they are") {
    decoder read(trainer);
    laws::disturb(trainer, 9, 0.5);
    CHECK(generate(read, prompt, {.tokens = 30, .sampling = greedy}) ==
          said_without_cache(trainer, prompt, 30, greedy, 20));
  }
}

TEST_CASE("weights without a trainer have its names and give its text") {
  GptTrainer trainer({.seed = 3});
  laws::disturb(trainer, 4, 0.5);
  model_weights<Gpt, float, PortableHost> weights;
  copy_weights(trainer, weights);
  auto const ours = weights.parameters(), theirs = trainer.parameters();
  REQUIRE(ours.size() == theirs.size());
  long numbers = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CHECK(ours[i].index == theirs[i].index);
    CHECK(ours[i].layer == theirs[i].layer);
    CHECK(ours[i].name == theirs[i].name);
    CHECK(ours[i].file_shape == theirs[i].file_shape);
    CHECK(laws::same_numbers(ours[i].values, theirs[i].values));
    numbers += long(ours[i].values.size());
  }
  CHECK(weights.bytes() == numbers * long(sizeof(float)));
  std::vector<int> const prompt{1, 2, 3};
  detail::generation_settings const settings{.tokens = 60, .sampling = {.seed = 8}};
  CHECK(generate(weights, prompt, settings) == generate(trainer, prompt, settings));
}

TEST_CASE("the page about generation does what it says") {
  GptTrainer trainer({.seed = 3});
  laws::disturb(trainer, 4, 0.5);
  std::vector<int> const prompt{1, 2, 3};
  std::vector<int> said;
  double const u = 0.5;
  // [decoder]
  decoder read(trainer);
  auto logits = read.read(prompt);
  for (int i = 0; i < 10; ++i) {
    int const token = sampling::sample(
        logits, {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .seed = 1}, std::uint64_t(i));
    said.push_back(token);
    logits = read.read(token);
  }
  // [/decoder]
  CHECK(said ==
        generate(trainer, prompt,
                 {.tokens = 10,
                  .sampling = {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .seed = 1}}));
  // [choose]
  std::vector<double> p = sampling::probabilities(logits, 0.8);
  sampling::keep_top_k(p, 40);
  sampling::keep_top_p(p, 0.95);
  int const token = sampling::draw_index(p, u);  // u in [0, 1)
  // [/choose]
  CHECK(p[std::size_t(token)] > 0);
}

TEST_CASE("what a decoder cannot read it refuses, and stays where it was") {
  GptTrainer trainer;
  decoder read(trainer);
  std::vector<int> const tokens{1, 2, 3}, wrong{4, 13, 5}, too_many(38, 1);
  read.read(tokens);
  CHECK(message_of([&] { read.read(wrong); }) == "token 13 at position 1 is not in [0, 13)");
  CHECK(message_of([&] { read.read(-1); }) == "token -1 at position 0 is not in [0, 13)");
  CHECK(message_of([&] { read.read(std::span<int const>()); }) ==
        "decoder: expected at least one token, got none");
  CHECK(message_of([&] { read.read(too_many); }) ==
        "decoder: expected at most 37 tokens after 3 of a context of 40, got 38");
  CHECK(message_of([&] { read.rewind(4); }) == "rewind: position 4 is not in [0, 3]");
  CHECK(message_of([&] { read.rewind(-1); }) == "rewind: position -1 is not in [0, 3]");
  CHECK(read.position() == 3);
  auto const refused = [&](std::vector<int> const& prompt, generation_settings const& s) {
    return message_of([&] { generate(read, prompt, s); });
  };
  CHECK(refused({}, {.tokens = 1}) ==
        "generate: expected a prompt of at least one token, got none");
  CHECK(refused(tokens, {.tokens = -1}) == "generate: tokens: expected 0 or more, got -1");
  CHECK(refused(tokens, {.tokens = 1, .end = 13}) == "generate: end: token 13 is not in [-1, 13)");
  CHECK(refused(tokens, {.tokens = 1, .keep_at_end = 41}) ==
        "generate: keep_at_end: 41 is not in [1, 40]");
  CHECK(refused(tokens, {.tokens = 1, .sampling = {.top_k = -2}}) ==
        "top-k: expected 0 or more, got -2");
  CHECK(generate(read, tokens, {}).empty());
}

namespace {

struct Flat : Model<Tokens<7, 3>, Embedding<4>, Flatten, Linear<12>, Linear<7>, CrossEntropy> {};
struct Scan {  // running sums: row by row, but a layer's own kernel says nothing about that
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const&) {}
  template <class T>
  static void input_gradient(custom::input_gradient<T> const&) {}
};
struct Own : Model<Tokens<7, 3>, Embedding<4>, Custom<Scan>, Linear<7>, CrossEntropy> {};
struct Numbers : Model<Input<3, 4>, Linear<7>, CrossEntropy> {};
struct Regression : Model<Tokens<7, 3>, Embedding<4>, Linear<7>, MSE> {};
struct Weighted
    : Model<Tokens<7, 3>, Embedding<4>, Linear<7>, With<CrossEntropy, Weights<"weight">>> {};
struct OneToken : Model<Tokens<7, 1>, Embedding<4>, Flatten, Linear<7>, CrossEntropy> {};

static_assert(check_decoding<Gpt>().what == decoding_fault::none);
static_assert(check_decoding<Weighted>().what == decoding_fault::none);
static_assert(check_decoding<Flat>().what == decoding_fault::layer &&
              check_decoding<Flat>().unit == 1);
static_assert(check_decoding<Own>().what == decoding_fault::layer);
static_assert(check_decoding<Numbers>().what == decoding_fault::input);
static_assert(check_decoding<Regression>().what == decoding_fault::output);
static_assert(check_decoding<OneToken>().what == decoding_fault::output);

}  // namespace
