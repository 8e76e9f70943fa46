// SPDX-License-Identifier: BSL-1.0
//
// A search for the best order under a memory limit, for any times. Five methods, of which the best
// result is taken: (a) plans at several paces, with the choices of the zero-bubble paper's greedy
// method; (b) variations of the best plan, chunk by chunk; (c) simulated annealing of the best
// order; (d) the best orders of fewer micro-batches, with a period repeated; (e) on a V, building
// blocks. The known families that fit into the memory are candidates too, so no family is better
// than the result.
#pragma once

#include <type_traits>

#include <pipe/schedule/families/building_block.hpp>
#include <pipe/schedule/families/eager.hpp>
#include <pipe/schedule/families/gpipe.hpp>
#include <pipe/schedule/families/one_f_one_b.hpp>
#include <pipe/schedule/families/zb_v.hpp>
#include <pipe/schedule/families/zero_bubble.hpp>
#include <pipe/schedule/floors.hpp>
#include <pipe/schedule/search/search_blocks.hpp>
#include <pipe/schedule/search/search_order.hpp>
#include <pipe/schedule/search/search_plan.hpp>
#include <pipe/schedule/search/search_repeat.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/validate.hpp>

namespace pp {

namespace detail {

/// The options of a search.
struct search_options {
  static constexpr long no_limit = LONG_MAX / 4;
  static constexpr long usual_effort = 200'000'000;

  objective want = objective::stage_local_span;
  long limit = no_limit;  ///< memory limit of a rank, in the unit of memory_change
  /// The number of actions to simulate in all. The time of a search is proportional to this number,
  /// whatever the size of the problem.
  long effort = usual_effort;
};

/// One search: the best order so far, and the effort that is left.
///
/// needs: replicas(where) == 1; a number of chunks that `where` can hold
template <pipeline_problem Problem>
class schedule_search {
 public:
  constexpr schedule_search(Problem const& problem, placement where, search_options const& options)
      : problem_(problem), where_(where), options_(options), plans_(problem, where, options.limit),
        best_plan_(problem.chunks), order_(problem, where, options.limit, options.want),
        best_order_(problem, where, options.limit, options.want), effort_(options.effort),
        actions_(3L * problem.chunks * problem.micro_batches) {
    flush_floor const floor = floor_of(problem, where);
    floor_ = options.want == objective::makespan ? floor.makespan : floor.stage_local_span;
  }

  /// Searches, and appends the best order to `table`. In a constant evaluation it tries only a few
  /// openings and the families.
  ///
  /// needs: plans are possible
  template <action_table Table>
  constexpr void run(Table& table) {
    if (std::is_constant_evaluated()) {
      effort_ = constant_effort;
      try_openings();
      try_families();
    } else {
      try_openings();
      vary_plans();
      try_families();
      try_blocks();
      repeat_shorter();
      improve_order([](search_order const&) {});
    }
    for (int rank = 0; rank < problem_.ranks; ++rank)
      for (int i = 0; i < best_order_.size(rank); ++i) table.push(rank, best_order_.at(rank, i));
  }

 private:
  static constexpr int plans_tried = 1000;  ///< the maximum number of plans of method (b)
  static constexpr int plans_share = 2;  ///< method (b) takes at most 1 / plans_share of the effort
  /// 1 / looking_share of the effort of a shorter run is for repeating the orders that the run
  /// finds.
  static constexpr int looking_share = 4;
  static constexpr int blocks_share = 4;  ///< method (e) takes at most 1 / blocks_share of the rest
  static constexpr int block_price = 10;  ///< of moving a block's actions, in simulated orders
  static constexpr int rounds = 4;        ///< of annealing, each from the best order so far
  /// The effort of the openings in a constant evaluation: six openings at P = 8 and M = 32, or one
  /// on a vee. The families then still fit into the default limits of compilers.
  static constexpr long constant_effort = 4700;

  constexpr bool at_floor() const { return best_.worst <= floor_; }

  /// Simulates a plan, and keeps the plan and its order if they are no worse than the best.
  constexpr void offer(plan const& x) {
    auto times = rank_times(problem_.ranks);
    order_.clear();
    plans_.play(x, [&](int rank, action const& a, long start, long end) {
      times.add(rank, start, end);
      order_.push(rank, a);
    });
    int const held = problem_.chunks / problem_.ranks;
    // A compiler's operations grow with the square of the chunks per rank.
    effort_ -= actions_ * (std::is_constant_evaluated() ? held * held : 1);
    score const found = times.total(problem_.ranks, options_.want);
    if (best_ < found) return;
    if (found < best_) best_order_.assign(order_);
    best_ = found;
    best_plan_.assign(x);
  }

