// SPDX-License-Identifier: BSL-1.0
//
// Virtual workers in several processes, unequal ones, against a loop over all of them in one
// process: every worker's losses and weights, after every wave, bit by bit.
#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/loose/virtual_worker.hpp>
#include <pipe/pipe.hpp>

#include "laws/data.hpp"
#include "mpi/between.hpp"
#include "mpi/folder.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<3>, Linear<5>, LayerNorm, Tanh, Linear<4>, Tanh, Linear<2>, MSE> {};

/// Workers of even numbers have other mini-batches and another optimizer than those of odd ones;
/// all may be cut.
template <class... More>
using Even = Pipeline<Net, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;
template <class... More>
using Odd = Pipeline<Net, PortableHost, SGD, MicroBatches<2>, MicroBatchSize<3>, More...>;

using numbers = std::vector<float>;
template <class Trainer>
numbers weights_of(Trainer& trainer) {
  numbers all;
  for (auto const& p : trainer.parameters())
    all.insert(all.end(), p.values.begin(), p.values.end());
  return all;
}
/// The steps of a wave of a worker, on mini-batches that only it has: odd workers make two.
template <class Trainer>
double steps(Trainer& trainer, int worker) {
  std::vector<laws::sample_batch<Trainer>> data;
  for (int i = 0; i <= worker % 2; ++i)
    data.emplace_back(std::uint64_t((trainer.steps() + i) * 16 + worker));
  std::vector<typename Trainer::batch> batches;
  for (auto const& d : data) batches.push_back(d.view());
  double loss = 0;
  trainer.train(batches, [&](step_result const& r) { loss += r.loss; });
  return loss;
}

/// One worker of the loop.
struct member {
  virtual ~member() = default;
  virtual double train(int worker) = 0;
  virtual numbers weights() = 0;
  virtual void set(numbers const& to) = 0;
};
template <class Trainer>
struct member_of : member {
  Trainer trainer{{.seed = 3}};
  double train(int worker) override { return steps(trainer, worker); }
  numbers weights() override { return weights_of(trainer); }
  void set(numbers const& to) override {
    std::size_t at = 0;
    for (auto const& p : trainer.parameters())
      for (float& v : p.values) v = to[at++];
    trainer.parameters_changed();
  }
};

/// What worker w has after each wave, and what all have at the end.
struct outcome {
  std::vector<std::vector<numbers>> weights;  // [wave][worker]
  std::vector<std::vector<double>> losses;
  numbers settled;
};
/// The law of virtual_worker, word for word: each wave's weights are made from the first ones and
/// from all changes that it reads. The waves before `settled` have been read by all.
template <class OfEven = Even<>, class OfOdd = Odd<>>
outcome run_all(int workers, int distance, int waves, int settled = 0) {
  std::vector<std::unique_ptr<member>> all;
  for (int i = 0; i < workers; ++i)
    if (i % 2 == 0)
      all.push_back(std::make_unique<member_of<OfEven>>());
    else
      all.push_back(std::make_unique<member_of<OfOdd>>());
  numbers const first = all[0]->weights();
  std::vector const changes_of_none(std::size_t(workers), numbers{});
  std::vector changes(std::size_t(waves), changes_of_none);
  auto const add = [&](numbers& to, int wave, int worker) {
    for (std::size_t k = 0; k < to.size(); ++k)
      to[k] += changes[std::size_t(wave)][std::size_t(worker)][k];
  };
  auto const before = [&](int n) {
    numbers w = first;
    for (int wave = 0; wave < n; ++wave)
      for (int i = 0; i < workers; ++i) add(w, wave, i);
    return w;
  };
  outcome o;
  for (int wave = 0; wave < waves; ++wave) {
    o.weights.emplace_back(), o.losses.emplace_back();
    for (int i = 0; i < workers; ++i) {
      int common = wave > distance ? wave - distance : 0;
      if (wave >= settled && common < settled) common = settled;
      numbers w = before(common);
      for (int own = common; own < wave; ++own) add(w, own, i);
      all[std::size_t(i)]->set(w);
      o.losses.back().push_back(all[std::size_t(i)]->train(i));
      o.weights.back().push_back(all[std::size_t(i)]->weights());
      numbers change = o.weights.back().back();
      for (std::size_t k = 0; k < change.size(); ++k) change[k] -= w[k];
      changes[std::size_t(wave)][std::size_t(i)] = change;
    }
  }
  o.settled = before(waves);
  return o;
}

