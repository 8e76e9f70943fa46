// SPDX-License-Identifier: BSL-1.0
//
// Recomputation ahead of the gradient, on paper: for every family with a flush it saves time, and
// it costs the recomputed values of one micro-batch; without a flush it hides hops.
#include "catch.hpp"

#include <vector>

#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/families/recompute_ahead.hpp>
#include <pipe/schedule/families/repeated.hpp>
#include <pipe/schedule/period.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/validate.hpp>

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;

namespace {

run_time_problem problem_for(family const& f, int ranks, int micro_batches, chunk_cost cost) {
  run_time_problem p;
  p.ranks = ranks;
  p.chunks = chunks_for(f.where, ranks, f.chunks_per_rank > 0 ? f.chunks_per_rank : 2);
  p.micro_batches = micro_batches;
  p.costs.assign(std::size_t(p.chunks), cost);
  return p;
}

dynamic_table ahead_of(run_time_problem const& p, dynamic_table const& plain) {
  dynamic_table t(p.ranks, plain.where);
  insert_recomputes(p, plain, t);
  return t;
}

/// Calls use(family, problem, its table) for families with a flush that train.
template <class Use>
void each_family(chunk_cost const& cost, Use use) {
  for (family const& f : catalog)
    for (int ranks : {1, 2, 3, 4})
      for (int micro_batches : {1, 4, 7, 8}) {
        run_time_problem const p = problem_for(f, ranks, micro_batches, cost);
        if (!f.trains || f.refuses(p) != nullptr || (f.searches && ranks > 2)) continue;
        dynamic_table const plain = make_dynamic_table(f, p);
        if (plain.mini_batch > 0) continue;
        INFO(f.name << ", " << ranks << " ranks, " << micro_batches << " micro-batches");
        use(f, p, plain);
      }
}

}  // namespace

TEST_CASE("every family recomputes ahead, in less time than in its backward", "[schedule]") {
  int strictly = 0;
  for (chunk_cost const& cost : {chunk_cost{1, 1, 1}, chunk_cost{3, 4, 2}})
    each_family(cost, [&](family const& f, run_time_problem const& p, dynamic_table const& plain) {
      dynamic_table const ahead = ahead_of(p, plain);
      REQUIRE(validate(p, ahead).ok());
      CHECK(check_runs(ahead, true).ok());
      CHECK(check_recomputed(p, ahead).ok());
      if (p.micro_batches % replicas(f.where) == 0)
        CHECK(validate(repeated(p, 2), repeated(p, ahead, 2)).ok());
      run_time_problem inside = p;
      for (chunk_cost& c : inside.costs) c.backward_input += c.forward;
      auto const before = simulate(inside, plain), after = simulate(p, ahead);
      CHECK(after.makespan <= before.makespan);
      if (p.ranks > 2) CHECK(after.makespan < before.makespan);
      strictly += after.makespan < before.makespan;
      bool is_later = false;
      for (int rank = 0; rank < p.ranks; ++rank)
        for (int i = 0, k = 0; i < ahead.size(rank); ++i)
          if (action const a = ahead.at(rank, i); a.kind != action_kind::recompute) {
            long const end = before.spans.at(rank, k++).end;
            // The first action of a pair has no result until the pair ends.
            is_later |= !a.with_next && after.spans.at(rank, i).end > end;
          }
      CHECK(!is_later);
      for (int c = 0; c < p.chunks && !f.splits_backward; ++c) CHECK(peak_pending(ahead, c) == 1);
    });
  CHECK(strictly > 100);
}

TEST_CASE("what R brings back is in memory until the backward ends", "[schedule]") {
  chunk_cost cost{1, 1, 1};
  cost.memory = {2, 0, -2, 5};  // F, B, W, R
  int higher = 0;
  each_family(cost, [&](family const& f, run_time_problem const& p, dynamic_table const& plain) {
    dynamic_table const ahead = ahead_of(p, plain);
    for (int rank = 0; rank < p.ranks; ++rank) {
      long live = -1;
      for_each_memory(p, ahead, rank, [&](int, long, long after) { live = after; });
      CHECK(live == 0);
      int const held = p.chunks * replicas(f.where) / p.ranks;
      long const peak = peak_memory(p, ahead, rank), stored = peak_memory(p, plain, rank);
      CHECK(peak >= stored);
      if (!f.splits_backward) CHECK(peak <= stored + 5 * held);
      higher += peak > stored;
    }
  });
  CHECK(higher > 100);
}