  /// (a) The openings: plans ordered so that the first few already do well on many problems.
  constexpr void try_openings() {
    struct opening {
      int quarters = 0;
      plan_choices choices{};
    };
    constexpr int any = plan_choices::any_ahead;
    constexpr opening openings[] = {
        {11, {true, false, 0}},  {11, {false, false, 0}},  {9, {false, false, any}},
        {12, {true, false, 0}},  {6, {false, false, 0}},   {20, {true, false, any}},
        {13, {false, true, 0}},  {14, {true, true, 0}},    {8, {false, false, 0}},
        {5, {false, true, 0}},   {4, {false, false, 1}},   {8, {false, false, 1}},
        {2, {false, false, 1}},  {10, {true, false, 0}},   {0, {true, false, any}},
        {7, {true, false, 0}},   {2, {false, true, 2}},    {20, {false, false, 0}},
        {10, {false, false, 2}}, {11, {true, false, any}}, {6, {false, false, 1}},
    };
    auto x = plan(problem_.chunks);
    for (opening const& o : openings) {
      if (best_.possible() && (effort_ < 0 || at_floor())) return;
      for (int leg = 0; leg < legs(); ++leg) plans_.pace(x, leg, o.quarters);
      x.choices = o.choices;
      offer(x);
    }
  }

  /// (b) Variations of the best plan: another pace for a leg, longer or shorter gaps, or another
  /// choice.
  constexpr void vary_plans() {
    auto x = plan(problem_.chunks);
    int const visits = 2 * problem_.chunks;
    long const tries = effort_ / plans_share / actions_;
    long const quarter = plans_.period * problem_.ranks / problem_.chunks / 4;
    for (long left = tries < plans_tried ? tries : plans_tried; left > 0 && !at_floor(); --left) {
      x.assign(best_plan_);
      int const which = roll_.below(8);
      if (which < 3) {
        plans_.pace(x, roll_.below(legs()), roll_.below(17));
      } else if (which < 7) {
        long const amount = (1 + roll_.below(4)) * quarter;
        long &longer = x.gap.item[roll_.below(visits)], &shorter = x.gap.item[roll_.below(visits)];
        if (which != 3) longer += amount;
        if (which != 6) shorter = shorter > amount ? shorter - amount : 0;
      } else {
        constexpr int aheads[] = {0, 1, 2, plan_choices::any_ahead};
        int const choice = roll_.below(3);
        if (choice == 0) x.choices.any_gap = !x.choices.any_gap;
        if (choice == 1) x.choices.backward_first = !x.choices.backward_first;
        if (choice == 2) x.choices.ahead = aheads[roll_.below(4)];
      }
      offer(x);
    }
  }

  /// (c) Simulated annealing of the best order.
  template <class Seen>
  constexpr void improve_order(Seen seen) {
    for (int round = rounds; round > 0 && !at_floor(); --round) {
      long const tries = search_order::tries_of(effort_ / round, actions_);
      best_ = best_order_.improve(tries, floor_, roll_, [&](search_order const& order) {
        if (round == 1) seen(order);
      });
      effort_ -= search_order::effort_of(tries, actions_);
    }
  }

  /// (d) The same problem with few micro-batches, and the periods of its better orders repeated.
  /// Two to four times P micro-batches suffice for the beginning and the end; all other
  /// micro-batches must be whole periods, so numbers with different remainders are tried.
  constexpr void repeat_shorter() {
    constexpr int runs[][2] = {
        {2, 4}, {2, 6}, {3, 4}, {3, 6}};  // minimum in units of P, and a divisor of the remainder
    long const share = effort_ / 16 * 3;
    for (auto const& [times, divisor] : runs) {
      int const least = times * problem_.ranks, rest = problem_.micro_batches - least;
      bool const affordable = share / plans_tried > actions_;
      if (rest >= divisor && affordable && !at_floor())
        repeat_shorter(least + rest % divisor, share);
    }
  }
  constexpr void repeat_shorter(int few, long share) {
    Problem question = problem_;
    question.micro_batches = few;
    search_options options = options_;
    options.effort = share - share / looking_share;
    effort_ -= options.effort;
    long const kept = effort_ - share / looking_share;
    auto search = schedule_search(question, where_, options);
    search.roll_.state += roll_.bits();
    search.try_openings();
    search.vary_plans();
    search.try_families();
    search.try_blocks();
    repeat_periods(search.best_order_, few, kept);
    search.improve_order([&](search_order const& order) { repeat_periods(order, few, kept); });
    repeat_periods(search.best_order_, few, 0);
  }
  constexpr void repeat_periods(search_order const& order, int few, long kept) {
    if (effort_ < kept || at_floor()) return;
    int const more = problem_.micro_batches - few;
    auto periods = order_periods(order, problem_.chunks, few);
    for (int length = 1; length <= few / 2 && effort_ >= kept; ++length) {
      if (more % length != 0) continue;
      periods.set_length(length);
      effort_ -= actions_ / problem_.micro_batches * few;
      for (int first = 0; first < few && effort_ >= kept; ++first) {
        if (!periods.begin_at(first)) continue;
        periods.repeat(more / length, order_);
        try_order();
      }
    }
  }

