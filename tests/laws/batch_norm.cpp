// SPDX-License-Identifier: BSL-1.0
//
// Batch norm: gradients within a micro-batch, running statistics that each step writes once, from
// the whole mini-batch, and the bits of one stage however a model is cut, scheduled and recomputed.
#include "catch.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "laws/buffers_of.hpp"
#include "laws/layer_laws.hpp"

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/weights/weights.hpp>

using namespace pp;
using laws::buffers_of;
using laws::sample_batch;

namespace {

/// Biases before a batch norm have no gradient, so there are none.
struct Net
    : Model<Input<2, 3>, BatchNorm, Tanh, Linear<5, NoBias>, BatchNorm, ReLU, Linear<19>, Tanh,
            Residual<With<BatchNorm, NoAffine>, GELUTanh>, Linear<4, NoBias>,
            With<BatchNorm, Momentum<1, 2>, Epsilon<1, 100>, BiasedVariance>, Linear<2>, MSE> {};
template <class... More>
using Of = Pipeline<Net, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;
using one = Of<>;

// [model]
struct Images : Model<Input<4, 4, 3>,                      // (H, W, C)
                      Linear<8, NoBias>, BatchNorm, ReLU,  // (4, 4, 8)
                      Residual<Linear<8, NoBias>, BatchNorm, ReLU, Linear<8, NoBias>, BatchNorm>,
                      ReLU, MeanPool, Linear<10>, CrossEntropy> {};
// [/model]

/// Without positions: a micro-batch has one number for each sample and channel.
struct Rows : Model<Input<3>, Linear<4, NoBias>, Frozen<BatchNorm>, Tanh, Linear<3, NoBias>,
                    BatchNorm, Linear<2>, MSE> {};
using rows = Pipeline<Rows, PortableHost, SGD, MicroBatches<2>, MicroBatchSize<3>>;

/// The running statistics of the first layer, in double.
struct running {
  double mean[3]{}, variance[3]{1, 1, 1};
  /// Follows a mini-batch of n rows, the third of which are columns of x.
  void follow(std::vector<float> const& x, long n) {
    for (int c = 0; c < 3; ++c) {
      double sum = 0, squares = 0;
      for (long r = 0; r < n; ++r) sum += double(x[std::size_t(3 * r + c)]);
      for (long r = 0; r < n; ++r)
        squares += std::pow(double(x[std::size_t(3 * r + c)]) - sum / double(n), 2);
      mean[c] += 0.1 * (sum / double(n) - mean[c]);
      variance[c] += 0.1 * (squares / double(n - 1) - variance[c]);
    }
  }
  template <class Trainer>
  void check(Trainer& t) const {
    for (auto const& p : t.parameters())
      for (std::size_t c = 0; c < 3; ++c) {
        if (p.name == "0.running_mean")
          CHECK(double(p.values[c]) == Approx(mean[c]).margin(2e-7).epsilon(1e-6));
        if (p.name == "0.running_var")
          CHECK(double(p.values[c]) == Approx(variance[c]).epsilon(1e-6));
      }
  }
};

}  // namespace

TEST_CASE("gradients of batch norms are central differences", "[laws][batch_norm]") {
  laws::gradients_are_differences<Net>(1);
  laws::gradients_are_differences<Rows>(2);
}

TEST_CASE("batch norms have the bits of one stage", "[laws][batch_norm]") {
  // Mini-batches of 8, 5 and 2 samples.
  constexpr int units = Net::graph.size.units;
  laws::same_as_one_stage<one, Of<Stages<units>, laws::LateWeights, RecomputeAll>>(7, 3, 3);
  laws::same_as_one_stage<one, Of<Stages<4>, Interleaved<2>, RecomputeAllButLast, HostThreads<3>>>(
      7, 3, 3);
  laws::same_as_one_stage<
      one, Of<Stages<4>, ZeroBubbleV, Recompute<op_kind::batch_statistics, op_kind::batch_norm>>>(
      7, 3, 3);
}

