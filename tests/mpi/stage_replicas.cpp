// SPDX-License-Identifier: BSL-1.0
//
// Stages that ranks of several processes hold, each with a copy of the weights: the bits of one
// stage, whichever stages have how many ranks, wherever these are, and for everything that adds up
// over micro-batches.
#include "mpi/alike.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/plan/compiled/planned.hpp>
#include <pipe/weights/weights.hpp>

#include "laws/late_replicas.hpp"
#include "laws/models_of_stage_ranks.hpp"
#include "mpi/folder.hpp"

using namespace pp;

namespace {

using laws::Shared, laws::Buffered;

template <class M, class... More>
using Of = Pipeline<M, PortableHost, AdamW, MicroBatches<7>, MicroBatchSize<2>, More...>;
template <class M, class... More>
using OfEight = Pipeline<M, PortableHost, AdamW, MicroBatches<8>, MicroBatchSize<2>, More...>;

/// More processes than ranks would be replicas of the whole.
template <class One, class Many>
void trains_as_one_stage() {
  if (Between::processes() <= Many::plan().rank_count) processes::trains_alike<One, Many>();
}
template <class M, class Counts, class... More>
void same_bits_with() {
  trains_as_one_stage<Of<M, More...>, Of<M, Between, Counts, More...>>();
}

}  // namespace

TEST_CASE("ranks of any stages have the bits of one stage") {
  same_bits_with<Shared, StageReplicas<2, 1, 1>>();
  same_bits_with<Shared, StageReplicas<1, 3, 2>>();
  same_bits_with<Shared, StageReplicas<4>>();
}
TEST_CASE("ranks of a stage under other schedules and recomputation") {
  same_bits_with<Shared, StageReplicas<1, 2>, RecomputeAllButLast, HostThreads<2>>();
  same_bits_with<Shared, StageReplicas<2, 3, 3>, GPipe, RecomputeAll, Averaging<9, 10>>();
  trains_as_one_stage<Of<Shared>, Of<Shared, Between, StageReplicas<2, 2>, laws::LateReplicas>>();
}
TEST_CASE("two directions over processes have the bits of one") {
  trains_as_one_stage<Of<Shared>, Of<Shared, Between, Stages<4>, Chimera>>();
  trains_as_one_stage<OfEight<Shared>, OfEight<Shared, Between, Stages<4>, DualPipe>>();
}
TEST_CASE("ranks of several processes add to one sum of a buffer") {
  same_bits_with<Buffered, StageReplicas<3, 2>>();
  trains_as_one_stage<Of<Buffered>, Of<Buffered, Between, Stages<2>, Chimera>>();
}
TEST_CASE("replicas of a pipeline whose stage has several ranks") {
  using Two = StageReplicas<2>;
  processes::trains_alike<Of<Shared, GradientAccumulation<4>>,
                          Of<Shared, Between, GradientAccumulation<4>, Two>>();
  processes::trains_alike<Of<Shared, GradientAccumulation<4>>,
                          Of<Shared, Between, GradientAccumulation<4>, Two, ZeRO<1>>>();
}
TEST_CASE("a loss that is not finite is found in one of the copies, and changes nothing") {
  using Threads = Of<Buffered, StageReplicas<2, 2>>;
  using Many = Of<Buffered, Between, StageReplicas<2, 2>>;
  if (Between::processes() > 4) return;
  Threads threads({.seed = 2});
  Many many({.seed = 2});
  laws::sample_batch<Threads> data(4);
  auto const good = std::exchange(data.labels[4 * 11], 3e38f);  // of a rank that owns nothing
  CHECK_THROWS_WITH(threads.step(data.view()), Catch::Contains("of micro-batch 5, stage 1"));
  CHECK_THROWS_WITH(many.step(data.view<Many>()), Catch::Contains("of micro-batch 5, stage 1"));
  data.labels[4 * 11] = good;
  CHECK(laws::same_bits(threads.step(data.view()).loss, many.step(data.view<Many>()).loss));
  CHECK(processes::same_values(threads, many));
}
TEST_CASE("a plan counts the copies of a stage's weights") {
  using Many = Of<Shared, Between, StageReplicas<1, 2, 1>>;
  auto const& plan = Many::plan;
  auto const& planned = Planned<Shared, PortableHost, AdamW, MicroBatches<7>, MicroBatchSize<2>,
                                Between, StageReplicas<1, 2, 1>>::plan();
  stage_plan const& stage = plan.stages[1];
  CHECK(stage.bytes_on(2) - stage.saved_bytes - stage.boundary_bytes ==
        stage.parameter_bytes + stage.gradient_bytes + stage.transposed_bytes + stage.buffer_bytes);
  for (int r = 0; r < plan.rank_count; ++r) {
    long sum = 0;
    for (auto const& share : plan.memory_of(r)) {
      CHECK(share.bytes >= 0);
      sum += share.bytes;
    }
    CHECK(sum == plan.rank_bytes[r]);
    CHECK(planned.rank_bytes[r] == plan.rank_bytes[r]);
  }
  REQUIRE(planned.links.count == plan.links.count);
  long sums = 0;
  for (int i = 0; i < plan.links.count; ++i) {
    CHECK(planned.step_bytes_of(planned.links[i]) == plan.step_bytes_of(plan.links[i]));
    sums += plan.links[i].sums;
  }
  // From each of seven micro-batches to the next: the last is of the owner.
  long numbers = 0;
  for (auto const& p : Many::compiled::memory().chunks[1].parameters)
    numbers += p.has_sum() ? p.elements() : 0;
  CHECK(sums == 6 * numbers * long(sizeof(float)));
}
TEST_CASE("ranks of a stage accumulate mini-batches, clip, and save what one process does") {
  using One = Of<Shared>;
  using Many = Of<Shared, Between, StageReplicas<2, 2>>;
  if (Between::processes() > 4) return;
  One one({.seed = 3, .clip_value = 0.05, .clip_norm = 0.3});
  Many many({.seed = 3, .clip_value = 0.05, .clip_norm = 0.3}), other({.seed = 4});
  std::string const own = processes::in_folder("own") + "-" + std::to_string(Between::process());
  for (std::uint64_t step = 0; step < 2; ++step) {
    laws::sample_batch<One> const first(9 + step), second(19 + step);
    one.accumulate(first.view(9));
    many.accumulate(first.view<Many>(9));
    auto const a = one.step(second.view()), b = many.step(second.view<Many>());
    CHECK(laws::same_bits(a.loss, b.loss));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    one.save(own);
    many.save(processes::in_folder("all"));
    CHECK(processes::bytes_of(own) == processes::bytes_of(processes::in_folder("all")));
  }
  save_weights(many, processes::in_folder("weights"));
  load_weights(other, processes::in_folder("weights"));
  laws::sample_batch<One> const data(1);
  CHECK(laws::same_bits(one.evaluate(data.view()), other.evaluate(data.view<Many>())));
}
