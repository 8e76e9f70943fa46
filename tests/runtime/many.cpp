// SPDX-License-Identifier: BSL-1.0
//
// Many trainers, many steps, more ranks than cores.
#include <catch2/catch.hpp>

#include <memory>

#include "runtime/trainers.hpp"

TEST_CASE("trainers come and go", "[runtime]") {
  laws::sample_batch<tiny::SevenRanks> const data(1);
  for (int i = 0; i < 40; ++i) {
    tiny::SevenRanks trainer;
    if (i % 2 == 0) trainer.step(data.view());
    tiny::ThreeThreads threads;
    if (i % 2 == 1) threads.step({data.inputs, data.labels});
  }
  std::vector<std::unique_ptr<tiny::LateWeights>> together;
  for (int i = 0; i < 8; ++i) together.push_back(std::make_unique<tiny::LateWeights>());
  for (auto& t : together) t->step({data.inputs, data.labels});
  for (auto& t : together) CHECK(laws::same_numbers(laws::snapshot(*t).values, laws::snapshot(*together[0]).values));
  while (!together.empty()) together.erase(together.begin() + long(together.size() / 2));
}

TEST_CASE("200 calls in random order give the bits of one rank", "[runtime]") {
  tiny::OneRank one;
  tiny::SevenRanks seven;
  tiny::TwoChunks two;
  tiny::ThreeThreads threads;
  std::vector<float> outputs(std::size_t(tiny::OneRank::samples * tiny::OneRank::outputs_per_sample)),
      others(outputs.size());
  for (std::uint64_t call = 0; call < 200; ++call) {
    laws::sample_batch<tiny::OneRank> const data(call);
    auto const everywhere = [&](auto ask) {
      auto const expected = ask(one);
      CHECK(laws::same_bits(expected, ask(seven)));
      CHECK(laws::same_bits(expected, ask(two)));
      CHECK(laws::same_bits(expected, ask(threads)));
    };
    auto const batch = [&]<class Trainer>(Trainer&) { return typename Trainer::batch{data.inputs, data.labels}; };
    switch (int((laws::uniform(9, 9, call) + 1) * 3)) {
      case 0: everywhere([&](auto& t) { return t.evaluate(batch(t)); }); break;
      case 1: everywhere([&](auto& t) { return t.gradients(batch(t)).gradient_norm; }); break;
      case 2:
        one.forward(data.inputs, outputs);
        seven.forward(data.inputs, others);
        CHECK(laws::same_numbers(outputs, others));
        break;
      default: everywhere([&](auto& t) { return t.step(batch(t)).loss; });
    }
  }
  CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(seven).values));
  CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(two).values));
  CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(threads).values));
}
