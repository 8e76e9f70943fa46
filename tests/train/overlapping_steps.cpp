// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap as a program asks for them, and what it is told when that cannot be.
#include "catch.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "laws/data.hpp"
#include "message_of.hpp"
#include "train/folder.hpp"

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/pipe.hpp>
#include <pipe/schedule/catalog/families.hpp>
#include <pipe/train/batches.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<8>, GELUTanh, Linear<8>, GELUTanh, Linear<8>, GELUTanh,
                   Linear<4>, MSE> {};

/// The trainers of most cases: the same stages, and one for each schedule.
template <class... More>
using Of = Pipeline<Net, Stages<4>, MicroBatches<4>, MicroBatchSize<2>, AdamW, More...>;

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
  using Trainer = Of<PipeDream<>>;
  numbers data(40);
  auto const all = [&] { return batches<Trainer>({data.inputs, data.targets}); };
  Trainer clipped({.clip_norm = 1});
  CHECK_THROWS_WITH(clipped.train(all()), Catch::Contains("clip_norm: expected 0 with pipedream"));
  CHECK(clipped.steps() == 0);
  Trainer trainer({.clip_value = 0.1});
  data.inputs[20 * 6] = std::numeric_limits<float>::infinity();
  std::string const says = message_of<not_finite>([&] { trainer.train(all()); });
  CHECK(says.find("step 3 rejected: its loss or a gradient is not finite") == 0);
  auto const broken = Catch::Contains(
      "this trainer is broken: the loss or a gradient was not finite in step 3, and some "
      "parameters are updated, others are not: load a checkpoint in another trainer");
  CHECK_THROWS_WITH(trainer.train(all()), broken);
  CHECK_THROWS_WITH(trainer.parameters(), broken);
}
TEST_CASE("a trainer with a barrier trains on ranges, too", "[train]") {
  using Trainer = Of<>;
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

namespace {

/// n steps are k steps, save, load and n - k steps, bit for bit; and a trainer that has been used
/// otherwise in between.
template <class Trainer>
void resumes_to_the_bit() {
  numbers data(100);
  temporary_folder const folder;
  std::string const file = folder.file("overlapping.safetensors");
  std::vector<typename Trainer::batch> all;
  for (auto const& batch : batches<Trainer>({data.inputs, data.targets})) all.push_back(batch);
  for (std::ptrdiff_t k : {0, 1, 5, 8}) {
    INFO(Trainer::plan().schedule << " after " << k << " steps");
    Trainer plain({.seed = 2}), first({.seed = 2}), second({.seed = 3});
    plain.train(all);
    first.train(std::vector(all.begin(), all.begin() + k));
    first.evaluate(all[0]);
    first.save(file);
    second.train(std::vector(all.begin(), all.begin() + 4));
    second.load(file);
    second.evaluate(all[0]);
    second.train(std::vector(all.begin() + k, all.end()));
    CHECK(laws::same_numbers(laws::snapshot(plain).values, laws::snapshot(second).values));
    if constexpr (Trainer::keeps_averages) {
      plain.swap_averages(), second.swap_averages();
      CHECK(laws::same_numbers(laws::snapshot(plain).values, laws::snapshot(second).values));
    }
  }
}

}  // namespace

TEST_CASE("a checkpoint between steps that overlap has the versions of the weights", "[train]") {
  resumes_to_the_bit<Of<Steady<>, Averaging<9, 10>>>();
  resumes_to_the_bit<Of<PipeDream<>>>();
  resumes_to_the_bit<Of<PipeDream2BW<>>>();
  resumes_to_the_bit<Pipeline<Net, Stages<4>, MicroBatches<1>, MicroBatchSize<2>, AdamW,
                              PipeDream<true>, HostThreads<2>, Averaging<9, 10>>>();
}
TEST_CASE("a run with predicted weights is resumed as it goes on", "[train]") {
  using Trainer = Of<PACI<0, true>, HostThreads<2>>;
  using Plain = Of<PACI<>>;
  numbers data(60);
  temporary_folder const folder;
  std::string const file = folder.file("predicted.safetensors");
  Trainer first({.seed = 2}), second({.seed = 3});
  Plain plain({.seed = 2});
  auto const all = [&](auto& trainer) {
    trainer.train(batches<std::decay_t<decltype(trainer)>>({data.inputs, data.targets}));
  };
  all(first), all(plain);
  CHECK(!laws::same_numbers(laws::snapshot(first).values, laws::snapshot(plain).values));
  first.save(file);
  second.load(file);
  CHECK(laws::same_numbers(laws::snapshot(first).values, laws::snapshot(second).values));
  all(first), all(second);
  CHECK(laws::same_numbers(laws::snapshot(first).values, laws::snapshot(second).values));
}
TEST_CASE("a run goes on with a flush, and without one", "[train]") {
  using Free = Of<PipeDream<>>;
  using Flushed = Of<>;
  numbers data(60);
  temporary_folder const folder;
  std::string const file = folder.file("overlapping.safetensors");
  Free a, b;
  Flushed c;
  a.train(batches<Free>({data.inputs, data.targets}));
  a.save(file);
  c.load(file);
  CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(c).values));
  c.train(batches<Flushed>({data.inputs, data.targets}));
  c.save(file);
  b.load(file);
  // All versions are the newest, as after a step with a flush.
  a.load(file);
  CHECK(a.train(batches<Free>({data.inputs, data.targets})) == 8);
  b.train(batches<Free>({data.inputs, data.targets}));
  CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
}
namespace {

/// flush(), and going on, is what a new trainer does with the same weights and state; and not what
/// comes without it, but for a family that begins each call with the newest.
template <class S>
void flushes() {
  using Free = Of<S>;
  using Flushed = Of<>;
  numbers data(60);
  temporary_folder const folder;
  std::string const file = folder.file("flushed.safetensors");
  auto const train = [&](auto& t) {
    t.train(batches<std::decay_t<decltype(t)>>({data.inputs, data.targets}));
  };
  Free flushed, as_ever, fresh;
  Flushed without_versions;
  train(flushed), train(as_ever);
  flushed.save(file);
  without_versions.load(file);
  without_versions.save(file);  // the same weights and state, and no older version
  fresh.load(file);
  flushed.flush();
  train(flushed), train(as_ever), train(fresh);
  INFO(Free::plan().schedule);
  CHECK(laws::same_numbers(laws::snapshot(flushed).values, laws::snapshot(fresh).values));
  CHECK(laws::same_numbers(laws::snapshot(flushed).values, laws::snapshot(as_ever).values) ==
        (Free::plan().stages[0].versions == 1));
}

}  // namespace

