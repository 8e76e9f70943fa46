// SPDX-License-Identifier: BSL-1.0
//
// Batch norms by the statistics of groups of samples: the bits of micro-batches of that size,
// whatever the size of micro-batches is, and however they are cut, scheduled and shared out.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include "laws/bit_law.hpp"
#include "laws/gradient_law.hpp"

using namespace pp;
using laws::sample_batch, laws::same_numbers, laws::snapshot;

namespace {

/// Only norms learn: the gradient of a matrix is a sum over a micro-batch, whose rounding depends
/// on its size.
template <class... Over>
struct Net : Model<Input<2, 3>, BatchNormWith<Over...>, Tanh, Frozen<Linear<5, NoBias>>,
                   BatchNormWith<Momentum<1, 2>, BiasedVariance, Over...>, ReLU, Frozen<Linear<9>>,
                   Residual<BatchNormWith<Over...>, GELU>, Frozen<Linear<2>>, MSE> {};
template <int Count, int Size, class... More>
using Of = Pipeline<Net<SyncOver<2>>, PortableHost, AdamW, MicroBatches<Count>,
                    MicroBatchSize<Size>, More...>;
template <class... More>
using Plain = Pipeline<Net<>, PortableHost, AdamW, MicroBatches<8>, MicroBatchSize<2>, More...>;

/// Mini-batches of 16, 11 and 3 samples: the last group may be partial, others absent.
template <class One, class Many>
void same_bits(std::uint64_t seed) {
  static_assert(One::samples == 16 && Many::samples == 16);
  One one({.seed = seed, .clip_norm = 0.1});
  Many many({.seed = seed, .clip_norm = 0.1});
  auto const start = snapshot(one).values;
  for (long samples : {16, 11, 3}) {
    sample_batch<One> const data(seed + std::uint64_t(samples));
    auto const ours = data.view(samples);
    auto const theirs = data.template view<Many>(samples);
    INFO(samples << " samples in micro-batches of " << Many::plan().micro_batch_size);
    one.gradients(ours);
    many.gradients(theirs);
    CHECK(same_numbers(snapshot(one).gradients, snapshot(many).gradients));
    auto const a = one.step(ours), b = many.step(theirs);
    CHECK(std::isfinite(a.loss));
    CHECK(a.loss == Approx(b.loss).epsilon(1e-6));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(same_numbers(snapshot(one).values, snapshot(many).values));
    std::vector<float> x(std::size_t(samples * One::outputs_per_sample)), y(x.size());
    one.forward(ours, x);
    many.forward(theirs, y);
    CHECK(same_numbers(x, y));
  }
  CHECK(!same_numbers(snapshot(one).values, start));
}

/// The last norm has one number for each sample and channel.
// [model]
struct Mixed : Model<Input<6, 3>, Linear<4, NoBias>, BatchNormWith<SyncOver<2>>, Tanh, MeanPool,
                     Linear<3, NoBias>, BatchNormWith<SyncOver<4>, Epsilon<1, 10>, NoAffine>,
                     Linear<2>, MSE> {};
using mixed = Pipeline<Mixed, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<8>>;
// [/model]

static_assert(Net<SyncOver<0>>::graph.ops[0].attributes.batch() ==
              Net<>::graph.ops[0].attributes.batch());

}  // namespace

TEST_CASE("SyncOver has the bits of micro-batches of its size", "[laws][batch_norm]") {
  same_bits<Plain<>, Of<1, 16, HostThreads<3>>>(3);
  same_bits<Plain<>, Of<2, 8, Stages<4>, Interleaved<2>, RecomputeAll>>(4);
  same_bits<Plain<>, Of<4, 4, StageReplicas<2, 1>>>(5);
}
TEST_CASE("leaves of SyncOver have the bits of leaves of its size", "[laws][batch_norm]") {
  using leaves = Pipeline<Net<>, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, SumIn<2>>;
  same_bits<leaves, Of<1, 8, SumIn<2>>>(7);
}
TEST_CASE("gradients through groups of samples are central differences", "[laws][batch_norm]") {
  auto const r = laws::compare_with_differences<mixed>(1);
  INFO("parameter " << r.worst_parameter);
  CHECK(r.worst < 1e-7);
  CHECK(r.smallest > 1e-6);
}
TEST_CASE("a group of one number in a channel is refused", "[laws][batch_norm]") {
  mixed t;
  sample_batch<mixed> const data(3);
  CHECK_THROWS_WITH(t.step(data.view(13)),
                    Catch::Contains("the last group of SyncOver of 13 samples would have 1"));
  CHECK(std::isfinite(t.step(data.view(14)).loss));
}
