// SPDX-License-Identifier: BSL-1.0
//
// Schedules that the compiler leaves to the program: made and judged when a trainer is constructed,
// and no different otherwise.
#include "catch.hpp"

#include <pipe/report/explain.hpp>
#include <pipe/report/trainer_drawing.hpp>
#include <pipe/schedule/search/search.hpp>

#include "laws/families.hpp"

namespace at_construction {

using namespace pp;
using Catch::Contains;

/// Any policy, left to the program.
template <class Policy>
struct Late : Policy {
  static constexpr bool fits_a_constant(int, int) { return false; }
};

/// Rank 1 does its first forward twice.
struct Twice : OneFOneB {
  static constexpr char const* name = "twice";
  static constexpr bool fits_a_constant(int, int) { return false; }
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    table.push(1, schedules::action{schedules::action_kind::forward, 1, 0});
    OneFOneB::fill(problem, table);
  }
};

template <class Early>
void same_plan_as_by_the_compiler() {
  using one = laws::Trained<Early, Stages<4>>;
  using other = laws::Trained<Late<Early>, Stages<4>>;
  static_assert(one::compiled::by_compiler && !other::compiled::by_compiler);
  auto const &a = one::plan(), &b = other::plan();
  CHECK(a.bubble == b.bubble);
  CHECK(a.bubble_stage_local == b.bubble_stage_local);
  CHECK(a.peak_in_flight == b.peak_in_flight);
  CHECK(a.bytes == b.bytes);
  for (int r = 0; r < one::plan.rank_count; ++r) CHECK(a.rank_bytes[r] == b.rank_bytes[r]);
  for (int s = 0; s < 4; ++s) CHECK(a.stages[s].boundary_bytes == b.stages[s].boundary_bytes);
}

TEST_CASE("a schedule made at construction gives the bits of one stage", "[laws]") {
  laws::gives_the_bits_of_one_stage<Late<OneFOneB>, 4>();
  laws::gives_the_bits_of_one_stage<Late<ZeroBubbleH2>, 8, RecomputeAllButLast>();
  laws::gives_the_bits_of_one_stage<Late<ZeroBubbleV>, 4>();
  laws::gives_the_bits_of_one_stage<Late<ZeroBubble2P>, 4, RecomputeAll>();
}

TEST_CASE("the plan does not depend on who makes the schedule") {
  same_plan_as_by_the_compiler<EagerOneFOneB>();
  same_plan_as_by_the_compiler<ZeroBubbleH1>();
  same_plan_as_by_the_compiler<Interleaved<2>>();
}

TEST_CASE("more micro-batches than a constant holds") {
  struct Small : Model<Input<2>, Linear<3>, Tanh, Linear<3>, Tanh, Linear<1>, MSE> {};
  using one = Pipeline<Small, MicroBatches<6000>, PortableHost>;
  using two = Pipeline<Small, Stages<2>, MicroBatches<6000>, ZeroBubbleH1, PortableHost>;
  STATIC_REQUIRE((one::compiled::by_compiler && !two::compiled::by_compiler));
  laws::same_as_one_stage<one, two>(3, 1);
  CHECK_THAT(explain<two>(), Contains("zb-h1"));
  CHECK(drawings::of_plan<two>().makespan == two::compiled::timeline().makespan);
}

TEST_CASE("a wrong schedule is refused at construction") {
  using trainer = laws::Trained<Twice, Stages<4>>;
  CHECK_THROWS_WITH(trainer(),
                    "schedule twice is not valid for 4 ranks and 5 micro-batches: F of chunk 1, "
                    "micro-batch 0 on rank 1, "
                    "position 1: it has been done before");
}

TEST_CASE("a memory limit is kept at construction") {
  using enough = laws::Trained<Late<OneFOneB>, Stages<2>, MemoryLimit<1_GiB>>;
  CHECK_NOTHROW(enough());
  using trainer = laws::Trained<Late<OneFOneB>, Stages<2>, MemoryLimit<10_KiB>>;
  CHECK_THROWS_WITH(trainer(),
                    Contains("rank 0 needs ") && Contains(" more than the limit of 10240"));
}

}  // namespace at_construction