/// Takes some time, another one in every process and wave.
void dawdle(int worker, int wave) {
  timespec const t{0, (worker * 7 + wave * 3) % 5 * 2'000'000L};
  nanosleep(&t, nullptr);
}
/// Waves of this process, against those of the loop.
template <class Trainer, class Waves>
void train_alike(Trainer& trainer, Waves& worker, outcome const& expected, int from, int to) {
  for (int wave = from; wave < to; ++wave) {
    dawdle(worker.worker(), wave);
    double const loss = worker.wave([&] { return steps(trainer, worker.worker()); });
    std::size_t const w = std::size_t(wave), i = std::size_t(worker.worker());
    CHECK(laws::same_bits(loss, expected.losses[w][i]));
    CHECK(laws::same_numbers(weights_of(trainer), expected.weights[w][i]));
  }
}
/// Calls test(trainer type) with this process's kind of worker.
template <class Test>
void with_own(Test const& test) {
  if (Between::process() % 2 == 0)
    test(std::type_identity<Even<Stages<2>>>{});
  else
    test(std::type_identity<Odd<Stages<3>, ZeroBubbleH1>>{});
}
void agrees_with_the_loop() {
  with_own([](auto type) {
    using Trainer = typename decltype(type)::type;
    constexpr int waves = 6;
    for (int distance : {0, 1, 2, 3}) {
      INFO("worker " << Between::process() << " of " << Between::processes() << ", distance "
                     << distance);
      auto const expected = run_all(Between::processes(), distance, waves);
      Trainer trainer({.seed = 3});
      virtual_worker<Trainer, Between> worker(trainer, {.clock_distance = distance});
      train_alike(trainer, worker, expected, 0, waves);
      worker.settle();
      CHECK(laws::same_numbers(weights_of(trainer), expected.settled));
      CHECK(worker.waves() == waves);
      CHECK(worker.allocated_bytes() ==
            4 * long(expected.settled.size()) * (1 + worker.workers() * (distance + 1)));
    }
  });
}

}  // namespace

TEST_CASE("virtual workers train as a loop over them", "[any]") { agrees_with_the_loop(); }
TEST_CASE("steps of a virtual worker may overlap", "[any]") {
  using Trainer = Even<Stages<2>, PipeDream2BW<>>;
  auto const expected = run_all<Trainer, Trainer>(Between::processes(), 1, 5);
  Trainer trainer({.seed = 3});
  virtual_worker<Trainer, Between> worker(trainer, {.clock_distance = 1});
  train_alike(trainer, worker, expected, 0, 5);
  worker.settle();
  CHECK(laws::same_numbers(weights_of(trainer), expected.settled));
}
TEST_CASE("virtual workers resume where they have settled", "[any]") {
  with_own([](auto type) {
    using Trainer = typename decltype(type)::type;
    auto const expected = run_all(Between::processes(), 2, 7, 4);
    std::string const file =
        processes::in_folder("worker") + "-" + std::to_string(Between::process());
    {
      Trainer trainer({.seed = 3});
      virtual_worker<Trainer, Between> worker(trainer, {.clock_distance = 2});
      train_alike(trainer, worker, expected, 0, 4);
      worker.settle();
      trainer.save(file);
    }
    Trainer trainer({.seed = 4});
    trainer.load(file);
    virtual_worker<Trainer, Between> worker(trainer, {.clock_distance = 2});
    train_alike(trainer, worker, expected, 4, 7);
    worker.settle();
    CHECK(laws::same_numbers(weights_of(trainer), expected.settled));
  });
}
TEST_CASE("a wave whose steps throw goes on", "[any]") {
  with_own([](auto type) {
    using Trainer = typename decltype(type)::type;
    auto const expected = run_all(Between::processes(), 1, 3);
    Trainer trainer({.seed = 3});
    virtual_worker<Trainer, Between> worker(trainer, {.clock_distance = 1});
    train_alike(trainer, worker, expected, 0, 2);
    CHECK_THROWS_AS(worker.wave([] { throw std::out_of_range("no data"); }), std::out_of_range);
    CHECK_THROWS_WITH(worker.settle(), Catch::Contains("a wave has begun and not ended"));
    CHECK_THROWS_AS(worker.wave([&] { trainer.step({}); }), data_error);
    train_alike(trainer, worker, expected, 2, 3);
    worker.settle();
    CHECK(laws::same_numbers(weights_of(trainer), expected.settled));
  });
}
TEST_CASE("virtual workers are refused plainly", "[any]") {
  using Trainer = Even<>;
  using Waves = virtual_worker<Trainer, Between>;
  Trainer trainer({.seed = std::uint64_t(Between::process())});
  CHECK_THROWS_WITH(Waves(trainer, {.clock_distance = -1}),
                    "clock_distance: expected a number in [0, 1000], got -1");
  if (Between::processes() == 1) return;
  CHECK_THROWS_WITH(Waves(trainer), Catch::Contains("begin with different weights"));
}

#ifdef BY_SOCKETS
TEST_CASE("the program of docs/howto/several_processes.md, on virtual workers", "[any]") {
  std::vector<float> const x(3 * 8, 0.5f), y(2 * 8, 0.25f);
  double loss = 0;
  // [workers]
  using Trainer = Pipeline<Net, Stages<2>, MicroBatches<4>, MicroBatchSize<2>, AdamW>;
  Trainer trainer({.seed = 3});  // of this process alone
  virtual_worker<Trainer, Tcp> worker(trainer, {.clock_distance = 1});
  for (int wave = 0; wave < 20; ++wave)
    worker.wave([&] {
      for (int step = 0; step < 2; ++step) loss = trainer.step({x, y}).loss;  // its own data
    });
  worker.settle();  // from here on the weights are those of all workers
  // [/workers]
  CHECK(loss < 0.1);
  CHECK(worker.clock().staleness(2) == 3);
}
#endif
