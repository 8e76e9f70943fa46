// SPDX-License-Identifier: BSL-1.0
//
// Replicas that apply their gradients a step late, against a loop over steps in one process, which
// has the weights of two steps and makes the updates itself: losses, norms and weights, bit by bit.
#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/loose/delayed_replica.hpp>
#include <pipe/pipe.hpp>
#include <pipe/report/explain_delay.hpp>

#include "laws/data.hpp"
#include "mpi/between.hpp"
#include "mpi/folder.hpp"

using namespace pp;

namespace {

/// A table that is also the head, labels that do not count, and two losses.
struct Net : Model<Tokens<11, 4>, Named<"table", Embedding<6>>, Linear<6>, Tanh, LayerNorm,
                   Stash<"late">, Tied<"table">,
                   Losses<CrossEntropy,
                          FurtherLoss<"kind", "late", LossWeight<1, 2>, Linear<2>, CrossEntropy>>> {
};
struct Small : Model<Input<3>, Linear<5>, Tanh, Linear<2>, MSE> {};
struct Dropping : Model<Input<3>, Linear<5>, Dropout<1, 5>, Tanh, Linear<2>, MSE> {};

template <class Optimizer, class... More>
using Replica = Pipeline<Net, PortableHost, Optimizer, MicroBatches<2>, MicroBatchSize<2>, More...>;
/// Accumulations that are not there are zeros.
template <class Optimizer>
using Whole = Replica<Optimizer, GradientAccumulation<8>>;
template <class Optimizer>
using Two = Replica<Optimizer, Stages<2>>;

using numbers = std::vector<float>;

template <class Optimizer>
auto settings_of() {
  typename Whole<Optimizer>::settings s{.seed = 3, .clip_norm = 0.5};
  s.optimizer.learning_rate = 0.05;
  s.optimizer.weight_decay = 0.125;
  s.learning_rate_factor = [](long step) { return 1 / double(step + 1); };
  return s;
}
/// The mini-batch of a step: of all replicas, the last of some of them.
template <class Optimizer>
auto data_of(int step) {
  return laws::sample_batch<Whole<Optimizer>>(std::uint64_t(100 + step));
}
int samples_of(int step) { return step % 3 == 2 ? 3 : 4 * Between::processes(); }

/// What replicas have after each call, and what the calls return.
struct outcome {
  std::vector<numbers> weights;
  std::vector<std::optional<step_result>> results;
};
/// The law of delayed_replica, word for word: step n reads version n - 1 of the weights, the update
/// of version n + 1 takes the gradients of step n.
template <class Optimizer>
class loop {
  using One = Whole<Optimizer>;

 public:
  explicit loop(typename One::settings const& s) : settings_(s), one_(s) {
    numbers first;
    for (auto const& p : one_.parameters())
      first.insert(first.end(), p.values.begin(), p.values.end());
    versions_.push_back(first);
    moments_.assign(2, numbers(first.size()));
  }
  /// settled: the step that reads the newest version
  outcome run(int steps, int settled) {
    outcome o;
    for (int n = 0; n < steps; ++n) {
      if (n == settled) note(o);
      gradients(n);
      if (is_under_way_)
        note(o);
      else
        o.weights.push_back(versions_.back()), o.results.emplace_back();
      waiting_ = computed_, result_ = found_, is_under_way_ = true;
    }
    note(o);
    return o;
  }

