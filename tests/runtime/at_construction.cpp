// SPDX-License-Identifier: BSL-1.0
//
// Schedules that the compiler leaves to the program: made and judged when a trainer is constructed,
// and no different otherwise.
#include "catch.hpp"

#include <pipe/report/explain.hpp>
#include <pipe/report/trainer_drawing.hpp>
#include <pipe/schedule/search/search.hpp>

#include "laws/families.hpp"
#include "transport/models.hpp"

using namespace pp;
using Catch::Contains;

namespace {

/// Always four stages, so that all of these trainers share them: the law is about who makes the
/// schedule, not about models, which tests/laws/families.cpp has.
template <class... More>
using Trained = test_transports::Small<test_transports::Shared, More...>;

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
  using one = Trained<Early, Stages<4>>;
  using other = Trained<Late<Early>, Stages<4>>;
  static_assert(one::compiled::by_compiler && !other::compiled::by_compiler);
  auto const &a = one::plan(), &b = other::plan();
  CHECK(a.bubble == b.bubble);
  CHECK(a.bubble_stage_local == b.bubble_stage_local);
  CHECK(a.peak_in_flight == b.peak_in_flight);
  CHECK(a.bytes == b.bytes);
  for (int r = 0; r < one::plan.rank_count; ++r) CHECK(a.rank_bytes[r] == b.rank_bytes[r]);
  for (int s = 0; s < 4; ++s) CHECK(a.stages[s].boundary_bytes == b.stages[s].boundary_bytes);
}

template <class Schedule, class... More>
void gives_the_bits_of_one_stage() {
  using many = Trained<Late<Schedule>, Stages<4>, More...>;
  laws::same_as_one_stage<Trained<>, many>(7, 3, 3);
  many trainer;
  for (int r = 0; r < many::plan().rank_count; ++r)
    CHECK(trainer.allocated_bytes(r) == many::plan().rank_bytes[r]);
  laws::sample_batch<many> const data(9);
  trainer.gradients(data.view());
  auto const expected = laws::snapshot(trainer).gradients;
  CHECK(laws::same_numbers(laws::gradients_with_delays(trainer, data), expected));
}

}  // namespace

TEST_CASE("a schedule made at construction gives the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<OneFOneB, MemoryLimit<1_GiB>>();
  gives_the_bits_of_one_stage<ZeroBubbleH2, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<ZeroBubbleV>();
}

TEST_CASE("the plan does not depend on who makes the schedule") {
  same_plan_as_by_the_compiler<EagerOneFOneB>();
  same_plan_as_by_the_compiler<ZeroBubble2P>();
  same_plan_as_by_the_compiler<Interleaved<2>>();
}

TEST_CASE("more micro-batches than a constant holds") {
  struct Small : Model<Input<2>, Linear<3>, Tanh, Linear<3>, Tanh, Linear<1>, MSE> {};
  using one = Pipeline<Small, MicroBatches<2100>, PortableHost>;
  using two = Pipeline<Small, Stages<2>, MicroBatches<2100>, ZeroBubbleH1, PortableHost>;
  STATIC_REQUIRE((one::compiled::by_compiler && !two::compiled::by_compiler));
  laws::same_as_one_stage<one, two>(3, 1);
  CHECK_THAT(explain<two>(), Contains("zb-h1"));
  CHECK(drawings::of_plan<two>().makespan == two::compiled::timeline().makespan);
}

TEST_CASE("a wrong schedule is refused at construction") {
  using trainer = Trained<Twice, Stages<4>>;
  CHECK_THROWS_WITH(trainer(),
                    "schedule twice is not valid for 4 ranks and 4 micro-batches: F of chunk 1, "
                    "micro-batch 0 on rank 1, "
                    "position 1: it has been done before");
}

TEST_CASE("a memory limit is kept at construction") {
  using enough = Trained<Late<OneFOneB>, Stages<4>, MemoryLimit<1_GiB>>;
  CHECK_NOTHROW(enough());
  using trainer = Trained<Late<OneFOneB>, Stages<4>, MemoryLimit<2_KiB>>;
  CHECK_THROWS_WITH(trainer(),
                    Contains("rank 2 needs ") && Contains(" more than the limit of 2048"));
}
