// SPDX-License-Identifier: BSL-1.0
//
// The best order that can be found under a memory limit, for any times, equal or not: three methods, and the best of what they find.
// (a) Plans at several paces, each with the zero-bubble paper's choices; (b) plans around the best of those, chunk by chunk; (c) small
// changes of the best order. The known families that fit into the memory take part, so none of them is ever better.
#pragma once

#include <type_traits>

#include <pipe/schedule/building_block.hpp>
#include <pipe/schedule/eager.hpp>
#include <pipe/schedule/floors.hpp>
#include <pipe/schedule/gpipe.hpp>
#include <pipe/schedule/one_f_one_b.hpp>
#include <pipe/schedule/search_order.hpp>
#include <pipe/schedule/search_plan.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/zb_v.hpp>
#include <pipe/schedule/zero_bubble.hpp>

namespace pp {

struct search_options {
  placement where = placement::straight;  ///< needs: replicas(where) == 1
  objective want = objective::stage_local_span;
  long limit = 0;            ///< of a rank's memory, in the unit of memory_change; 0: any amount
  long effort = 30'000'000;  ///< how many actions may be played in all: the search takes time in proportion, whatever the size
};

/// What a table achieves, and what no table can beat. Under a memory limit the floor holds, though nothing may reach it.
struct certificate {
  flush_floor floor{}, achieved{};

  /// The time that a better schedule could at most save.
  constexpr long gap(objective want = objective::stage_local_span) const {
    return want == objective::makespan ? achieved.makespan - floor.makespan
                                       : achieved.stage_local_span - floor.stage_local_span;
  }
};

/// needs: validate(problem, table)
template <pipeline_problem Problem, action_table Table>
constexpr certificate certify(Problem const& problem, Table const& table) {
  auto const when = simulate(problem, table);
  return certificate{floor_of(problem, table.where), flush_floor{when.makespan, when.stage_local_span()}};
}

/// One search: the best order so far, and how much effort is left.
template <pipeline_problem Problem>
class schedule_search {
 public:
  constexpr schedule_search(Problem const& problem, search_options const& options)
      : problem_(problem), options_(options), limit_(options.limit > 0 ? options.limit : LONG_MAX / 4),
        plans_(problem, options.where, limit_), best_plan_(problem.chunks),
        best_order_(problem, options.where, limit_, options.want), effort_(options.effort),
        actions_(3L * problem.chunks * problem.micro_batches) {
    flush_floor const floor = floor_of(problem, options.where);
    floor_ = options.want == objective::makespan ? floor.makespan : floor.stage_local_span;
  }

  constexpr bool possible() const { return plans_.possible(); }

  template <action_table Table>
  constexpr void run(Table& table) {
    try_paces();
    if (!std::is_constant_evaluated()) vary_plans();
    plans_.play(best_plan_, [&](int rank, action const& a, long, long) { best_order_.push(rank, a); });
    try_families();
    if (!std::is_constant_evaluated())
      for (int round = 0; round < rounds; ++round)
        best_order_.improve(effort_ / rounds / actions_, floor_, roll_);
    for (int rank = 0; rank < problem_.ranks; ++rank)
      for (int i = 0; i < best_order_.size(rank); ++i) table.push(rank, best_order_.at(rank, i));
  }

 private:
  static constexpr int rounds = 4;             ///< of annealing, each from the best order so far
  static constexpr int plans_tried = 1000;     ///< at most,
  static constexpr int share_of_plans = 2;     ///< and for one part in so many of the effort

  constexpr bool offer(plan const& x) {
    auto times = rank_times(problem_.ranks);
    plans_.play(x, [&](int rank, action const&, long start, long end) { times.add(rank, start, end); });
    score const found = times.total(problem_.ranks, options_.want);
    effort_ -= actions_;
    if (best_ < found) return false;
    best_ = found;
    best_plan_.assign(x);
    return true;
  }

  /// (a)
  constexpr void try_paces() {
    auto x = plan(problem_.chunks);
    constexpr int paces[] = {10, 4, 0, 2, 5, 6, 8, 12, 16, 24};
    constexpr int aheads[] = {plan_choices::any_ahead, 1, 0};
    for (int quarters : paces) {
      for (int leg = 0; leg < legs(); ++leg) plans_.pace(x, leg, quarters);
      for (int ahead : aheads)
        for (bool any_gap : {true, false}) {
          x.choices = plan_choices{any_gap, false, ahead};
          offer(x);
        }
      if (std::is_constant_evaluated()) return;
    }
  }