 private:
  void gradients(int n) {
    std::size_t at = 0;
    for (auto const& p : one_.parameters())
      for (float& v : p.values) v = versions_.back()[at++];
    one_.parameters_changed();
    found_ = one_.gradients(data_of<Optimizer>(n).view(samples_of(n)));
    computed_.clear();
    for (auto const& p : one_.parameters())
      computed_.insert(computed_.end(), p.gradients.begin(), p.gradients.end());
  }
  void note(outcome& o) {
    update();
    o.weights.push_back(versions_.back());
    o.results.emplace_back(result_);
    is_under_way_ = false;
  }
  /// One update, by the optimizer's own formula, with products as portable kernels round them.
  void update() {
    constexpr math::product rounds = host::isa_traits<host::isa::portable>::fuses
                                         ? math::product::exact
                                         : math::product::rounded;
    long const step = long(versions_.size());
    numbers next = versions_.back();
    double const factor = detail::clip_factor(result_.gradient_norm, settings_.clip_norm),
                 rate = settings_.optimizer.learning_rate * settings_.learning_rate_factor(step);
    std::size_t at = 0;
    for (auto const& p : one_.parameters()) {
      auto const k =
          settings_.optimizer.template prepare<float>({step, rate, factor, p.rows > 1 ? 1. : 0.});
      for (std::size_t i = 0; i < p.values.size(); ++i, ++at)
        if constexpr (Optimizer::states == 1)
          next[at] = Optimizer::template apply<rounds>(k, next[at], waiting_[at], moments_[0][at]);
        else
          next[at] = Optimizer::template apply<rounds>(k, next[at], waiting_[at], moments_[0][at],
                                                       moments_[1][at]);
    }
    versions_.push_back(next);
  }

  typename One::settings settings_;
  One one_;
  std::vector<numbers> versions_, moments_;
  numbers computed_, waiting_;
  step_result found_, result_;
  bool is_under_way_ = false;
};

/// Takes some time, another one in every process and step.
void dawdle(int step) {
  timespec const t{0, (Between::process() * 7 + step * 3) % 5 * 2'000'000L};
  nanosleep(&t, nullptr);
}
template <class Trainer>
void is_alike(Trainer& trainer, std::optional<step_result> const& result, outcome const& expected,
              std::size_t call) {
  REQUIRE(call < expected.results.size());
  auto const& of = expected.results[call];
  REQUIRE(result.has_value() == of.has_value());
  CHECK(laws::same_numbers(laws::snapshot(trainer).values, expected.weights[call]));
  if (!of) return;
  CHECK(laws::same_losses(*result, *of));
  CHECK(laws::same_bits(result->gradient_norm, of->gradient_norm));
}
/// Steps `from` to `to`, and settles; `call` counts.
template <class Optimizer, class Trainer>
void trains_alike(Trainer& trainer, outcome const& expected, int from, int to, std::size_t& call) {
  delayed_replica<Trainer, Between> replica(trainer);
  for (int n = from; n < to; ++n) {
    INFO("replica " << replica.replica() << " of " << replica.replicas() << ", step " << n);
    dawdle(n);
    auto const data = data_of<Optimizer>(n);
    auto const result = replica.step(data.template view<Trainer>(samples_of(n)));
    is_alike(trainer, result, expected, call++);
  }
  is_alike(trainer, replica.settle(), expected, call++);
  CHECK(!replica.settle());
  CHECK(trainer.steps() == to);
}
template <class Optimizer, class Trainer>
void agrees_with_the_loop() {
  auto const s = settings_of<Optimizer>();
  auto const expected = loop<Optimizer>(s).run(7, 4);
  typename Trainer::settings of{.seed = s.seed,
                                .optimizer = s.optimizer,
                                .learning_rate_factor = s.learning_rate_factor,
                                .clip_norm = s.clip_norm};
  Trainer trainer(of);
  std::size_t call = 0;
  trains_alike<Optimizer>(trainer, expected, 0, 4, call);
  std::string const file =
      processes::in_folder("delayed") + "-" + std::to_string(Between::process());
  trainer.save(file);
  std::size_t resumed = call;
  trains_alike<Optimizer>(trainer, expected, 4, 7, call);
  CHECK(call == expected.results.size());
  of.seed = 4;
  Trainer other(of);
  other.load(file);
  trains_alike<Optimizer>(other, expected, 4, 7, resumed);
}

}  // namespace