TEST_CASE("a stage whose backward comes right after its forward has no R", "[schedule]") {
  constexpr auto table = make_table<RecomputeAhead<OneFOneB>, 4, 6>();
  for (int c = 0; c < 4; ++c) CHECK(is_recomputed(table, c) == (c < 3));
  constexpr auto split = make_table<RecomputeAhead<ZeroBubbleH1>, 4, 6>();
  CHECK(!is_recomputed(split, 3));
  CHECK(is_recomputed(make_table<RecomputeAhead<GPipe>, 4, 6>(), 3));
  CHECK(table.at(0, 4) == action{action_kind::recompute, 0, 0});
  CHECK(table.at(0, 5) == action{action_kind::backward, 0, 0});
}

namespace {
template <class S>
concept recomputes = requires { typename RecomputeAhead<S>; };
static_assert(recomputes<PipeDream<>> && recomputes<PipeDream2BW<>>);
// Their backward reads newer weights than R has to read.
static_assert(!recomputes<PACI<>> && !recomputes<PACI<2, true>>);
static_assert(!recomputes<RecomputeAhead<PipeDream<>>> && !recomputes<Steady<OneFOneB>>);
}  // namespace

TEMPLATE_TEST_CASE("without a flush R reads the version of its backward", "[schedule]", PipeDream<>,
                   (PipeDream<true, 2>), PipeDream2BW<4>) {
  using ahead = RecomputeAhead<TestType>;
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (int micro_batches : {4, 12}) {
      run_time_problem p{ranks, ranks, micro_batches, 1, {}};
      p.costs.assign(std::size_t(ranks), chunk_cost{2, 2, 1});
      auto const table = make_dynamic_table<ahead>(p);
      INFO(ahead::name << ", " << ranks << " ranks, " << micro_batches << " micro-batches");
      CHECK(validate(p, table).ok());
      for (int c = 0; c < ranks; ++c) {
        CHECK(is_recomputed(table, c) == (c + 1 < ranks));
        CHECK(peak_pending(table, c) == 1);
        CHECK(peak_versions(table, c) == peak_versions(make_dynamic_table<TestType>(p), c));
      }
      // Off the way of the gradient, R hides hops: no rank waits.
      run_time_problem inside = p;
      for (int c = 0; c + 1 < ranks; ++c) inside.costs[std::size_t(c)].backward_input += 2;
      CHECK(period_of<ahead>(p, 4) == step_period{4 * (5 + 2 * (ranks > 1)), 1});
      if (ranks > 2) CHECK(period_of<ahead>(p, 4) < period_of<TestType>(inside, 4));
    }
}

TEST_CASE("R that is missing, late, out of order or of other weights is found", "[schedule]") {
  using enum action_kind;
  auto const p = equal_times(1, 2);
  auto const found = [&](std::vector<action> const& row) {
    dynamic_table t(1);
    for (action const& a : row) t.push(0, a);
    verdict v = validate(p, t);
    if (v.ok()) v = check_recomputed(p, t);
    return v;
  };
  action const f0{forward, 0, 0}, f1{forward, 0, 1}, b0{backward, 0, 0}, b1{backward, 0, 1},
      r0{recompute, 0, 0}, r1{recompute, 0, 1};
  CHECK(found({f0, f1, r0, r1, b0, b1}).ok());
  CHECK(found({f0, f1, b0, b1}).ok());
  verdict const missing = found({f0, f1, r0, b0, b1});
  CHECK(missing.what == fault::missing);
  CHECK(missing.which == r1);
  CHECK(found({f0, f1, b0, r0, r1, b1}).what == fault::recompute_too_late);
  CHECK(found({f0, f1, r1, r0, b0, b1}).what == fault::out_of_order);
  CHECK(found({f0, r0, r0, b0, f1, b1}).what == fault::repeated);
  CHECK(found({r0, f0, b0, f1, r1, b1}).what == fault::before_its_input);
  CHECK(found({f0, {recompute, 0, 0, 1}, b0, f1, r1, b1}).what == fault::wrong_version);
}
