// SPDX-License-Identifier: BSL-1.0
//
// The law over every place that can throw: user-defined layers, in each of their functions and on
// each thread, callbacks, allocations. Afterwards a trainer is bit by bit one that never made the
// call, but for what was accumulated; or, if its optimizer threw, it says that it is broken.
#include "catch.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "laws/data.hpp"
#include "laws/eager.hpp"
#include "runtime/allocation.hpp"

using namespace pp;
using Catch::Contains;

namespace {

enum class site {
  forward,
  input_gradient,
  weight_gradient,
  formula,
  slope,
  callback,
  rate,
  optimizer,
  none
};

/// The call that throws: the n-th at its site.
std::atomic<site> bad_site{site::none};
std::atomic<long> good_calls{0};
struct trip {};
void pass(site s) {
  if (bad_site.load(std::memory_order_relaxed) == s && good_calls-- == 0) throw trip{};
}

/// y = f[c] * x
struct Tripping {
  static constexpr sample_shape result(sample_shape in) { return in; }
  static constexpr int parameters = 1;
  static constexpr custom::parameter parameter(int, sample_shape in) {
    return {1, in.columns(), "factor", {distribution::constant, 0.5f}, false};
  }
  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (int i = 0; i < a.samples * a.in.elements(); ++i)
      a.y[i] = a.parameter[0][i % a.in.columns()] * a.x[i];
    pass(site::forward);
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (int i = 0; i < a.samples * a.in.elements(); ++i)
      a.dx[i] = a.parameter[0][i % a.in.columns()] * a.dy[i];
    pass(site::input_gradient);
  }
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const& a) {
    for (int i = 0; i < a.samples * a.in.elements(); ++i)
      a.gradient[0][i % a.in.columns()] += a.dy[i] * a.x[i];
    pass(site::weight_gradient);
  }
};
/// 2x: element by element, and so on every thread of a rank.
struct TrippingFormula {
  template <class T>
  static T forward(T x) {
    pass(site::formula);
    return x + x;
  }
  template <class T>
  static T derivative(T) {
    pass(site::slope);
    return T(2);
  }
};
/// SGD with momentum.
struct TrippingOptimizer : SGD {
  template <class T>
  static T apply(coefficients<T> const& c, T w, T g, T& m) {
    T const updated = SGD::apply(c, w, g, m);
    pass(site::optimizer);
    return updated;
  }
};

struct Net : Model<Input<3>, Linear<4>, Custom<Tripping>, Map<TrippingFormula>, Linear<4>,
                   Custom<Tripping>, Tanh, Linear<2>, MSE> {};
template <class Backend, class... More>
using Trained =
    Pipeline<Net, Backend, TrippingOptimizer, MicroBatches<3>, MicroBatchSize<2>, More...>;
using ThreeRanks = Trained<PortableHost, Stages<3>, ZeroBubbleH1>;
using TwoTimesTwo = Trained<laws::Eager<PortableHost>, Stages<2>, HostThreads<2>>;

/// Calls with the n-th pass of a site throwing; false if there are not so many.
template <class Call>
bool trips(site s, long n, Call const& call) {
  good_calls = n;
  bad_site = s;
  bool tripped = false;
  try {
    call();
  } catch (trip const&) {
    tripped = true;
  }
  bad_site = site::none;
  return tripped;
}

template <class Trainer>
typename Trainer::settings settings() {
  return {.optimizer = {{.momentum = 0.9}}, .learning_rate_factor = [](long) {
            pass(site::rate);
            return 1.0;
          }};
}

/// Two trainers that make the same calls; one of them makes further calls, which fail.
template <class Trainer>
struct twins {
  Trainer plain{settings<Trainer>()}, troubled{settings<Trainer>()};
  laws::sample_batch<Trainer> data{1}, other{2};

  void are_the_same() {
    CHECK(plain.accumulated() == troubled.accumulated());
    CHECK(laws::same_bits(plain.evaluate(other.view()), troubled.evaluate(other.view())));
    CHECK(laws::same_bits(plain.step(data.view()).loss, troubled.step(data.view()).loss));
    CHECK(plain.steps() == troubled.steps());
    CHECK(laws::same_numbers(laws::snapshot(plain).values, laws::snapshot(troubled).values));
  }
  /// call() fails at every `stride`-th pass of a site, after prepare(troubled), which it forgets.
  void each(site s, long stride, auto prepare, auto call) {
    long n = 0;
    for (;; n += stride) {
      prepare(troubled);
      if (!trips(s, n, call)) break;
      are_the_same();
    }
    CHECK(n > 0);
    troubled = Trainer(settings<Trainer>());  // the last call went well
    plain = Trainer(settings<Trainer>());
  }
  void every_training_call(site s, long stride) {
    auto const nothing = [](Trainer&) {};
    auto const accumulated = [&](Trainer& t) { t.accumulate(other.view()); };
    each(s, stride, nothing, [&] { troubled.step(other.view()); });
    each(s, stride, accumulated, [&] { troubled.step(other.view()); });
    each(s, stride, nothing, [&] { troubled.accumulate(other.view()); });
    each(s, stride, accumulated, [&] { troubled.accumulate(other.view(3)); });
    each(s, stride, nothing, [&] { troubled.gradients(other.view()); });
  }
  /// These keep what was accumulated.
  void every_other_call(site s, long stride) {
    std::vector<float> outputs(std::size_t(Trainer::samples * Trainer::outputs_per_sample));
    auto const nothing = [](Trainer&) {};
    each(s, stride, nothing, [&] { troubled.evaluate(other.view()); });
    each(s, stride, nothing, [&] { troubled.forward(other.inputs, outputs); });
    plain.accumulate(data.view());
    troubled.accumulate(data.view());
    CHECK(trips(s, 1, [&] { troubled.evaluate(other.view()); }));
    are_the_same();
  }
};

