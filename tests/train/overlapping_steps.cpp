// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap as a program asks for them, and what it is told when that cannot be.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "laws/data.hpp"
#include "message_of.hpp"

#include <pipe/pipe.hpp>
#include <pipe/schedule/families.hpp>
#include <pipe/train/batches.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<8>, GELU, Linear<8>, GELU, Linear<8>, GELU, Linear<4>, MSE> {};

struct numbers {
  std::vector<float> inputs, targets;
  explicit numbers(int samples) {
    for (int i = 0; i < samples * 6; ++i)
      inputs.push_back(float(laws::uniform(1, 1, std::uint64_t(i))));
    for (int i = 0; i < samples * 4; ++i)
      targets.push_back(float(laws::uniform(1, 2, std::uint64_t(i))));
  }
};

}  // namespace

TEST_CASE("a program trains with steps that overlap", "[train]") {
  numbers const data(100);
  auto const &inputs = data.inputs, &targets = data.targets;
  std::vector<double> losses;
  // [steady]
  using Trainer =
      Pipeline<Net, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, AdamW, Steady<ZeroBubbleH2>>;
  Trainer trainer({.clip_norm = 1});
  for (int epoch = 0; epoch < 3; ++epoch)
    trainer.train(batches<Trainer>({inputs, targets}, {.shuffle = true, .epoch = epoch}),
                  [&](step_result const& r) { losses.push_back(r.loss); });
  // [/steady]
  CHECK(losses.size() == 3 * 7);
  CHECK(trainer.steps() == 3 * 7);
  using Plain = Pipeline<Net, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, AdamW>;
  Plain plain({.clip_norm = 1});
  std::size_t i = 0;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (auto const& batch : batches<Plain>({inputs, targets}, {.shuffle = true, .epoch = epoch}))
      CHECK(plain.step(batch).loss == losses[i++]);
  auto const& stages = Trainer::plan().stages;
  CHECK((stages[0].versions == 2 && stages[0].version_bytes > 0));
  CHECK(Plain::plan().stages[0].version_bytes == 0);
}
TEST_CASE("a program trains without a flush", "[train]") {
  numbers const data(100);
  auto const &inputs = data.inputs, &targets = data.targets;
  // [free]
  using Trainer =
      Pipeline<Net, Stages<4>, MicroBatches<4>, MicroBatchSize<2>, AdamW, PipeDream2BW<>>;
  static_assert(Trainer::plan().stages[0].versions == 2 &&
                Trainer::plan().stages[0].in_flight == 4);
  Trainer trainer;
  trainer.train(batches<Trainer>({inputs, targets}), [](step_result const& r) {
    if (!(r.loss < 1e3)) throw error("diverged");
  });
  // [/free]
  CHECK(trainer.steps() == 13);
  CHECK(std::isfinite(
      trainer.evaluate({std::span(inputs).first(8 * 6), std::span(targets).first(8 * 4)})));
}
TEST_CASE("updates that are free need no norm of all stages, and break on infinity", "[train]") {
  using Trainer = Pipeline<Net, Stages<4>, MicroBatches<1>, MicroBatchSize<2>, AdamW, PipeDream<>>;
  numbers data(40);
  auto const all = [&] { return batches<Trainer>({data.inputs, data.targets}); };
  Trainer clipped({.clip_norm = 1});
  CHECK_THROWS_WITH(clipped.train(all()), Catch::Contains("clip_norm: expected 0 with pipedream"));
  CHECK(clipped.steps() == 0);
  Trainer trainer({.clip_value = 0.1});
  data.inputs[20 * 6] = std::numeric_limits<float>::infinity();
  CHECK(message_of<not_finite>([&] { trainer.train(all()); }).find("step 11 rejected") == 0);
  CHECK_THROWS_WITH(trainer.train(all()), Catch::Contains("broken"));
}
TEST_CASE("a trainer with a barrier trains on ranges, too", "[train]") {
  using Trainer = Pipeline<Net, Stages<2>, MicroBatches<4>, MicroBatchSize<2>, AdamW>;
  numbers const data(40);
  Trainer a, b;
  std::vector<double> seen;
  CHECK(a.train(batches<Trainer>({data.inputs, data.targets}), [&](step_result const& r) {
    return seen.push_back(r.loss), seen.size() < 3;
  }) == 3);
  std::size_t i = 0;
  for (auto const& batch : batches<Trainer>({data.inputs, data.targets}))
    if (i < 3) CHECK(b.step(batch).loss == seen[i++]);
  CHECK(a.train(batches<Trainer>({data.inputs, data.targets})) == 5);
}
