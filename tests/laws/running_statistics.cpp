// SPDX-License-Identifier: BSL-1.0
//
// Buffers that follow the data under schedules without a flush: each mini-batch moves them once, by
// the activations that its micro-batches had, whatever versions of the weights these are of.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "laws/buffers_of.hpp"
#include "laws/centered.hpp"
#include "laws/data.hpp"
#include "laws/overlap_law.hpp"
#include "laws/resume_law.hpp"
#include "laws/slope.hpp"

#include <pipe/schedule/catalog/families.hpp>

using namespace pp;
using laws::buffers_of;
using laws::same_numbers, laws::sample_batch;

namespace {

/// Both kinds of buffers before all trained layers, and behind some.
struct Net
    : Model<Input<2, 3>, Residual<With<BatchNorm, NoAffine>>, Custom<laws::Centered>, Linear<4>,
            BatchNorm, GELUTanh, Linear<4>, Custom<laws::Centered>, Tanh, Linear<4, NoBias>,
            With<BatchNorm, NoAffine, Momentum<1, 2>, BiasedVariance>, Tanh, Linear<2>, MSE> {};
constexpr std::size_t of_data_alone = 9, of_weights = 8 + 4 + 8;  // numbers in buffers

/// Those that data moves, whatever the weights are.
template <class Trainer>
auto moved_by_data(Trainer& t) {
  auto all = buffers_of(t);
  all.resize(of_data_alone);
  return all;
}

/// Buffers that only data moves are those of steps with a flush; and a run goes on over calls of
/// train(), checkpoints, and steps with a flush between.
template <class Family, int A, bool keeps_versions = true, class... Options>
void follow_mini_batches() {
  using Flushed = Pipeline<Net, PortableHost, AdamW, MicroBatches<A>, MicroBatchSize<2>>;
  using Free = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<A>, MicroBatchSize<2>,
                        Family, Options...>;
  INFO(Free::plan().schedule << ", " << A << " micro-batches");
  laws::mini_batches<Flushed> const data(9);
  auto const flushed = data.views();
  auto const views = data.template views<Free>();
  Flushed plain({.seed = 3});
  Free at_once({.seed = 3}), in_parts({.seed = 3}), resumed({.seed = 4});
  auto const at_start = buffers_of(at_once);
  REQUIRE(at_start.size() == of_data_alone + of_weights);
  plain.train(flushed);
  at_once.train(views);
  CHECK(same_numbers(moved_by_data(at_once), moved_by_data(plain)));
  auto const now = buffers_of(at_once);
  for (std::size_t i = 0; i < now.size(); ++i) CHECK(now[i] != at_start[i]);

  temporary_folder const folder;
  auto const some = [&](int first, int end) {
    return std::vector(views.begin() + first, views.begin() + end);
  };
  in_parts.train(some(0, 4));
  in_parts.save(folder.file("a"));
  resumed.train(some(1, 4));
  resumed.load(folder.file("a"));
  in_parts.train(some(4, 9));
  resumed.train(some(4, 9));
  CHECK(same_numbers(laws::snapshot(resumed).values, laws::snapshot(in_parts).values));
  if (keeps_versions)
    CHECK(same_numbers(laws::snapshot(at_once).values, laws::snapshot(in_parts).values));

  plain.step(flushed[1]), at_once.step(views[1]);
  plain.train(flushed), at_once.train(views);
  CHECK(same_numbers(moved_by_data(at_once), moved_by_data(plain)));
}

/// Gradients of the first layer that no weight changes, if all targets are equal and gamma is 0;
/// then the weights after each step are known, and with them the activations of all versions.
struct Moving : Model<Input<2, 3>, Linear<3, NoBias>, Residual<BatchNorm>, Frozen<Linear<3>>,
                      Frozen<Linear<3>>, Frozen<Linear<2>>, laws::Slope> {};
constexpr int width = 3;
using matrix = std::vector<double>;  // [width, width]

/// The version that the forward of micro-batch k reads on the first of p stages, in updates; what
/// it is predicted for, if it is.
struct read {
  long version, predicted;
};
template <class Family>
constexpr read (*read_by)(long k, long p, long a) = nullptr;
constexpr long from_zero(long n) { return n < 0 ? 0 : n; }
constexpr read stashed(long k, long p, long a) {
  long const version = from_zero(k - (p - 1)) / a;
  return {version, version};
}
template <bool Synchronised>
constexpr auto read_by<PipeDream<Synchronised>> = &stashed;
template <>
constexpr auto read_by<PACI<>> = &stashed;
template <>
constexpr auto read_by<PipeDream2BW<>> =
    +[](long k, long, long a) -> read { return {from_zero(k / a - 1), from_zero(k / a - 1)}; };
template <>
constexpr auto read_by<PACI<0, true>> =
    +[](long k, long p, long a) -> read { return {stashed(k, p, a).version, k / a}; };

/// Running statistics behind the moving layer, by mini-batches of its results.
struct running {
  static constexpr double momentum = 0.1;
  double mean[width]{}, variance[width]{1, 1, 1};
  void follow(std::vector<double> const& y) {
    long const n = long(y.size()) / width;
    for (int c = 0; c < width; ++c) {
      double sum = 0, squares = 0;
      for (long r = 0; r < n; ++r) sum += y[std::size_t(width * r + c)];
      for (long r = 0; r < n; ++r)
        squares += std::pow(y[std::size_t(width * r + c)] - sum / double(n), 2);
      mean[c] += momentum * (sum / double(n) - mean[c]);
      variance[c] += momentum * (squares / double(n - 1) - variance[c]);
    }
  }
};

template <class... Options>
using Moved = Pipeline<Moving, PortableHost, FP64, SGD, MicroBatchSize<2>, Options...>;
template <class Trainer>
Trainer moved_trainer() {
  typename Trainer::settings s{.seed = 7};
  s.optimizer.learning_rate = 0.2;
  Trainer t(s);
  for (auto& p : t.parameters())
    if (p.name == "1.0.weight") std::fill(p.values.begin(), p.values.end(), 0);
  t.parameters_changed();
  return t;
}
template <class Trainer>
matrix first_weights(Trainer& t) {
  auto const p = t.parameters();
  return {p[0].values.begin(), p[0].values.end()};
}

/// Running statistics are those of what each micro-batch was, and stand in no other relation to the
/// versions that it read.
template <class Family, int A>
void are_of_what_was_read() {
  constexpr int stages = 3, steps = 8;
  using Flushed = Moved<MicroBatches<A>>;
  using Free = Moved<MicroBatches<A>, Stages<stages>, Family>;
  INFO(Free::plan().schedule << ", " << A << " micro-batches");
  std::vector<sample_batch<Flushed>> data;
  std::vector<typename Flushed::batch> flushed;
  std::vector<typename Free::batch> views;
  for (int i = 0; i < steps; ++i) data.emplace_back(std::uint64_t(30 + i));
  for (auto& d : data) {
    std::fill(d.labels.begin(), d.labels.end(), 0.5);
    long const samples = Flushed::samples - (&d - data.data()) % 2;
    flushed.push_back(d.view(samples));
    views.push_back(d.template view<Free>(samples));
  }
  auto plain = moved_trainer<Flushed>();
  auto free = moved_trainer<Free>();
  std::vector<matrix> versions{first_weights(plain)};
  for (auto const& batch : flushed) plain.step(batch), versions.push_back(first_weights(plain));
  free.train(views);
  auto const last = first_weights(free);
  for (std::size_t i = 0; i < last.size(); ++i)
    CHECK(last[i] == Approx(versions.back()[i]).epsilon(1e-12));

  running expected;
  for (long n = 0; n < steps; ++n) {
    auto const& x = views[std::size_t(n)].inputs;
    std::vector<double> y;
    for (std::size_t row = 0; row < x.size() / width; ++row) {
      long const k = n * A + long(row) / 4;  // two samples of two positions in a micro-batch
      read const by = read_by<Family>(k, stages, A);
      for (std::size_t c = 0; c < width; ++c) {
        double sum = 0;
        for (std::size_t i = 0; i < width; ++i) {
          double w = versions[std::size_t(by.version)][i * width + c];
          if (by.version > 0)
            w += double(by.predicted - by.version) *
                 (w - versions[std::size_t(by.version - 1)][i * width + c]);
          sum += double(x[row * width + i]) * w;
        }
        y.push_back(sum);
      }
    }
    expected.follow(y);
  }
  auto const found = buffers_of(free), with_flush = buffers_of(plain);
  REQUIRE(found.size() == 2 * width);
  for (std::size_t c = 0; c < width; ++c) {
    CHECK(found[c] == Approx(expected.mean[c]).epsilon(1e-10));
    CHECK(found[width + c] == Approx(expected.variance[c]).epsilon(1e-10));
    CHECK(found[c] != Approx(with_flush[c]).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("mini-batches move buffers once without a flush", "[laws][batch_norm]") {
  follow_mini_batches<PipeDream<>, 1>();
  follow_mini_batches<PipeDream<true>, 2, true, RecomputeAll, HostThreads<2>>();
  follow_mini_batches<PipeDream2BW<>, 3>();
  follow_mini_batches<PACI<>, 2, false>();
  follow_mini_batches<PACI<0, true>, 2, false>();
  follow_mini_batches<PipeDream<>, 1, true, GradientAccumulation<2>>();
}
TEST_CASE("running statistics are of the activations by older weights", "[laws][batch_norm]") {
  are_of_what_was_read<PipeDream<>, 1>();
  are_of_what_was_read<PipeDream<>, 3>();
  are_of_what_was_read<PipeDream<true>, 2>();
  are_of_what_was_read<PipeDream2BW<>, 2>();
  are_of_what_was_read<PACI<>, 2>();
  are_of_what_was_read<PACI<0, true>, 1>();
}
TEST_CASE("one stage without a flush has the buffers of one with it", "[laws][batch_norm]") {
  using Flushed = Pipeline<Net, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>>;
  laws::same_runs<
      Flushed, Pipeline<Net, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, PipeDream<>>>(
      0);
}
