// SPDX-License-Identifier: BSL-1.0
//
// Batch norms inside reversible blocks, which backward computes again: gradients are those of
// stored values within rounding, and so are running statistics, which move once a step; bits do not
// depend on cuts, schedules and recomputation.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "laws/buffers_of.hpp"
#include "laws/layer_laws.hpp"
#include "laws/overlap_law.hpp"
#include "laws/stored.hpp"

using namespace pp;
using laws::buffers_of;
using laws::Stored;

namespace {

using F = Seq<BatchNorm, Linear<5>, GELUTanh, Linear<4>>;
using G = Seq<Linear<6, NoBias>, With<BatchNorm, Momentum<1, 2>, NoAffine>, Tanh, Linear<4>>;

/// Blocks that read the input of the model, another block, and another layer.
template <template <class> class As>
struct Of : Model<Input<3, 8>, As<Reversible<F, G>>, As<Reversible<G, F>>, Tanh,
                  Repeat<2, As<Reversible<F, SiLU>>>, Linear<2>, MSE> {};
template <class Block>
using Made = Block;
using Again = Of<Made>;

template <class M, class... More>
using Small = Pipeline<M, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;

/// How far two lists are apart, relative to the largest number of the second one.
double apart(std::vector<float> const& a, std::vector<float> const& b) {
  REQUIRE(a.size() == b.size());
  double furthest = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    furthest = std::max(furthest, double(std::fabs(a[i] - b[i])));
    largest = std::max(largest, double(std::fabs(b[i])));
  }
  CHECK(largest > 0.01);
  return furthest / largest;
}

}  // namespace

TEST_CASE("gradients through batch norms in reversible blocks are central differences", "[laws]") {
  laws::gradients_are_differences<Again>(1);
}
TEST_CASE("batch norms in reversible blocks are those of stored values", "[laws]") {
  Small<Again> again({.seed = 1});
  Small<Of<Stored>> stored({.seed = 1});
  laws::copy_parameters(again, stored);
  std::vector<float> before = buffers_of(again);
  for (long const samples : {8, 5, 2}) {
    INFO(samples << " samples");
    laws::sample_batch<Small<Again>> const batch{std::uint64_t(samples)};
    auto const ours = batch.view(samples);
    auto const theirs = batch.view<Small<Of<Stored>>>(samples);
    CHECK(laws::same_bits(again.gradients(ours).loss, stored.gradients(theirs).loss));
    CHECK(apart(laws::snapshot(again).gradients, laws::snapshot(stored).gradients) < 1e-5);
    CHECK(laws::same_numbers(buffers_of(again), before));
    again.step(ours);
    stored.step(theirs);
    CHECK(apart(buffers_of(again), buffers_of(stored)) < 1e-6);
    CHECK(apart(buffers_of(again), before) > 0.01);
    CHECK(apart(laws::snapshot(again).values, laws::snapshot(stored).values) < 1e-4);
    laws::copy_parameters(stored, again);
    before = buffers_of(again);
  }
}
TEST_CASE("cuts, schedules and recomputation change no bit of batch norms in reversible blocks",
          "[laws]") {
  constexpr int units = Again::graph.size.units;
  static_assert(units == 6);
  // Mini-batches of 8, 5 and 2 samples.
  laws::same_as_one_stage<Small<Again>,
                          Small<Again, Stages<units>, laws::LateWeights,
                                Recompute<op_kind::batch_statistics, op_kind::batch_norm>>>(5, 3,
                                                                                            3);
  laws::same_as_one_stage<Small<Again>,
                          Small<Again, Stages<4>, Interleaved<2>, RecomputeAll, HostThreads<2>>>(
      5, 3, 3);
}
TEST_CASE("batch norms in reversible blocks keep up where steps overlap", "[laws]") {
  for (double const clip : {0., 1.4})  // the latter: of some steps
    laws::same_runs<Small<Again>, Small<Again, Steady<OneFOneB>, Stages<3>>>(clip);
}
