// SPDX-License-Identifier: BSL-1.0
//
// Decoders of several threads, and prompts of several blocks: the bits of forward(), whatever the
// number of threads.
#include "catch.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <pipe/infer/generate.hpp>
#include <pipe/infer/model_weights.hpp>
#include <pipe/infer/network.hpp>
#include <pipe/weights/copy_weights.hpp>

#include "laws/data.hpp"
#include "message_of.hpp"

using namespace pp;

namespace {

/// Ops large enough for several threads, of widths that fill no vector; a context of three blocks.
struct Gpt : Model<Tokens<290, 600>, Named<"tokens", Embedding<150>>, Positions,
                   Repeat<2, Residual<LayerNorm, Attention<3>>,
                          Residual<LayerNorm, Linear<299>, GELUTanh, Linear<150>>>,
                   LayerNorm, Tied<"tokens">, CrossEntropy> {};
struct Llama
    : Model<
          Tokens<330, 600>, Embedding<128>,
          Repeat<2, Residual<RMSNorm, Attention<4, KeyValueHeads<2>, RoPE<>, Window<290>, NoBias>>,
                 Residual<RMSNorm, Linear<340, NoBias>, SwiGLU, Linear<128, NoBias>>>,
          RMSNorm, Linear<330, NoBias>, CrossEntropy> {};

template <class M>
std::vector<int> tokens_for(std::uint64_t seed) {
  std::vector<int> tokens(600);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = int((laws::uniform(seed, 3, i) + 1) / 2 * M::graph.inputs[0].vocabulary);
  return tokens;
}

/// Weights, and the logits of a forward pass.
template <class M, class Backend>
struct forward_pass {
  model_weights<M, float, Backend> weights;
  std::vector<int> tokens = tokens_for<M>(5);
  std::vector<float> logits = std::vector<float>(std::size_t(600 * M::graph.inputs[0].vocabulary));

  forward_pass() {
    network<M, 1, FP32, Backend> net(3);
    laws::disturb(net, 4, 0.3);
    copy_weights(net, weights);
    typename network<M, 1, FP32, Backend>::workspace room;
    net.forward(tokens, logits, room);
  }
  std::span<float const> after(std::size_t n) const {
    std::size_t const width = std::size_t(M::graph.inputs[0].vocabulary);
    return std::span(logits).subspan((n - 1) * width, width);
  }
  /// Reads all tokens in groups of the given sizes by turns; returns the number of groups with
  /// other bits.
  template <class Decoder>
  int differences(Decoder& read, std::vector<std::size_t> const& sizes) const {
    int count = 0;
    read.rewind(0);
    for (std::size_t at = 0, turn = 0; at < tokens.size(); ++turn) {
      std::size_t const n = std::min(sizes[turn % sizes.size()], tokens.size() - at);
      auto const found = read.read(std::span(tokens).subspan(at, n));
      at += n;
      count += !laws::same_numbers(found, after(at));
    }
    return count;
  }
};

template <class M, class Backend>
void same_for_all_threads() {
  forward_pass<M, Backend> const expected;
  auto& weights = const_cast<model_weights<M, float, Backend>&>(expected.weights);
  long bytes = 0;
  for (int threads : {1, 2, 3, 4}) {
    decoder read(weights, {.threads = threads});
    INFO(threads << " threads");
    CHECK(read.threads() == threads);
    CHECK(read.bytes() > std::exchange(bytes, read.bytes()));  // each has a workspace
    CHECK(expected.differences(read, {600}) == 0);
    CHECK(expected.differences(read, {257, 1, 2, 1, 3, 17, 8, 300}) == 0);
  }
}

/// A formula that knows the threads that compute it, and can fail.
struct Watched {
  static inline std::atomic<int> threads{0}, left{0};  // left: calls until one fails; 0: none does
  static float forward(float x) {
    thread_local bool const counted = ++threads > 0;
    if (counted && left > 0 && --left == 0) throw data_error("a formula failed");
    return 2 * x;
  }
  static float derivative(float) { return 2; }
};
struct Fragile
    : Model<Tokens<7, 300>, Embedding<128>, Map<Watched>, Attention<2>, Linear<7>, CrossEntropy> {};
struct Small : Model<Tokens<400, 40>, Embedding<112>, Residual<LayerNorm, Attention<4>>,
                     Linear<400>, CrossEntropy> {};

}  // namespace