  /// The known families of the placement, so that the result is at least as good as each family
  /// that fits.
  constexpr void try_families() {
    if (where_ == placement::straight)
      try_each<GPipe, OneFOneB, EagerOneFOneB, ZeroBubbleH1, ZeroBubbleH2>();
    if (where_ == placement::vee && problem_.chunks == 2 * problem_.ranks)
      try_each<ZeroBubbleV, VHalf, VMin>();
  }
  template <schedule_policy... Policies>
  constexpr void try_each() {
    auto const try_one = [&]<class Policy>(std::type_identity<Policy>) {
      if (at_floor()) return;
      order_.clear();
      Policy::fill(problem_, order_);
      try_order();
    };
    (try_one(std::type_identity<Policies>{}), ...);
  }
  /// (e) The building blocks of a V that fit into the memory, brought forward in ticks.
  constexpr void try_blocks() {
    int const p = problem_.ranks;
    if (where_ != placement::vee || problem_.chunks != 2 * p) return;
    int chunks = 2 * p;
    for (int rank = 0; rank < p; ++rank)
      if (long const both =
              problem_.cost(rank).memory.forward + problem_.cost(2 * p - 1 - rank).memory.forward;
          both > 0 && 2 * options_.limit / both < chunks)
        chunks = static_cast<int>(2 * options_.limit / both);
    long const kept = effort_ - effort_ / blocks_share;
    for_each_sloped_block(p, chunks, [&](sloped_block const& block) {
      auto ticks = block_ticks(p, problem_.micro_batches, chunks, block.ticks());
      // Some actions have room only when others have moved.
      for (int pass = 0; pass < 2; ++pass) ticks.advance(0, ticks.ticks());
      order_.clear();
      fill_by_ticks(problem_, order_, ticks, ticks.ticks(), 0, [&](int) { return options_.limit; });
      effort_ -= block_price * actions_;
      try_order();
      return effort_ > kept && !at_floor();
    });
  }
  constexpr void try_order() {
    effort_ -= actions_;
    if (!order_.fits()) return;
    score const found = order_.play(best_.worst);
    if (!(found < best_)) return;
    best_ = found;
    best_order_.assign(order_);
  }

  /// The number of passes of a micro-batch over all ranks.
  constexpr int legs() const { return 2 * problem_.chunks / problem_.ranks; }

  Problem const& problem_;
  placement where_;
  search_options options_;
  planner<Problem> plans_;
  plan best_plan_;
  search_order order_, best_order_;  // the order being tried, and the best so far
  score best_{};
  search_dice roll_{};
  long effort_, actions_, floor_ = 0;
};

/// Fills `table` with the best order found for its placement. Leaves it empty if not even one
/// micro-batch fits into the limit.
///
/// needs: replicas(table.where) == 1
/// law:   a filled table validates, and no rank needs more memory than the limit
/// law:   the result is the same on every machine
/// cost:  about `effort` simulated actions, of some 5 ns in small problems and 50 ns in large ones;
///        at least one plan and the families. In a constant evaluation at most a few plans and the
///        families
template <pipeline_problem Problem, action_table Table>
constexpr void search(Problem const& problem, Table& table, search_options const& options = {}) {
  if (!check_shape(problem, table).ok() ||
      !planner<Problem>(problem, table.where, options.limit).possible())
    return;
  schedule_search<Problem>(problem, table.where, options).run(table);
}

}  // namespace detail

}  // namespace pp
