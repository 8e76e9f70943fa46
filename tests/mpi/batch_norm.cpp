// SPDX-License-Identifier: BSL-1.0
//
// Convolutions and batch norms over processes: the bits of one process, and running statistics that
// each step writes once, from the mini-batch of all replicas, also where steps overlap or are late.
#include "mpi/alike.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <pipe/loose/delayed_replica.hpp>
#include <pipe/schedule/catalog/families.hpp>

#include "message_of.hpp"

using namespace pp;

namespace {

/// A convolution whose filters replicas divide, and each rule of running statistics.
struct Net : Model<Input<3, 4, 3>, BatchNorm, Conv2d<40, 3, Padding<1>, NoBias>,
                   With<BatchNorm, NoAffine>, ReLU,
                   Residual<Conv2d<40, 3, Groups<40>, Padding<1>, NoBias>,
                            With<BatchNorm, Momentum<1, 2>, BiasedVariance>, Tanh>,
                   Conv2d<100, 3, Stride<2>>, Tanh, Flatten, Linear<3>, CrossEntropy> {};
template <class... More>
using Of = Pipeline<Net, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>, More...>;
using One = Of<GradientAccumulation<8>>;
/// Accumulations of one micro-batch: replicas may divide gradients and parameters.
template <class... More>
using Divided = Pipeline<Net, PortableHost, AdamW, MicroBatches<1>, MicroBatchSize<2>,
                         GradientAccumulation<8>, More...>;

/// Mini-batches of all accumulations, of one accumulation that is not full, of some accumulations.
long samples_of(std::size_t i) { return i % 3 == 1 ? 3 : i % 3 == 2 ? 21 : One::samples; }

/// What training shows.
struct history {
  std::vector<double> losses, norms;
  std::string error;
  template <class Trainer>
  void train(Trainer& trainer, std::vector<laws::sample_batch<One>> const& all) {
    std::vector<typename Trainer::batch> batches;
    for (std::size_t i = 0; i < all.size(); ++i)
      batches.push_back(all[i].template view<Trainer>(samples_of(i)));
    error = message_of<not_finite>([&] {
      trainer.train(batches, [&](step_result const& r) {
        losses.push_back(r.loss), norms.push_back(r.gradient_norm);
      });
    });
  }
  bool operator==(history const&) const = default;
};

/// The running statistics of the first layer, in double.
struct running {
  double mean[3]{}, variance[3]{1, 1, 1};
  /// Follows a mini-batch of n rows of three channels.
  void follow(std::vector<float> const& x, std::size_t n) {
    for (std::size_t c = 0; c < 3; ++c) {
      double sum = 0, squares = 0;
      for (std::size_t r = 0; r < n; ++r) sum += double(x[3 * r + c]);
      double const found = sum / double(n);
      for (std::size_t r = 0; r < n; ++r) squares += std::pow(double(x[3 * r + c]) - found, 2);
      mean[c] += 0.1 * (found - mean[c]);
      variance[c] += 0.1 * (squares / double(n - 1) - variance[c]);
    }
  }
  template <class Trainer>
  void check(Trainer& t) const {
    auto const all = t.parameters();
    REQUIRE(all[2].name == "0.running_mean");
    REQUIRE(all[3].name == "0.running_var");
    for (std::size_t c = 0; c < 3; ++c) {
      CHECK(double(all[2].values[c]) == Approx(mean[c]).margin(2e-7).epsilon(1e-6));
      CHECK(double(all[3].values[c]) == Approx(variance[c]).epsilon(1e-6));
    }
  }
};

}  // namespace

TEST_CASE("convolutions and batch norms in replicas have the bits of one process") {
  processes::trains_alike<One, Of<GradientAccumulationBySpeed<8, 8>, Between, ZeRO<1>>>(
      Between::process() + 1);
  processes::trains_alike<
      One, Of<GradientAccumulation<8>, Between, Stages<2>, ZeroBubbleH1, HostThreads<2>>>();
  processes::trains_alike<
      One, Of<GradientAccumulation<8>, Between, Stages<4>, Interleaved<2>, RecomputeAll>>();
  processes::trains_alike<Divided<>, Divided<Between, Stages<2>, ZeRO<3>>>();
}
TEST_CASE("running statistics keep up where steps of replicas overlap") {
  std::vector<laws::sample_batch<One>> all;
  for (std::size_t i = 0; i < 9; ++i) all.emplace_back(100 + i);
  for (int const bad : {-1, 4}) {
    if (bad >= 0) all[std::size_t(bad)].inputs[1] = std::numeric_limits<float>::infinity();
    for (double const clip : {0., 1.}) {
      INFO("clip_norm " << clip << ", bad " << bad << ", process " << Between::process());
      One one({.seed = 3, .clip_norm = clip});
      Of<GradientAccumulation<8>, Between, Stages<2>, Steady<OneFOneB>> many(
          {.seed = 3, .clip_norm = clip});
      history a, b;
      a.train(one, all);
      b.train(many, all);
      CHECK(a == b);
      CHECK(processes::same_parameters(one, many));
    }
  }
}
TEST_CASE("replicas a step late write running statistics of whole mini-batches", "[any]") {
  using Trainer = Of<Stages<2>>;
  Trainer trainer({.seed = 3});
  delayed_replica<Trainer, Between> replica(trainer);
  running expected;
  expected.check(trainer);
  std::vector<float> before;
  for (std::uint64_t step = 0; step < 9; ++step) {
    laws::sample_batch<One> data(step);
    for (float& x : data.inputs) x = 3 * x + float(step);
    std::size_t const samples = step % 4 == 2 ? 3 : std::size_t(replica.batch_samples());
    if (replica.step(data.view<Trainer>(long(samples)))) expected.follow(before, before.size() / 3);
    expected.check(trainer);
    before.assign(data.inputs.begin(), data.inputs.begin() + std::ptrdiff_t(36 * samples));
    if (step != 5) continue;
    replica.settle();
    expected.follow(before, before.size() / 3);
    expected.check(trainer);
  }
}
