// SPDX-License-Identifier: BSL-1.0
//
// Sixteen ranks and 128 micro-batches, the size that every compiler proves within its default
// limits.
#include "catch.hpp"

#include "proofs.hpp"
#include <pipe/schedule/dynamic_table.hpp>

using namespace pp;
using namespace pp::schedules;
using proofs::is_proved;

static_assert(is_proved<GPipe, 16, 128>() && is_proved<OneFOneB, 16, 128>() &&
              is_proved<EagerOneFOneB, 16, 128>());
static_assert(is_proved<ZeroBubbleH1, 16, 128>() && is_proved<ZeroBubbleH2, 16, 128>());
static_assert(is_proved<Interleaved<2>, 16, 128>() && is_proved<GroupedInterleaved<2>, 16, 128>());
static_assert(is_proved<InterleavedZeroBubble<2>, 16, 128>());
static_assert(is_proved<LoopedBFS<2>, 16, 128>() && is_proved<Hanayo<>, 16, 128>());
static_assert(is_proved<ZeroBubbleV, 16, 128>() && is_proved<VHalf, 16, 128>() &&
              is_proved<VMin, 16, 128>());
static_assert(is_proved<Chimera, 16, 128>() && is_proved<DualPipe, 16, 128>() &&
              is_proved<DualPipeV, 16, 128>());
static_assert(is_proved<ForwardOnly, 16, 128>() && is_proved<PipeDream<>, 16, 128>() &&
              is_proved<PipeDream2BW<>, 16, 128>());

TEST_CASE("proofs at compile time and at run time agree", "[families]") {
  auto const work = proofs::proved<DualPipeV, 16, 128>::work;
  REQUIRE(simulate(work, make_dynamic_table<DualPipeV>(work)).makespan ==
          proofs::proved<DualPipeV, 16, 128>::when.makespan);
  // At run time the families on a V choose between more orders.
  auto const is_no_worse = [&]<class Policy>(Policy) {
    REQUIRE(simulate(work, make_dynamic_table<Policy>(work)).stage_local_span() <=
            proofs::proved<Policy, 16, 128>::when.stage_local_span());
  };
  is_no_worse(VMin{}), is_no_worse(VHalf{}), is_no_worse(ZeroBubbleV{});
}
