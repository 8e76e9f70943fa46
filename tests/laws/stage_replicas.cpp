// SPDX-License-Identifier: BSL-1.0
//
// Stages that several ranks run: the bits of one stage, whichever stages have how many replicas,
// for numbers of micro-batches that they do not divide, and for everything that adds up over
// micro-batches. ThreadSanitizer runs this file too (tests.laws.tsan).
#include "laws/bit_law.hpp"
#include "laws/eager.hpp"
#include "laws/everything.hpp"
#include "laws/late_replicas.hpp"
#include "laws/models_of_stage_ranks.hpp"
#include "laws/schedules.hpp"

#include <map>
#include <utility>

#include <pipe/plan/compiled/planned.hpp>
#include <pipe/report/trainer_drawing.hpp>

using namespace pp;

namespace {

using laws::Shared, laws::Buffered;

template <class M, class... More>
using Of =
    Pipeline<M, laws::Eager<PortableHost>, AdamW, MicroBatches<7>, MicroBatchSize<2>, More...>;
template <class Counts, class... More>
void same_bits_with() {
  laws::same_as_one_stage<Of<Shared, More...>, Of<Shared, Counts, More...>>(7, 2, 3);
}

/// M micro-batches of one sample on two ranks that hold both stages.
template <class Schedule, int M>
void concatenated() {
  laws::same_as_one_stage<
      Pipeline<Shared, laws::Eager<PortableHost>, AdamW, MicroBatches<M>>,
      Pipeline<Shared, laws::Eager<PortableHost>, AdamW, MicroBatches<M>, Stages<2>, Schedule>>(
      M, 2, 1);
}

}  // namespace

TEST_CASE("replicas of any stages have the bits of one stage", "[laws]") {
  same_bits_with<StageReplicas<2, 1, 1>>();
  same_bits_with<StageReplicas<1, 3, 2>>();
  same_bits_with<StageReplicas<3>>();
}
TEST_CASE("replicas under other schedules and recomputation", "[laws]") {
  same_bits_with<StageReplicas<1, 2>, RecomputeAllButLast, HostThreads<2>>();
  same_bits_with<StageReplicas<2, 3, 1>, GPipe, RecomputeAll, Averaging<9, 10>>();
  same_bits_with<StageReplicas<1, 2, 2>, EagerOneFOneB, GradientAccumulation<2>>();
}
TEST_CASE("replicas with B and W apart", "[laws]") {
  laws::same_as_one_stage<Of<Shared>, Of<Shared, StageReplicas<2, 2>, laws::LateReplicas>>(3, 2, 3);
}
TEST_CASE("two directions have the bits of one", "[laws]") {
  laws::same_as_one_stage<Of<Shared>, Of<Shared, Stages<4>, Chimera>>(7, 2, 3);
  laws::same_as_one_stage<Of<Shared, GradientAccumulation<2>>,
                          Of<Shared, Stages<2>, Chimera, RecomputeAll, GradientAccumulation<2>>>(
      7, 2, 3);
  // P, 2P and 3P micro-batches of P ranks: groups one after the other.
  concatenated<Chimera, 2>(), concatenated<Chimera, 4>(), concatenated<Chimera, 6>();
  concatenated<ChimeraDoubled, 2>(), concatenated<ChimeraDoubled, 4>();
  concatenated<ChimeraDoubled, 6>();
  // Seven micro-batches are none for DualPipe.
  using One =
      Pipeline<Shared, laws::Eager<PortableHost>, AdamW, MicroBatches<8>, MicroBatchSize<2>>;
  using Two = Pipeline<Shared, laws::Eager<PortableHost>, AdamW, MicroBatches<8>, MicroBatchSize<2>,
                       Stages<4>, DualPipe, HostThreads<2>>;
  laws::same_as_one_stage<One, Two>(4, 2, 3);
  laws::same_as_one_stage<Of<Buffered>, Of<Buffered, Stages<2>, Chimera>>(5, 2, 4);
}
TEST_CASE("replicas add to one sum of a buffer", "[laws]") {
  laws::same_as_one_stage<Of<Buffered>, Of<Buffered, StageReplicas<3, 2>>>(5, 3, 4);
}
TEST_CASE("replicas accumulate mini-batches and clip", "[laws]") {
  using One = Of<Shared>;
  using Many = Of<Shared, StageReplicas<2, 2>>;
  One one({.seed = 3, .clip_value = 0.05, .clip_norm = 0.3});
  Many many({.seed = 3, .clip_value = 0.05, .clip_norm = 0.3});
  for (std::uint64_t step = 0; step < 2; ++step) {
    laws::sample_batch<One> const first(9 + step), second(19 + step);
    one.accumulate(first.view(9));
    many.accumulate(first.view<Many>(9));
    auto const a = one.step(second.view()), b = many.step(second.view<Many>());
    CHECK(laws::same_bits(a.loss, b.loss));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(many).values));
  }
}
TEST_CASE("looking changes nothing, with replicas", "[laws]") {
  laws::looking_changes_nothing<Of<Shared, StageReplicas<1, 2>>>();
}