template <class Trainer>
void is_as_before_or_forgets() {
  twins<Trainer> t;
  for (site s : {site::forward, site::input_gradient, site::weight_gradient})
    t.every_training_call(s, 1);
  for (site s : {site::formula, site::slope}) t.every_training_call(s, 11);
  t.every_other_call(site::forward, 1);
  t.every_other_call(site::formula, 11);
  t.each(
      site::callback, 1, [](Trainer&) {},
      [&] { t.troubled.watch(t.other.view(), [](launch_seen const&) { pass(site::callback); }); });
}

#if PIPE_TESTS_COUNT_ALLOCATIONS
/// Calls with the n-th allocation failing, or all from the n-th; false if it did not throw.
template <class Call>
bool starves(long n, long bad, Call const& call) {
  bool threw = false;
  fail_allocations(n, bad);
  try {
    call();
  } catch (std::bad_alloc const&) {
    threw = true;
  } catch (error const&) {
    threw = true;
  }
  fail_allocations(-1, 0);
  return threw;
}
#endif

}  // namespace

TEST_CASE("a layer or a callback that throws changes nothing", "[runtime]") {
  is_as_before_or_forgets<ThreeRanks>();
  is_as_before_or_forgets<TwoTimesTwo>();
}

TEST_CASE("a learning-rate function that throws leaves what was accumulated", "[runtime]") {
  twins<ThreeRanks> t;
  t.plain.accumulate(t.data.view());
  t.troubled.accumulate(t.data.view());
  CHECK(trips(site::rate, 0, [&] { t.troubled.step(t.other.view()); }));
  t.are_the_same();
}

TEST_CASE("a batch that is refused leaves what was accumulated", "[runtime]") {
  twins<ThreeRanks> t;
  t.plain.accumulate(t.data.view());
  t.troubled.accumulate(t.data.view());
  ThreeRanks::batch const half{t.data.inputs, std::span(t.data.labels).first(3)};
  CHECK_THROWS_AS(t.troubled.accumulate(half), data_error);
  CHECK_THROWS_AS(t.troubled.step(half), data_error);
  t.are_the_same();
}

TEST_CASE("an optimizer that throws leaves a broken trainer, which says so", "[runtime]") {
  laws::sample_batch<TwoTimesTwo> const data(1);
  long n = 0;
  for (;; n += 5) {
    TwoTimesTwo t(settings<TwoTimesTwo>());
    t.step(data.view());
    if (!trips(site::optimizer, n, [&] { t.step(data.view()); })) break;
    auto const broken =
        Contains("this trainer is broken: its optimizer threw in the update of step 2");
    CHECK_THROWS_WITH(t.step(data.view()), broken);
    CHECK_THROWS_WITH(t.evaluate(data.view()), broken);
    CHECK_THROWS_WITH(t.parameters(), broken);
    TwoTimesTwo const moved = std::move(t);
    CHECK_THROWS_WITH(moved.executed(0), broken);
  }
  CHECK(n > 50);
}

TEST_CASE("a trainer whose steps overlap says what has broken it", "[runtime]") {
  using Confirmed = Trained<PortableHost, Stages<3>, Steady<ZeroBubbleH2>>;
  using Free = Trained<PortableHost, Stages<3>, PipeDream<>>;
  laws::sample_batch<ThreeRanks> const data(1);
  auto const three = std::vector(3, data.view());
  auto const after = [&]<class Trainer>(Trainer&& t, site s, long n, std::string const& says) {
    t.train(three);
    REQUIRE(trips(s, n, [&] { t.train(three); }));
    if (says.empty())
      CHECK_NOTHROW(t.train(three));
    else
      CHECK_THROWS_WITH(t.train(three), Contains("this trainer is broken: " + says));
  };
  after(Confirmed(settings<Confirmed>()), site::optimizer, 0,
        "its optimizer threw in the update of step 4");
  after(Confirmed(settings<Confirmed>()), site::weight_gradient, 7, "");
  after(Free(settings<Free>()), site::optimizer, 0, "its optimizer threw in the update of step 4");
  after(Free(settings<Free>()), site::weight_gradient, 0, "a rank failed in step 4");
}

#if PIPE_TESTS_COUNT_ALLOCATIONS
TEST_CASE("no allocation that fails makes construction hang", "[runtime]") {
  for (long bad : {1L, 1000L}) {
    long n = 0;
    while (starves(n, bad, [] { TwoTimesTwo{}; })) ++n;
    CHECK(n > 8);
  }
}

TEST_CASE("no allocation that fails changes a trainer", "[runtime]") {
  // A step itself allocates nothing; to say why it is rejected takes memory.
  twins<ThreeRanks> t;
  laws::sample_batch<ThreeRanks> bad(3);
  bad.inputs[0] = std::numeric_limits<float>::infinity();
  long most = 0;
  for (long count : {1L, 1000L})
    for (long n = 0; n < 20; ++n) {
      long const before = allocations();
      CHECK(starves(n, count, [&] { t.troubled.step(bad.view()); }));
      most = std::max(most, allocations() - before);
      t.are_the_same();
    }
  CHECK((most > 0 && most < 20));
  for (long n = 0; starves(n, 1, [&] { t.troubled.parameters(); }); ++n) t.are_the_same();
}
#endif