TEST_CASE("a step moves running statistics once, by those of its mini-batch",
          "[laws][batch_norm]") {
  one t({.seed = 3});
  running expected;
  for (long samples : {8, 8, 5, 1}) {  // the last micro-batch may be partial, others absent
    sample_batch<one> data(std::uint64_t(samples + 3));
    for (float& x : data.inputs) x = 3 * x + 2;
    t.step(data.view(samples));
    expected.follow(data.inputs, 2 * samples);
    expected.check(t);
  }
  // Accumulated mini-batches are one.
  sample_batch<one> const first(7), second(8);
  t.accumulate(first.view());
  t.step(second.view(3));
  std::vector<float> x = first.inputs;
  x.insert(x.end(), second.inputs.begin(), second.inputs.begin() + 3 * 6);
  expected.follow(x, 22);
  expected.check(t);
}

TEST_CASE("a biased variance is that of torchgpipe's deferred batch norm", "[laws][batch_norm]") {
  // x = i^1.5, i = 0 ... 11, in three micro-batches; torchgpipe moves the statistics after the
  // last.
  auto const moves = []<class Norm>(Norm, double mean, double variance) {
    struct Net : Model<Input<1>, Norm, Linear<1>, MSE> {};
    Pipeline<Net, PortableHost, MicroBatches<3>, MicroBatchSize<4>, Stages<2>, RecomputeAll, SGD> t;
    std::vector<float> x(12), labels(12);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(std::pow(double(i), 1.5));
    t.step({x, labels});
    std::vector<float> const found = buffers_of(t);
    REQUIRE(found.size() == 2);
    CHECK(double(found[0]) == Approx(mean).epsilon(1e-6));
    CHECK(double(found[1]) == Approx(variance).epsilon(1e-6));
  };
  moves(With<BatchNorm, BiasedVariance>{}, 1.492960, 14.910708);
  moves(BatchNorm{}, 1.492960, 16.184409);
}

TEST_CASE("accumulations are one mini-batch of running statistics", "[laws][batch_norm]") {
  using accumulations = Of<GradientAccumulation<2>>;
  accumulations t({.seed = 3});
  running expected;
  for (long samples : {16, 11, 8}) {
    sample_batch<accumulations> const data(std::uint64_t(samples + 1));
    t.step(data.view(samples));
    expected.follow(data.inputs, 2 * samples);
    expected.check(t);
  }
}

TEST_CASE("samples that are filled up change nothing in a batch norm", "[laws][batch_norm]") {
  using planned = Pipeline<Net, PortableHost, AdamW, MicroBatchSize<5>>;
  using exact = Pipeline<Net, PortableHost, AdamW, MicroBatchSize<3>>;
  planned a({.seed = 3});
  exact b({.seed = 3});
  sample_batch<planned> const data(9);
  for (int step = 0; step < 2; ++step) {
    double const loss = a.step(data.view(3)).loss;
    CHECK(loss == Approx(b.step(data.view<exact>(3)).loss).epsilon(1e-6));
  }
  auto const found = laws::snapshot(a).values, expected = laws::snapshot(b).values;
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-4).margin(1e-6));
}

TEST_CASE("large means and many rows lose few digits", "[laws][batch_norm]") {
  struct Wide : Model<Input<512, 1>, BatchNorm, Linear<1>, MSE> {};
  using wide = Pipeline<Wide, PortableHost, SGD, MicroBatches<2>, MicroBatchSize<4>>;
  wide t;
  sample_batch<wide> data(5);
  for (float& x : data.inputs) x += 1000;
  double sum = 0, squares = 0;
  for (float x : data.inputs) sum += double(x);
  double const n = double(data.inputs.size());
  for (float x : data.inputs) squares += std::pow(double(x) - sum / n, 2);
  for (int step = 0; step < 200; ++step) t.step(data.view());
  auto const found = t.parameters();
  CHECK(double(found[2].values[0]) == Approx(sum / n).epsilon(1e-6));
  CHECK(double(found[3].values[0]) == Approx(squares / (n - 1)).epsilon(1e-3));
}