  /// (b)
  constexpr void vary_plans() {
    auto x = plan(problem_.chunks);
    long const tries = effort_ / share_of_plans / actions_;
    long const unit = plans_.period * problem_.ranks / problem_.chunks / 4;
    for (long left = tries < plans_tried ? tries : plans_tried; left > 0 && best_.worst > floor_; --left) {
      x.assign(best_plan_);
      int const which = roll_.below(8);
      if (which < 3) {
        plans_.pace(x, roll_.below(legs()), roll_.below(17));
      } else if (which < 7) {
        long const more = (1 + roll_.below(4)) * unit;
        long& longer = x.gap.item[roll_.below(2 * problem_.chunks)];
        long& shorter = x.gap.item[roll_.below(2 * problem_.chunks)];
        if (which != 3) longer += more;
        if (which <= 5) shorter = shorter > more ? shorter - more : 0;
      } else {
        int const choice = roll_.below(3);
        if (choice == 0) x.choices.any_gap = !x.choices.any_gap;
        if (choice == 1) x.choices.backward_first = !x.choices.backward_first;
        if (choice == 2) x.choices.ahead = x.choices.ahead == 1 ? roll_.below(3) : x.choices.ahead == plan_choices::any_ahead ? 1 : plan_choices::any_ahead;
      }
      offer(x);
    }
  }

  constexpr void try_families() {
    if (options_.where == placement::straight) try_each<GPipe, OneFOneB, EagerOneFOneB, ZeroBubbleH1, ZeroBubbleH2>();
    if (options_.where == placement::vee && problem_.chunks == 2 * problem_.ranks)
      try_each<ZeroBubbleV, VHalf, VMin>();
  }
  template <schedule_policy... Policies>
  constexpr void try_each() {
    auto order = search_order(problem_, options_.where, limit_, options_.want);
    auto const try_one = [&]<class Policy>(std::type_identity<Policy>) {
      order.clear();
      Policy::fill(problem_, order);
      effort_ -= actions_;
      if (!order.fits()) return;
      score const found = order.play(best_.worst);
      if (!(found < best_)) return;
      best_ = found;
      best_order_.assign(order);
    };
    (try_one(std::type_identity<Policies>{}), ...);
  }

  constexpr int legs() const { return 2 * problem_.chunks / problem_.ranks; }

  Problem const& problem_;
  search_options options_;
  long limit_;
  planner<Problem> plans_;
  plan best_plan_;
  search_order best_order_;
  score best_{};
  search_dice roll_{};
  long effort_, actions_, floor_ = 0;
};

/// Fills `table` with the best order that is found, or with nothing if not even one micro-batch fits.
///
/// law:  if `table` is filled, it validates and no rank needs more memory than the limit
/// law:  the same answer for the same question, on any machine
/// cost: `effort` actions played, at some 20 ns; within a constant evaluation three plans and the families, whatever the effort
template <pipeline_problem Problem, action_table Table>
constexpr void search(Problem const& problem, Table& table, search_options const& options) {
  auto one = schedule_search<Problem>(problem, options);
  if (one.possible()) one.run(table);
}

/// P times what one micro-batch adds to the memory of the rank where it adds the most: what 1F1B needs, where all ranks are alike.
template <pipeline_problem Problem>
constexpr long memory_of_1f1b(Problem const& problem, placement where) {
  int const p = problem.ranks;
  long most = 0;
  for (int rank = 0; rank < p; ++rank) {
    long added = 0;
    for (int index = 0; index < problem.chunks / p; ++index)
      added += problem.cost(chunk_on(where, p, rank, index)).memory.forward;
    most = added > most ? added : most;
  }
  return p * most;
}

/// The best order found under Numerator/Denominator times the memory of 1F1B, or under the problem's own limit where it has one.
///
/// needs: Denominator > 0; Numerator 0: any amount of memory
template <int Numerator = 0, int Denominator = 1, placement Where = placement::straight,
          objective Want = objective::stage_local_span>
struct Searched {
  static_assert(Numerator >= 0 && Denominator > 0, "the memory limit of a search is a quotient of at least 0");
  static_assert(replicas(Where) == 1, "a search knows placements that hold each chunk once");

  static constexpr char const* name = "searched";
  static constexpr placement where = Where;
  static constexpr int chunks_per_rank = Where == placement::straight ? 1 : 2;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  template <pipeline_problem Problem>
  static constexpr search_options options(Problem const& problem) {
    long const own = memory_of_1f1b(problem, where) * Numerator / Denominator;
    return search_options{where, Want, problem.limit > 0 ? problem.limit : own};
  }

  /// Why a problem has no answer, or null.
  template <pipeline_problem Problem>
  static constexpr char const* refuses(Problem const& problem) {
    return schedule_search<Problem>(problem, options(problem)).possible()
               ? nullptr
               : "not even one micro-batch fits into the memory limit";
  }

  template <pipeline_problem Problem, action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    search(problem, table, options(problem));
  }
};

/// The best order found within the memory of 1F1B.
///
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 3
struct ZeroBubble1P : Searched<1> {
  static constexpr char const* name = "zb-1p";
};

/// The best order found within twice the memory of 1F1B; no bubble in the stage-local span where hops are short.
///
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 3
struct ZeroBubble2P : Searched<2> {
  static constexpr char const* name = "zb-2p";
};

}  // namespace pp