TEST_CASE("a replica that fails ends the run for all, and nothing is updated", "[laws]") {
  using Trainer = Of<Shared, StageReplicas<1, 3>>;
  for (int at = 0; at < 7; ++at) {
    Trainer trainer({.seed = 2}), untouched({.seed = 2});
    laws::sample_batch<Trainer> const data(4);
    // Those after it wait for its kernels' turns.
    auto const fail = [&](launch_seen const& seen) {
      if (seen.chunk == 1 && seen.micro_batch == at && seen.which == detail::program::backward &&
          seen.launch == 2)
        throw std::runtime_error("kernel broke");
    };
    CHECK_THROWS_WITH(trainer.watch(data.view(), fail), "kernel broke");
    CHECK(laws::same_numbers(laws::snapshot(trainer).values, laws::snapshot(untouched).values));
    CHECK(laws::same_bits(trainer.step(data.view()).loss, untouched.step(data.view()).loss));
    CHECK(laws::same_numbers(laws::snapshot(trainer).values, laws::snapshot(untouched).values));
  }
}
TEST_CASE("a loss that is not finite rejects the step, with its place", "[laws]") {
  using Trainer = Of<Buffered, StageReplicas<2, 2>>;
  Trainer trainer({.seed = 2}), untouched({.seed = 2});
  laws::sample_batch<Trainer> data(4);
  data.labels[4 * 11] = 3e38f;
  CHECK_THROWS_WITH(trainer.step(data.view()), Catch::Contains("of micro-batch 5, stage 1"));
  CHECK(laws::same_numbers(laws::snapshot(trainer).values, laws::snapshot(untouched).values));
}

// ---- the order of sums ----

namespace {
/// Checks that no two launches of a program write to one element of what micro-batches add up, and
/// that each writes to whole parameters, which is what ranks of several processes send each other.
void has_one_writer_for_each_sum(detail::pipeline_description const& d) {
  int written = 0;
  for (int c = 0; c < d.chunks; ++c)
    for (auto const* set : {&d.chunk[c].keeping, &d.chunk[c].dropping})
      for (detail::program_view const& view : set->programs) {
        std::map<std::pair<detail::region, long>, int> writer;  // by element
        for (int l = 0; l < view.count; ++l) {
          long left = 0;
          detail::for_each_sum(d.chunk[c], view, view.launches[l],
                               [&](detail::parameter_place const& p) { left += p.elements(); });
          for (int k = 0; k < view.launches[l].count; ++k) {
            detail::placed_operand const& o = view.operands[view.launches[l].first + k];
            if (o.at.where != detail::region::parameter_gradients &&
                o.at.where != detail::region::buffer_sums)
              continue;
            for (long e = 0; e < o.elements; ++e, ++written) {
              auto const [at, is_first] = writer.insert({{o.at.where, o.at.offset + 4 * e}, l});
              if (!is_first) REQUIRE(at->second == l);
            }
            left -= o.elements;
          }
          REQUIRE(left == 0);
        }
      }
  CHECK(written > 40);
}
}  // namespace

TEST_CASE("every gradient has one launch that adds to it", "[laws]") {
  has_one_writer_for_each_sum(Of<Shared, RecomputeAllButLast>::compiled::description());
  has_one_writer_for_each_sum(Of<Buffered, StageReplicas<1, 2>>::compiled::description());
  has_one_writer_for_each_sum(Pipeline<laws::Everything, PortableHost, Stages<3>,
                                       MicroBatches<2>>::compiled::description());
  has_one_writer_for_each_sum(Pipeline<laws::Everything, PortableHost, Stages<3>, MicroBatches<2>,
                                       laws::LateWeights>::compiled::description());
}

// ---- the plan ----

namespace {
using Planned_ = Of<Shared, StageReplicas<1, 2, 1>>;
constexpr auto const& plan = Planned_::plan;
static_assert(plan.rank_count == 4 && plan.stages[1].rank == 1 && plan.stages[1].ranks == 2);
static_assert(plan.stages[2].rank == 3 && plan.stages[1].in_flight == 2);
// A replica has no weights, gradients or optimizer state.
static_assert(plan.rank_bytes[1] - plan.rank_bytes[2] >=
              plan.stages[1].bytes - plan.stages[1].bytes_on(2));
}  // namespace

namespace {
template <class Trainer>
void has_planned_memory(Trainer const& trainer) {
  auto const& of = Trainer::plan;
  long all = 0;
  for (int r = 0; r < 4; ++r) {
    CHECK(trainer.allocated_bytes(r) == of.rank_bytes[r]);
    long sum = 0;
    for (auto const& share : of.memory_of(r)) {
      CHECK(share.bytes >= 0);
      sum += share.bytes;
    }
    CHECK(sum == of.rank_bytes[r]);
    all += sum;
  }
  CHECK(all == of.bytes);
}
}  // namespace

TEST_CASE("replicas' memory is what the plan says", "[laws]") {
  Planned_ trainer;
  has_planned_memory(trainer);
  using Both = Of<Shared, Stages<4>, Chimera>;
  has_planned_memory(Both());
  CHECK((Both::plan.stages[1].is_on(1) && Both::plan.stages[1].is_on(2)));
  CHECK((Both::plan.stages[3].is_on(0) && !Both::plan.stages[3].is_on(1)));
  CHECK(explain<Both>().find("3, 0") != std::string::npos);
  using Large = Planned<Shared, laws::Eager<PortableHost>, AdamW, MicroBatches<7>,
                        MicroBatchSize<2>, StageReplicas<1, 2, 1>>;
  for (int r = 0; r < 4; ++r) CHECK(Large::plan().rank_bytes[r] == plan.rank_bytes[r]);
  CHECK(explain<Planned_>().find("1-2") != std::string::npos);
  laws::sample_batch<Planned_> const data(3);
  trainer.step(data.view());
  drawings::drawing const run = drawings::of_last_run(trainer);
  for (std::size_t r = 0; r < 4; ++r)
    CHECK(run.ranks[r].actions.size() == drawings::of_plan<Planned_>().ranks[r].actions.size());
}
