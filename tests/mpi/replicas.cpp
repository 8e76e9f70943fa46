// SPDX-License-Identifier: BSL-1.0
//
// Replicas: several processes for each rank. Whatever their number, the bits are those of one
// process that runs all accumulations of the mini-batch one after the other.
#include <string>
#include <vector>

#include <pipe/weights/weights.hpp>

#include "laws/everything.hpp"
#include "mpi/alike.hpp"
#include "mpi/folder.hpp"

using namespace pp;

namespace {

/// Accumulations of four samples, eight of which are a mini-batch.
template <class... More>
using Trained = Pipeline<laws::Everything, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>,
                         GradientAccumulation<8>, More...>;
/// Gradients of two buckets, the second of which is not full: 8.8 MB. Two losses.
struct Wide : Model<Input<1000>, Linear<2200>, Tanh, Stash<"late">, Linear<3>,
                    Losses<MSE, FurtherLoss<"kind", "late", Linear<2>, CrossEntropy>>> {};
template <class... More>
using OfWide = Pipeline<Wide, PortableHost, SGD, MicroBatches<1>, MicroBatchSize<1>,
                        GradientAccumulation<8>, More...>;

/// Every layer has parameters that replicas divide, and some that they do not.
struct Deep : Model<Tokens<300, 4>, Embedding<128>, Positions,
                    Repeat<3, Residual<LayerNorm, Attention<2>>,
                           Residual<LayerNorm, Linear<260>, GELUTanh, Linear<128>>>,
                    LayerNorm, Linear<300>, CrossEntropy> {};
template <class... More>
using OfDeep = Pipeline<Deep, PortableHost, AdamW, MicroBatches<1>, MicroBatchSize<1>,
                        GradientAccumulation<8>, More...>;
/// As Trained, by an optimizer.
template <class Optimizer, class... More>
using By = Pipeline<laws::Everything, PortableHost, Optimizer, MicroBatches<2>, MicroBatchSize<2>,
                    GradientAccumulation<8>, More...>;

template <class One, class Replicas>
void writes_alike() {
  One one({.seed = 3});
  Replicas many({.seed = 3}), other({.seed = 4});
  laws::sample_batch<One> const data(1);
  one.step(data.view(3));
  many.step(data.template view<Replicas>(3));
  std::string const own =
      processes::in_folder("replica") + "-" + std::to_string(Between::process());
  save_weights(one, own);
  save_weights(many, processes::in_folder("replicas"));
  CHECK(processes::bytes_of(own) == processes::bytes_of(processes::in_folder("replicas")));
  load_weights(other, processes::in_folder("replicas"));
  CHECK(processes::same_values(one, other));
}

}  // namespace

TEST_CASE("replicas give the bits of one process") {
  processes::trains_alike<Trained<>, Trained<Between>>();
  processes::trains_alike<Trained<>, Trained<Between, HostThreads<2>>>();
  processes::trains_alike<OfWide<>, OfWide<Between>>();
  processes::trains_alike<OfWide<>, OfWide<Between, Stages<2>, ZeroBubbleH1, RecomputeAll>>();
}
TEST_CASE("replicas of several ranks give the bits of one process") {
  processes::trains_alike<Trained<>, Trained<Between, Stages<2>, GPipe, RecomputeAll>>();
  processes::trains_alike<Trained<>, Trained<Between, Stages<4>>>();
  processes::trains_alike<Trained<>, Trained<Between, Stages<4>, Interleaved<2>>>();
  processes::trains_alike<Trained<>, Trained<Between, Stages<2>, ZeroBubbleH1>>();
}
TEST_CASE("replicas that divide the optimizer's state give the bits of one process") {
  processes::trains_alike<Trained<>, Trained<Between, ZeRO<1>>>();
  processes::trains_alike<Trained<>, Trained<Between, Stages<2>, ZeroBubbleH1, ZeRO<1>>>();
  processes::trains_alike<OfWide<>, OfWide<Between, ZeRO<1>>>();
  processes::trains_alike<OfWide<Averaging<9, 10>>, OfWide<Averaging<9, 10>, Between, ZeRO<1>>>();
}
TEST_CASE("replicas that divide gradients give the bits of one process") {
  processes::trains_alike<OfWide<>, OfWide<Between, ZeRO<2>>>();
  processes::trains_alike<OfWide<>,
                          OfWide<Between, ZeRO<2>, Stages<2>, ZeroBubbleH1, HostThreads<2>>>();
}
TEST_CASE("replicas that divide parameters give the bits of one process") {
  processes::trains_alike<OfDeep<>, OfDeep<Between, ZeRO<3>>>();
  processes::trains_alike<
      OfDeep<>, OfDeep<Between, ZeRO<3>, Stages<2>, ZeroBubbleH1, RecomputeAll, HostThreads<2>>>();
  processes::trains_alike<OfWide<>, OfWide<Between, ZeRO<3>>>();
}
TEST_CASE("a tensor that is updated as a whole has one owner") {
  processes::trains_alike<By<Muon>, By<Muon, Between, ZeRO<1>>>();
  processes::trains_alike<By<LAMB>, By<LAMB, Between, Stages<2>, ZeRO<1>>>();
}
TEST_CASE("without GradientAccumulation each replica is an accumulation") {
  using Replica =
      Pipeline<laws::Everything, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>, Between>;
  Replica many({.seed = 3});
  CHECK(many.accumulations() == Between::processes());
  CHECK(many.batch_samples() == 4 * Between::processes());
  Trained<> one({.seed = 3});
  laws::sample_batch<Trained<>> const data(2);
  int const samples = many.batch_samples();  // of one; eight accumulations are the most here
  auto const a = one.step(data.view(samples)), b = many.step(data.view<Replica>(samples));
  // One process adds the accumulations that are not there, too: zeros.
  CHECK(laws::same_bits(a.loss, b.loss));
  CHECK(processes::same_values(one, many));
  long counted = 0;
  for (auto const& batch : batches<Replica>(data.view<Replica>(samples), {.samples = samples}))
    counted += long(batch.labels.size());
  CHECK(counted == long(data.view<Replica>(samples).labels.size()));
  double const whole = many.evaluate(data.view<Replica>(samples));
  CHECK(laws::same_bits(whole, evaluate_all(many, data.view<Replica>(samples))));
  if (Between::processes() > 1)
    CHECK_THROWS_AS(many.accumulate(data.view<Replica>(samples)), error);
}
TEST_CASE(
    "one replica writes weights, all load them, and a mini-batch of one accumulation is "
    "everybody's") {
  writes_alike<Trained<>, Trained<Between, Stages<2>>>();
  writes_alike<OfDeep<>, OfDeep<Between, ZeRO<3>>>();
}