TEST_CASE("what is no step moves no running statistics", "[laws][batch_norm]") {
  laws::looking_changes_nothing<one>(4);
  one t({.seed = 4});
  sample_batch<one> data(5), other(6);
  t.step(data.view());
  auto const before = buffers_of(t);
  t.gradients(other.view());
  t.accumulate(other.view());
  CHECK(buffers_of(t) == before);
  t.parameters_changed();  // forgets what was accumulated
  data.inputs[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(t.step(data.view()), not_finite);
  CHECK(buffers_of(t) == before);
}

TEST_CASE("evaluation and frozen layers use the running statistics", "[laws][batch_norm]") {
  rows t({.seed = 2});
  sample_batch<rows> const data(3);
  auto const frozen = [&] {
    std::vector<float> all;
    for (auto const& p : t.parameters())
      if (p.layer == 1) all.insert(all.end(), p.values.begin(), p.values.end());
    return all;
  };
  auto const before = frozen();
  REQUIRE(before.size() == 16);
  CHECK(t.evaluate(data.view()) != t.gradients(data.view()).loss);
  // One sample is enough outside of training, and gives what it gives among others.
  std::vector<float> alone(2), together(12);
  t.step(data.view());
  t.forward(data.view(1), alone);
  t.forward(data.view(), together);
  CHECK(alone == std::vector<float>(together.begin(), together.begin() + 2));
  CHECK(frozen() == before);
}

TEST_CASE("a micro-batch of one number in a channel is refused", "[laws][batch_norm]") {
  rows t;
  sample_batch<rows> const data(3);
  auto const message = Catch::Contains("the last micro-batch of 4 samples would have 1");
  CHECK_THROWS_WITH(t.step(data.view(4)), message);
  CHECK_THROWS_WITH(t.gradients(data.view(4)), message);
  CHECK_THROWS_AS(t.accumulate(data.view(1)), data_error);
  CHECK(std::isfinite(t.step(data.view(5)).loss));
}

TEST_CASE("a residual network with batch norms learns", "[laws][batch_norm]") {
  // [train]
  using Trainer =
      Pipeline<Images, PortableHost, AdamW, Stages<2>, MicroBatches<2>, MicroBatchSize<8>>;
  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  // [/train]
  sample_batch<Trainer> const data(1);
  double const first = trainer.step(data.view()).loss;
  for (int i = 0; i < 60; ++i) trainer.step(data.view());
  CHECK(trainer.step(data.view()).loss < 0.8 * first);
  CHECK(trainer.evaluate(data.view()) < 0.8 * first);
}

TEST_CASE("running statistics are in weight files under PyTorch's names", "[laws][batch_norm]") {
  one t({.seed = 1});
  sample_batch<one> const data(4);
  for (int i = 0; i < 2; ++i) t.step(data.view());
  std::vector<std::string> names;
  for (auto const& p : t.parameters())
    if (p.layer == 0) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "0.running_mean", "0.running_var"});
  auto const path = std::filesystem::temp_directory_path() / "pipe_batch_norm.safetensors";
  save_weights(t, path);
  one loaded;
  load_weights(loaded, path);
  std::filesystem::remove(path);
  CHECK(laws::same_numbers(laws::snapshot(loaded).values, laws::snapshot(t).values));
  CHECK(laws::same_bits(loaded.evaluate(data.view()), t.evaluate(data.view())));
}

TEST_CASE("a resumed run goes on with the running statistics", "[laws][batch_norm]") {
  Of<Stages<4>, Interleaved<2>, RecomputeAllButLast, HostThreads<3>> t({.seed = 1});
  sample_batch<one> const first(4), second(5);
  t.step(first.view<decltype(t)>());
  auto const path = std::filesystem::temp_directory_path() / "pipe_batch_norm.checkpoint";
  t.save(path.string());
  one resumed({.seed = 1});
  resumed.load(path.string());
  std::filesystem::remove(path);
  CHECK(buffers_of(resumed) == buffers_of(t));
  t.step(second.view<decltype(t)>(5));
  resumed.step(second.view(5));
  CHECK(laws::same_numbers(laws::snapshot(resumed).values, laws::snapshot(t).values));
}