TEST_CASE("replicas a step late train as a loop with two versions of the weights") {
  agrees_with_the_loop<AdamW, Two<AdamW>>();
  agrees_with_the_loop<SGD, Replica<SGD, Stages<2>, ZeroBubbleH1>>();
}
TEST_CASE("one replica a step late is PipeDream-2BW", "[any]") {
  if (Between::processes() > 1) return;
  using Flow = Pipeline<Dropping, PortableHost, Stages<2>, MicroBatches<2>, MicroBatchSize<2>,
                        AdamW, PipeDream2BW<>>;
  using Late =
      Pipeline<Dropping, PortableHost, Stages<2>, MicroBatches<2>, MicroBatchSize<2>, AdamW>;
  static_assert(delayed_replica<Late, Between>::clock().staleness() == 1);
  Flow flow({.seed = 3});
  Late late({.seed = 3});
  delayed_replica<Late, Between> replica(late);
  std::vector<double> a, b;
  for (std::uint64_t n = 0; n < 6; ++n) {
    laws::sample_batch<Late> const data(n);
    std::vector const one{data.view<Flow>()};
    flow.train(one, [&](step_result const& r) { a.push_back(r.loss); });
    if (auto const r = replica.step(data.view())) b.push_back(r->loss);
  }
  b.push_back(replica.settle()->loss);
  CHECK(laws::same_numbers(a, b));
  CHECK(laws::same_numbers(laws::snapshot(flow).values, laws::snapshot(late).values));
}
TEST_CASE("a step that is not finite is left out in all replicas", "[any]") {
  using Trainer = Pipeline<Small, PortableHost, Stages<2>, MicroBatches<1>, MicroBatchSize<2>, SGD>;
  Trainer trainer({.seed = 3}), other({.seed = 3});
  delayed_replica<Trainer, Between> replica(trainer), without(other);
  int const n = replica.batch_samples();
  CHECK(n == 2 * Between::processes());
  numbers const x(std::size_t(3 * n), 0.5f), y(std::size_t(2 * n), 0.25f);
  numbers endless = y;
  endless.back() = std::numeric_limits<float>::infinity();  // in the last replica
  CHECK(!replica.step({x, endless}));
  CHECK_THROWS_AS(replica.step({numbers(2), y}), data_error);  // as if it had not been called
  numbers const before = laws::snapshot(trainer).values;
  CHECK_THROWS_WITH(replica.step({x, y}), Catch::StartsWith("step 1 left out: "));
  CHECK(laws::same_numbers(laws::snapshot(trainer).values, before));
  CHECK(trainer.steps() == 0);
  CHECK(replica.step({x, y})->loss > 0);
  CHECK(!without.step({x, y}));
  without.step({x, y});
  CHECK(laws::same_numbers(laws::snapshot(trainer).values, laws::snapshot(other).values));
  replica.step({x, endless});
  CHECK_THROWS_AS(replica.settle(), not_finite);
  CHECK(!replica.settle());
  CHECK(trainer.steps() == 2);
}
TEST_CASE("replicas a step late are refused plainly", "[any]") {
  using Trainer = Pipeline<Small, PortableHost, Stages<2>, MicroBatches<1>, MicroBatchSize<2>, SGD>;
  using Late = delayed_replica<Trainer, Between>;
  Trainer trainer({.seed = std::uint64_t(Between::process())});
  if (Between::processes() > 1)
    CHECK_THROWS_WITH(Late(trainer), Catch::StartsWith("replicas begin with different weights"));
}

#ifdef BY_SOCKETS
TEST_CASE("the program of docs/howto/several_processes.md, on replicas a step late", "[any]") {
  double loss = 1;
  // [late]
  using Trainer = Pipeline<Small, Stages<2>, MicroBatches<2>, MicroBatchSize<2>, AdamW>;
  Trainer trainer({.seed = 3});  // of this process alone
  delayed_replica<Trainer, Tcp> replica(trainer);
  int const samples = replica.batch_samples();  // of all replicas, as in every process
  std::vector<float> const x(std::size_t(3 * samples), 0.5f), y(std::size_t(2 * samples), 0.25f);
  for (int step = 0; step < 40; ++step)
    if (auto const before = replica.step({x, y})) loss = before->loss;
  replica.settle();  // from here on no gradients are on their way
  // [/late]
  CHECK(loss < 0.1);
  CHECK(replica.allocated_bytes() > 0);
  CHECK(explain_delay<Trainer>(4) ==
        "replicas a step late: each of 4 sends 3 times 256 B per step, hidden in the next one by "
        "67.345 GB/s each way for each TFLOP/s\n");
}
#endif
