// SPDX-License-Identifier: BSL-1.0
//
// The bit law over recompute policies, and over mini-batches with fewer samples than planned.
#include "catch.hpp"

#include <algorithm>
#include <cmath>

#include "laws/bit_law.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

struct Words : Model<Tokens<11, 4>, Named<"table", Embedding<6>>, Positions, Stash<"begin">,
                     Repeat<2, Residual<LayerNorm, Attention<2>>,
                            Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>>>,
                     SiLU, Pop<"begin">, LayerNorm, Tied<"table">, CrossEntropy> {};
struct Numbers : Model<Input<2, 3>, Linear<5>, Tanh, Linear<4>, Positions, ReLU, Linear<3>, MSE> {};

using laws::Small;

}  // namespace

TEST_CASE("recomputation gives the bits of keeping", "[laws]") {
  laws::options_keep_the_bits<Words, 4, RecomputeAll>();
  laws::options_keep_the_bits<Words, 4, RecomputeAll, GPipe, Stages<4>>();
  laws::options_keep_the_bits<Words, 5, RecomputeAllButLast, Stages<3>>();
  laws::options_keep_the_bits<Words, 5, RecomputeAllButLast, GPipe,
                              Stages<Words::graph.size.units>>();
  laws::options_keep_the_bits<Words, 4, Recompute<op_kind::attention, op_kind::norm>, Stages<4>>();
  laws::options_keep_the_bits<Words, 4, Recompute<op_kind::map, op_kind::matmul>, Stages<3>>();
  laws::options_keep_the_bits<Numbers, 4, RecomputeAll, Stages<6>>();
}
TEST_CASE("recomputation with B and W apart gives the bits of keeping", "[laws]") {
  laws::options_keep_the_bits<Words, 5, RecomputeAll, laws::LastWeights, Stages<3>>();
  laws::options_keep_the_bits<Words, 5, RecomputeAllButLast, laws::MixedWeights, Stages<4>>();
  laws::options_keep_the_bits<Words, 4, Recompute<op_kind::bias>,
                              laws::ManyChunks<schedules::placement::loop, 2, true>, Stages<4>>();
  laws::options_keep_the_bits<Numbers, 4, RecomputeAll, laws::LateWeights, Stages<3>>();
}

namespace {

/// The real samples alone, one by one: micro-batches of one sample, as many as there are.
template <class M, int Samples, class Many>
void only_real_samples_count() {
  using Alone = Pipeline<M, PortableHost, SGD, MicroBatches<Samples>>;
  typename Alone::settings const a{.seed = 4};
  Alone alone(a);
  Many many(typename Many::settings{.seed = 4});
  laws::sample_batch<Many> const data(8);
  for (int step = 0; step < 2; ++step) {
    auto const expected = alone.step(data.template view<Alone>(Samples));
    auto const found = many.step(data.view(Samples));
    CHECK(found.loss == Approx(expected.loss).epsilon(1e-6));
    CHECK(found.gradient_norm == Approx(expected.gradient_norm).epsilon(1e-5));
    auto const x = laws::snapshot(alone);
    auto const y = laws::snapshot(many);
    double far = 0, size = 0;
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      far = std::max(far, std::fabs(double(x.gradients[i]) - double(y.gradients[i])));
      size = std::max(size, std::fabs(double(x.gradients[i])));
    }
    CHECK(far < 1e-6 * size);
    CHECK(many.evaluate(data.view(Samples)) ==
          Approx(alone.evaluate(data.template view<Alone>(Samples))).epsilon(1e-6));
    std::vector<float> one(std::size_t(Samples * Many::outputs_per_sample)), other(one.size());
    alone.forward(data.template view<Alone>(Samples), one);
    many.forward(data.view(Samples), other);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i] == Approx(other[i]).margin(1e-5));
  }
}
template <class M, int Samples>
void partial() {
  only_real_samples_count<M, Samples,
                          Pipeline<M, PortableHost, SGD, MicroBatches<4>, MicroBatchSize<3>>>();
  only_real_samples_count<M, Samples,
                          Pipeline<M, PortableHost, SGD, MicroBatches<4>, MicroBatchSize<3>,
                                   Stages<3>, RecomputeAll>>();
}

}  // namespace

TEST_CASE("a partial mini-batch has the loss and gradients of its samples", "[laws]") {
  partial<Words, 1>();
  partial<Words, 7>();
  partial<Numbers, 11>();
  partial<Numbers, 6>();
}
TEST_CASE("a partial mini-batch gives the bits of one stage", "[laws]") {
  using one = Small<Words, MicroBatches<4>>;
  using many = Small<Words, MicroBatches<4>, Stages<5>, laws::LateWeights>;
  one a;
  many b;
  laws::sample_batch<one> const data(3);
  for (long const samples : {5, 8, 1, 6}) {
    auto const x = a.step(data.view(samples));
    auto const y = b.step(data.view<many>(samples));
    CHECK(laws::same_bits(x.loss, y.loss));
    CHECK(laws::same_bits(x.gradient_norm, y.gradient_norm));
    CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
  }
}
TEST_CASE("a mini-batch of no samples or too many is refused", "[laws]") {
  Small<Numbers, MicroBatches<2>> t;
  std::vector<float> const x(5 * 6), y(5 * 6);
  CHECK_THROWS_AS(t.step({std::span(x).first(0), std::span(y).first(0)}), data_error);
  CHECK_THROWS_AS(t.step({x, y}), data_error);
  CHECK_THROWS_AS(t.step({std::span(x).first(7), y}), data_error);
  CHECK_THROWS_AS(t.step({std::span(x).first(12), std::span(y).first(6)}), data_error);
}
