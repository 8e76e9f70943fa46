// SPDX-License-Identifier: BSL-1.0
//
// Replicas in processes with a device each that divide the optimizer's state: the bits of one
// process that has all of it.
#include "catch.hpp"

#include "nccl/alike.hpp"
#include "nccl/resumed_alike.hpp"

#include <string>

using namespace pp;
using namespace processes;

namespace {

/// A rank alone, whose parameters are one range.
template <class... More>
using Single =
    Pipeline<Followed, on_host::Device, AdamW, MicroBatches<3>, MicroBatchSize<2>, More...>;
/// Parameters in several buckets, of which a replica updates parts that do not touch, by rates that
/// differ; 16-bit copies.
struct Wide
    : Model<Tokens<17000, 2>, Embedding<128>, Linear<300>, LayerNorm, Linear<3>, CrossEntropy> {};
template <class... More>
using OfWide =
    Pipeline<Wide, on_host::Device, AdamW, BF16, MicroBatches<1>, MicroBatchSize<1>, More...>;
/// Tensors that are updated whole, each in one replica; a scaled loss.
template <class... More>
using OfTensors = Pipeline<Followed, on_host::Device, LAMB, FP16, MicroBatches<2>,
                           MicroBatchSize<2>, Stages<2>, More...>;
/// Bytes of a rank's state in replica r of n.
template <class Trainer>
long state_bytes(int rank, int n, int r) {
  auto const& plan = Trainer::plan;
  return detail::end_of_arena(plan.arenas, plan.rank_memory[rank], rank, n, r).state_bytes;
}

}  // namespace

TEST_CASE("replicas on GPUs that divide the optimizer's state have the bits of one process") {
  for (int const n : {1, 2, 4})
    train_alike<Single<GradientAccumulation<4>>, Single<GradientAccumulation<4>, Nccl, ZeRO<1>>>(n);
}
TEST_CASE("replicas on GPUs divide parameters of several buckets") {
  fake_nccl::start_anew();
  using one = OfWide<GradientAccumulation<2>>;
  using many = OfWide<GradientAccumulation<2>, Nccl, ZeRO<1>>;
  CHECK(launch(2, []() -> std::string {
          gpu.devices = 8;
          differences found;
          one a({.seed = 3});
          many b({.seed = 3});
          for (int const samples : {2, 1}) {  // the second replica has some, and none
            laws::sample_batch<one> const data(samples);
            auto const x = a.step(data.view(samples)), y = b.step(data.view<many>(samples));
            found.expect(x.loss == y.loss && x.gradient_norm == y.gradient_norm, "step");
            found.expect(has_the_parameters(a, b), "parameters");
            found.expect(a.evaluate(data.view()) == b.evaluate(data.view<many>()), "copies");
          }
          return found.first();
        }) == same(2, "right"));
}
TEST_CASE("replicas of several ranks on GPUs divide the states of whole tensors") {
  train_alike<OfTensors<GradientAccumulation<2>>,
              OfTensors<GradientAccumulation<2>, Nccl, ZeRO<1>>>(4);
  train_alike<Scaled<GradientAccumulation<4>>,
              Scaled<GradientAccumulation<4>, Nccl, ZeRO<1>, OffloadState>>(4);
}
TEST_CASE("shared parameters are updated by one replica on GPUs, and copied in all") {
  train_alike<Linked<GradientAccumulation<2>>, Linked<GradientAccumulation<2>, Nccl, ZeRO<1>>>(8);
}

TEST_CASE("a run of replicas on GPUs that divide states is saved as that of one process") {
  fake_nccl::start_anew();
  temporary_folder const folder;
  CHECK(launch(4, [&] {
          return is_resumed_alike<Scaled<GradientAccumulation<2>>,
                                  Scaled<GradientAccumulation<2>, Nccl, ZeRO<1>>,
                                  Scaled<GradientAccumulation<2>, Nccl, ZeRO<1>, OffloadState>>(
              folder);
        }) == same(4, "right"));
}

TEST_CASE("the plan of replicas on GPUs has a part of the optimizer's state for each") {
  auto const& whole = OfWide<Nccl>::plan;
  auto const& divided = OfWide<Nccl, ZeRO<1>>::plan;
  auto const& offloaded = OfWide<Nccl, ZeRO<1>, OffloadState>::plan;
  long const all = whole.stages[0].optimizer_bytes;
  CHECK(divided.stages[0].optimizer_bytes == all);
  CHECK(divided.rank_bytes[0] == whole.rank_bytes[0]);
  CHECK(offloaded.rank_bytes[0] == whole.rank_bytes[0] - all);
  CHECK(offloaded.host_bytes[0] == all);
  for (int const n : {2, 3, 8}) {
    long sum = 0;
    for (int r = 0; r < n; ++r) {
      long const part = state_bytes<OfWide<Nccl, ZeRO<1>>>(0, n, r);
      CHECK(divided.rank_bytes_of(0, n, r) == whole.rank_bytes_of(0, n, r) - all + part);
      CHECK(divided.host_bytes_of(0, n, r) == 0);
      CHECK(offloaded.rank_bytes_of(0, n, r) == offloaded.rank_bytes[0]);
      CHECK(offloaded.host_bytes_of(0, n, r) == part);
      sum += part;
    }
    CHECK(sum == all);
  }
  CHECK_THROWS_AS(divided.host_bytes_of(0, 2, 2), data_error);
}