TEST_CASE("a flush makes all versions the newest", "[train]") {
  flushes<PipeDream<>>();
  flushes<PipeDream2BW<>>();
  flushes<PACI<>>();
}
TEST_CASE("versions are the newest after what is not a flow", "[train]") {
  using Trainer = Of<PipeDream<>>;
  numbers data(60);
  auto const all = [&] { return batches<Trainer>({data.inputs, data.targets}); };
  Trainer a, b;
  a.train(all());
  auto from = a.parameters();
  // Written through views, then looked at, which renews copies.
  auto to = b.parameters();
  for (std::size_t i = 0; i < from.size(); ++i)
    for (std::size_t k = 0; k < from[i].values.size(); ++k) {
      to[i].values[k] = from[i].values[k] * 0.5f;
      from[i].values[k] *= 0.5f;
    }
  a.parameters_changed(), b.parameters_changed();
  typename Trainer::batch const one{std::span(data.inputs).first(48),
                                    std::span(data.targets).first(32)};
  CHECK(a.evaluate(one) == b.evaluate(one));
  // Same weights, other states: SGD-like equality is not expected; losses of the first steps are.
  std::vector<double> x, y;
  a.train(std::vector{one}, [&](step_result const& r) { x.push_back(r.loss); });
  b.train(std::vector{one}, [&](step_result const& r) { y.push_back(r.loss); });
  CHECK(x == y);
}