TEST_CASE("a decoder gives the bits of a forward pass for any number of threads: GPT-2") {
  same_for_all_threads<Gpt, PortableHost>();
}
TEST_CASE("a decoder gives the bits of a forward pass for any number of threads: Llama") {
  same_for_all_threads<Llama, HostKernels<host::isa::avx512>>();
}

TEST_CASE("the threads of a decoder share its work, and an exception of any ends the call") {
  model_weights<Fragile, float, PortableHost> weights;
  for (auto const& p : weights.parameters())
    for (std::size_t i = 0; i < p.values.size(); ++i)
      p.values[i] = float(laws::uniform(2, std::uint64_t(p.index), i));
  std::vector<int> tokens(300);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = int(i * i % 7);
  decoder alone(weights), read(weights, {.threads = 3});
  CHECK(alone.threads() == 1);
  auto const expected = alone.read(tokens);
  int const before = Watched::threads;
  read.read(std::span(tokens).first(20));
  for (int const at : {1, 20'000, 34'000}) {  // in the first block and in the last one
    Watched::left = at;
    CHECK(message_of([&] { read.read(std::span(tokens).subspan(20)); }) == "a formula failed");
    CHECK(read.position() == 20);
  }
  Watched::left = 0;
  CHECK(laws::same_numbers(read.read(std::span(tokens).subspan(20)), expected));
  CHECK(Watched::threads == before + 2);
}

TEST_CASE("decoders of several threads work at once, and can be moved") {
  forward_pass<Gpt, PortableHost> const expected;
  auto& weights = const_cast<model_weights<Gpt, float, PortableHost>&>(expected.weights);
  std::vector<decoder<model_weights<Gpt, float, PortableHost>>> readers;
  for (int threads : {2, 3, 1}) readers.emplace_back(weights, detail::decoder_settings{threads});
  std::vector<int> wrong(readers.size(), -1);
  std::vector<std::thread> callers;
  for (std::size_t k = 0; k < readers.size(); ++k)
    callers.emplace_back([&, k] { wrong[k] = expected.differences(readers[k], {9, 270}); });
  for (auto& each : callers) each.join();
  CHECK(wrong == std::vector(readers.size(), 0));
}

TEST_CASE("a decoder has the threads of its trainer's ranks, and follows its training") {
  using Trainer = Pipeline<Small, PortableHost, HostThreads<2>, MicroBatchSize<2>, SGD>;
  Trainer trainer({.seed = 3, .optimizer = {.learning_rate = 0.1}});
  laws::sample_batch<Trainer> const data(1);
  decoder read(trainer);
  // [threads]
  decoder more(trainer, {.threads = 3});
  // [/threads]
  CHECK(read.threads() == 2);
  CHECK(more.threads() == 3);
  std::vector<int> tokens(40);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = int(i * i % 400);
  std::vector<float> logits(Trainer::outputs_per_sample);
  for (int step = 0; step < 3; ++step) {
    trainer.forward(tokens, logits);
    for (auto* each : {&read, &more}) {
      each->rewind(0);
      CHECK(laws::same_numbers(each->read(tokens), std::span(logits).last(400)));
    }
    trainer.step(data.view());
  }
  // One with rounded weights has those of its construction.
  model_weights<Small, float, PortableHost> weights;
  copy_weights(trainer, weights);
  decoder rounded(trainer, {.weights = decoder_weights::int8});
  decoder same(weights, {.weights = decoder_weights::int8});
  trainer.step(data.view());
  CHECK(rounded.threads() == 2);
  CHECK(laws::same_numbers(rounded.read(tokens), same.read(tokens)));
  // Another model's decoder works while the trainer does.
  forward_pass<Gpt, PortableHost> expected;
  decoder other(expected.weights, {.threads = 2});
  std::thread training([&] {
    for (int step = 0; step < 20; ++step) trainer.step(data.view());
  });
  CHECK(expected.differences(other, {5, 80}) == 0);
  training.join();
}

TEST_CASE("a number of threads out of range is refused") {
  model_weights<Small, float, PortableHost> weights;
  auto const refused = [&](int threads) {
    return message_of([&] { decoder read(weights, {.threads = threads}); });
  };
  CHECK(refused(-1) == "decoder: threads: -1 is not in [0, 256]");
  CHECK(refused(257) == "decoder: threads: 257 is not in [0, 256]");
}
