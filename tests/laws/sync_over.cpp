// SPDX-License-Identifier: BSL-1.0
//
// Batch norms by the statistics of groups of samples: the bits of micro-batches of that size,
// whatever the size of micro-batches is, and however they are cut, scheduled and shared out.
#include "catch.hpp"

#include <cmath>

#include "laws/bit_law.hpp"
#include "laws/gradient_law.hpp"
#include "laws/sync_over.hpp"

using namespace pp;
using laws::sample_batch;

namespace {

using laws::Normed;
template <int Count, int Size, class... More>
using Of = Pipeline<Normed<SyncOver<2>>, PortableHost, AdamW, MicroBatches<Count>,
                    MicroBatchSize<Size>, More...>;
template <class... More>
using Plain = Pipeline<Normed<>, PortableHost, AdamW, MicroBatches<8>, MicroBatchSize<2>, More...>;

/// The last norm has one number for each sample and channel.
// [model]
struct Mixed : Model<Input<6, 3>, Linear<4, NoBias>, With<BatchNorm, SyncOver<2>>, Tanh, MeanPool,
                     Linear<3, NoBias>, With<BatchNorm, SyncOver<4>, Epsilon<1, 10>, NoAffine>,
                     Linear<2>, MSE> {};
using mixed = Pipeline<Mixed, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<8>>;
// [/model]

static_assert(Normed<SyncOver<0>>::graph.ops[0].attributes.batch() ==
              Normed<>::graph.ops[0].attributes.batch());

}  // namespace

TEST_CASE("SyncOver has the bits of micro-batches of its size", "[laws][batch_norm]") {
  laws::same_as_groups<Plain<>, Of<1, 16, HostThreads<3>>>(3);
  laws::same_as_groups<Plain<>, Of<2, 8, Stages<4>, Interleaved<2>, RecomputeAll>>(4);
  laws::same_as_groups<Plain<>, Of<4, 4, StageReplicas<2, 1>>>(5);
}
TEST_CASE("accumulations of SyncOver have the bits of accumulations of its size",
          "[laws][batch_norm]") {
  using accumulations = Pipeline<Normed<>, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>,
                                 GradientAccumulation<2>>;
  laws::same_as_groups<accumulations, Of<1, 8, GradientAccumulation<2>>>(7);
}
TEST_CASE("gradients through groups of samples are central differences", "[laws][batch_norm]") {
  laws::gradients_hold<mixed>(1);
}
TEST_CASE("a group of one number in a channel is refused", "[laws][batch_norm]") {
  mixed t;
  sample_batch<mixed> const data(3);
  CHECK_THROWS_WITH(t.step(data.view(13)),
                    Catch::Contains("the last group of SyncOver of 13 samples would have 1"));
  CHECK(std::isfinite(t.step(data.view(14)).loss));
}
