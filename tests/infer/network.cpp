// SPDX-License-Identifier: BSL-1.0
//
// Networks: outputs with the bits of a trainer's forward, the outputs of all chains, any number of
// threads that read one network at once, weights from a file and memory. network_bits.cpp has every
// layer.
#include "catch.hpp"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <pipe/infer/network.hpp>
#include <pipe/pipe.hpp>
#include <pipe/weights/copy_weights.hpp>

#include "infer/network_law.hpp"
#include "laws/data.hpp"
#include "message_of.hpp"
#include "train/folder.hpp"

using namespace pp;
using networks::has_the_bits_of_forward;
using networks::Trained;

namespace {

struct Words : Model<Tokens<17, 6>, Named<"table", Embedding<8>>, Positions,
                     Repeat<2, Residual<LayerNorm, Attention<2, RoPE<>>>,
                            Residual<RMSNorm, Linear<16>, SwiGLU, Linear<8>>>,
                     Dropout<1, 4>, LayerNorm, Tied<"table">, CrossEntropy> {};
struct Two : Model<Input<2, 4>, Linear<6>, Stash<"left">, Named<"ids", Tokens<9, 2>>, Embedding<6>,
                   Pop<"left", Multiply>, LoRA<Linear<5>, 2>, Tanh, MSE> {};
struct Heads
    : Model<Input<4>, Linear<8>, Tanh, Stash<"seen">, Linear<3>,
            Losses<CrossEntropy, FurtherLoss<"value", "seen", Linear<4>, ReLU, Linear<1>, MSE>,
                   FurtherLoss<"seen", "seen", LossWeight<1, 9>, MSE>>> {};

// [net]
struct Digits : Model<Input<16>, Linear<12>, ReLU, Linear<4>, CrossEntropy> {};
// [/net]
using Trainer = Pipeline<Digits, MicroBatches<3>, MicroBatchSize<2>, AdamW>;

}  // namespace

TEST_CASE("a network has the bits of a trainer's forward", "[infer]") {
  has_the_bits_of_forward<Words>();
  has_the_bits_of_forward<Two>();
  has_the_bits_of_forward<Two, FP64>();
}

TEST_CASE("a network gives the outputs of all chains", "[infer]") {
  using trainer = Trained<Heads>;
  trainer t({.seed = 5});
  network<Heads, 2, FP32, PortableHost> const net(5);
  decltype(net)::workspace room;
  laws::sample_batch<trainer> const data(1);
  std::vector<float> scores(18), value(6), seen(48), a(18), b(6), c(48);
  t.forward<"labels", "value", "seen">(data.view(), scores, value, seen);
  net.forward<"labels", "value", "seen">(data.view(), a, b, c, room);
  CHECK(laws::same_numbers(a, scores));
  CHECK(laws::same_numbers(b, value));
  CHECK(laws::same_numbers(c, seen));
  std::fill(b.begin(), b.end(), 0.0f);
  net.forward<"value">(data.inputs, b, room);
  CHECK(laws::same_numbers(b, value));
}

TEST_CASE("a network is loaded from a file, and read by several threads", "[infer]") {
  temporary_folder const folder;
  std::string const path = folder.file("digits.safetensors");
  Trainer t({.seed = 8});
  save_weights(t, path);
  laws::sample_batch<Trainer> const data(1);
  std::vector<float> expected(24);
  t.forward(data.inputs, expected);

  // [load]
  network<Digits> net;
  load_weights(net, path);
  auto const serve = [&net](std::span<float const> pictures, std::span<float> scores) {
    network<Digits>::workspace room;  // a thread's own
    net.forward(pictures, scores, room);
  };
  // [/load]
  std::vector<std::vector<float>> found(4, std::vector<float>(24));
  std::vector<std::thread> threads;
  for (auto& each : found)
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) serve(data.inputs, each);
    });
  for (auto& each : threads) each.join();
  for (auto const& each : found) CHECK(laws::same_numbers(each, expected));

  auto const again = folder.file("again.safetensors");
  save_weights(net, again);
  CHECK(content(again) == content(path));
  CHECK(net.bytes() > 0);
  CHECK(net.runs_on() == t.runs_on());
}

TEST_CASE("weights are replaced while others read", "[infer]") {
  Trainer t({.seed = 8});
  laws::sample_batch<Trainer> const data(1);
  std::vector<float> before(24), after(24);
  t.forward(data.inputs, before);
  auto const first = std::make_shared<network<Digits>>();
  copy_weights(t, *first);
  t.step(data.view());
  t.forward(data.inputs, after);
  REQUIRE(before != after);

  // [replace]
  std::atomic<std::shared_ptr<network<Digits> const>> served{first};
  auto const answer = [&](std::span<float const> pictures, std::span<float> scores,
                          network<Digits>::workspace& room) {
    auto const now = served.load();  // stays alive until this call has ended
    now->forward(pictures, scores, room);
  };
  auto const reload = [&] {
    auto const next = std::make_shared<network<Digits>>();
    copy_weights(t, *next);
    served = next;
  };
  // [/replace]
  std::atomic<bool> stops = false;
  std::atomic<int> strange = 0, seen_after = 0;
  std::vector<std::thread> readers;
  for (int k = 0; k < 3; ++k)
    readers.emplace_back([&] {
      network<Digits>::workspace room;
      std::vector<float> found(24);
      while (!stops) {
        answer(data.inputs, found, room);
        strange += found != before && found != after;
        seen_after += found == after;
      }
    });
  for (int k = 0; seen_after == 0 && k < 100000; ++k) reload();
  stops = true;
  for (auto& each : readers) each.join();
  CHECK(strange == 0);
  CHECK(seen_after > 0);
}

TEST_CASE("wrong sizes and tokens are refused", "[infer]") {
  network<Digits> const net;
  network<Digits>::workspace room;
  std::vector<float> x(16), y(4), wrong(5);
  CHECK(message_of([&] { net.forward(x, wrong, room); }) == "outputs: expected 4 numbers, got 5");
  CHECK_THROWS_AS(net.forward(wrong, y, room), data_error);
  network<Words> const text;
  network<Words>::workspace other;
  std::vector<int> ids(6, 17);
  std::vector<float> scores(6 * 17);
  CHECK_THROWS_AS(text.forward(ids, scores, other), data_error);
  CHECK(network<Digits>::workspace::bytes() < 10'000);
}
