// SPDX-License-Identifier: BSL-1.0
//
// The orders from which a search starts: the known families, plans, and on a V building blocks.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/schedule/families/building_block.hpp>
#include <pipe/schedule/families/eager.hpp>
#include <pipe/schedule/families/gpipe.hpp>
#include <pipe/schedule/families/interleaved.hpp>
#include <pipe/schedule/families/one_f_one_b.hpp>
#include <pipe/schedule/families/waves.hpp>
#include <pipe/schedule/families/zb_v.hpp>
#include <pipe/schedule/families/zero_bubble.hpp>
#include <pipe/schedule/search/search_blocks.hpp>
#include <pipe/schedule/search/search_order.hpp>
#include <pipe/schedule/search/search_plan.hpp>

namespace pp::detail {

/// The best few orders or plans of a problem, no two with one score, the best first.
template <class Item, int Most>
class best_few {
 public:
  static constexpr int most = Most;

  int size() const { return size_; }
  void clear() { size_ = 0; }
  score const& value(int i) const { return items_[i].value; }
  /// The time above which no item is kept any more; at most `most_time`.
  long worst_kept(long most_time) const {
    return size_ == most && value(most - 1).worst < most_time ? value(most - 1).worst : most_time;
  }
  /// The i-th best item, an order or a plan.
  Item const& order(int i) const { return *items_[i].item; }

  void offer(score const& value, Item const& item) {
    if (size_ == most && !(value < items_[most - 1].value)) return;
    int at = size_;
    for (int i = size_ - 1; i >= 0 && !(items_[i].value < value); --i) at = i;
    if (at < size_ && items_[at].value == value) return;
    entry made = size_ < most ? entry{value, owner<Item>(new Item(item.extent()))}
                              : entry{value, static_cast<owner<Item>&&>(items_[most - 1].item)};
    made.item->assign(item);
    size_ += size_ < most;
    for (int i = size_ - 1; i > at; --i) items_[i] = static_cast<entry&&>(items_[i - 1]);
    items_[at] = static_cast<entry&&>(made);
  }

 private:
  struct entry {
    score value{};
    owner<Item> item;
  };
  list<entry, most> items_;
  int size_ = 0;
};
using shortlist = best_few<search_order, 2>;
using plan_list = best_few<plan, 8>;

/// Plays openings of a problem, and keeps the best.
template <class = void>
class search_openings {
  // Defined first: clang++ instantiates only what it has read where a constant needs it.
  template <schedule_policy... Policies>
  constexpr void try_each(long good_enough) {
    auto const try_one = [&]<class Policy>(std::type_identity<Policy>) {
      if (best_score_.worst <= good_enough || why_refused<Policy>(problem_) != nullptr) return;
      order_.clear();
      Policy::fill(problem_, order_);
      try_order(order_);
    };
    (try_one(std::type_identity<Policies>{}), ...);
  }

 public:
  /// needs: plans.possible()
  constexpr search_openings(planner const& plans, search_actions const& actions)
      : problem_(plans.question()), plans_(plans), order_(actions), best_(actions), times_(actions),
        best_plan_(problem_.chunks) {}

  constexpr score const& best_score() const { return best_score_; }
  constexpr search_order const& best() const { return best_; }

  /// Orders that are tried from now on are offered to `kept`, too.
  constexpr void keep(shortlist* kept) { kept_ = kept; }
  /// Plans that are tried from now on are offered to `kept`, too.
  void keep_plans(plan_list* kept) { kept_plans_ = kept; }
  /// Plays plans of a problem that differs in the number of micro-batches.
  void try_again(plan_list const& plans) {
    for (int i = 0; i < plans.size(); ++i) offer(plans.order(i));
  }

  /// Plans that do well on many problems, the first few best, at most `count`. The first one always
  /// has an order.
  constexpr void try_usual(int count, long good_enough) {
    struct opening {
      int quarters;
      bool any_gap, backward_first;
      int ahead;
    };
    constexpr int any = plan_rules::any_ahead;
    constexpr opening openings[] = {
        {11, true, false, 0},  {11, false, false, 0},  {9, false, false, any},
        {12, true, false, 0},  {6, false, false, 0},   {20, true, false, any},
        {13, false, true, 0},  {14, true, true, 0},    {8, false, false, 0},
        {5, false, true, 0},   {4, false, false, 1},   {8, false, false, 1},
        {2, false, false, 1},  {10, true, false, 0},   {0, true, false, any},
        {7, true, false, 0},   {2, false, true, 2},    {20, false, false, 0},
        {10, false, false, 2}, {11, true, false, any}, {6, false, false, 1},
    };
    auto x = plan(problem_.chunks);
    x.period = planner::parts * plans_.busiest();
    for (opening const& o : openings) {
      if (count-- <= 0 || best_score_.worst <= good_enough) return;
      for (int leg = 0; leg < plans_.legs(); ++leg) plans_.pace(x, leg, o.quarters);
      x.rules = plan_rules{o.backward_first,
                           false,
                           o.ahead,
                           plan_rules::any_time,
                           o.any_gap ? plan_rules::any_time : 0,
                           true};
      offer(x);
    }
  }

  /// Plans at the paces at which micro-batches in flight fill the memory of rank 0, and then
  /// variations of the best plan; `count` in all.
  void try_plans(int count, long good_enough, search_dice& roll) {
    auto x = plan(problem_.chunks);
    int left = count / 2;
    for (int longer : {0, 5, 12, 25})
      for (int spare : {1, 2, 3, 4, 6})
        for (int shape = 0; shape < 4; ++shape) {
          if (!fill_memory(x, longer, spare, shape)) continue;
          for (long overrun : {0L, plans_.weight() / 2, plan_rules::any_time})
            for (int ahead : {1, plan_rules::any_ahead}) {
              if (left-- <= 0 || best_score_.worst <= good_enough) break;
              x.rules = {false, left % 4 < 2, ahead, overrun, overrun, false};
              offer(x);
            }
        }
    vary_plans(count / 2, good_enough, roll);
  }
  /// Changes of the best plan, and then of what has become the best, at most `count`. It ends when
  /// many in a row gain nothing.
  void vary_plans(int count, long good_enough, search_dice& roll) {
    constexpr int most_without_gain = 150;
    auto x = plan(problem_.chunks);
    auto played = scratch<played_plan>(played_plans);
    for (int left = most_without_gain; left > 0 && count > 0 && best_score_.worst > good_enough;
         --left, --count) {
      score const before = best_plan_score_;
      x.assign(best_plan_);
      vary(x, roll);
      // Of equal changes of one plan only the first is played.
      auto const name = x.name();
      if (played_plan& last = played.item[name % played_plans]; last.name != name)
        last = {name, offer(x)};
      else if (last.value == before && before.possible())
        best_plan_.assign(x);
      if (best_plan_score_ < before) left = most_without_gain;
    }
  }

  /// The building blocks of a V that fill the memory, at most `count`.
  void try_blocks(int count, long good_enough) {
    int const p = problem_.ranks;
    if (problem_.where != placement::vee || problem_.chunks != 2 * p) return;
    int chunks = 2 * p;
    for (int rank = 0; rank < p; ++rank)
      if (long const both =
              problem_.cost(rank).memory.forward + problem_.cost(2 * p - 1 - rank).memory.forward;
          both > 0 &&
          problem_.room(rank) / both * 2 + problem_.room(rank) % both * 2 / both < chunks)
        chunks = static_cast<int>(problem_.room(rank) / both * 2 +
                                  problem_.room(rank) % both * 2 / both);
    auto x = plan(problem_.chunks);
    for_each_sloped_block(p, chunks, [&](sloped_block const& block) {
      block.plan_into(x);
      for (long overrun : {0L, plans_.weight() / 2}) {
        x.rules = {false, false, plan_rules::any_ahead, overrun, overrun, false};
        offer(x, false);
      }
      return --count > 0 && best_score_.worst > good_enough;
    });
  }

  /// The known families of the placement, so that the result is at least as good as each family
  /// that fits.
  constexpr void try_families(long good_enough) {
    if (problem_.where == placement::straight)
      try_each<GPipe, OneFOneB, EagerOneFOneB, ZeroBubbleH1, ZeroBubbleH2>(good_enough);
    else if (problem_.where == placement::loop)
      try_each<Interleaved<2>, GroupedInterleaved<2>, LoopedBFS<2>>(good_enough);
    else if (problem_.chunks == 2 * problem_.ranks)
      try_each<ZeroBubbleV, VHalf, VMin, Hanayo<>>(good_enough);
    else if (problem_.held() % 2 == 0)
      try_each<Hanayo<>>(good_enough);
  }

  constexpr score try_order(search_order const& order) {
    if (!order.fits()) return score{};
    score const found = times_.play(order);
    keep(found, order);
    return found;
  }

 private:
  constexpr void keep(score const& found, search_order const& order) {
    if (!found.possible()) return;
    if (found < best_score_) {
      best_score_ = found;
      best_.assign(order);
    }
    if (kept_ != nullptr) kept_->offer(found, order);
  }
  static constexpr int played_plans = 1 << 10;
  struct played_plan {
    unsigned long long name = 0;
    score value{};
  };

  /// Plays a plan, up to the point where it is certain not to be kept. `as_best`: the plan may
  /// become the one that is varied.
  constexpr score offer(plan const& x, bool as_best = true) {
    search_actions const& all = order_.actions();
    long const most = kept_ != nullptr ? kept_->worst_kept(LONG_MAX) : LONG_MAX;
    auto first = scratch<long>(problem_.ranks, -1), last = scratch<long>(problem_.ranks),
         left = scratch<long>(problem_.ranks);
    for (int rank = 0; rank < problem_.ranks; ++rank) left.item[rank] = all.work.item[rank];
    order_.clear();
    if (!plans_.play(x, [&](int rank, action const& a, long start, long end) {
          int const kind = all.kinds * a.chunk + static_cast<int>(a.kind);
          if (first.item[rank] < 0) first.item[rank] = start;
          last.item[rank] = end;
          left.item[rank] -= end - start;
          order_.push_number(rank, kind * all.micro_batches + a.micro_batch);
          return end + left.item[rank] - all.begin.item[rank] <= most;
        }))
      return score{};
    auto found = score{0, 0};
    if (std::is_constant_evaluated())
      for (int rank = 0; rank < problem_.ranks; ++rank)
        found.add(last.item[rank] - (problem_.want == objective::makespan ? 0 : first.item[rank]));
    else
      found = times_.play(order_);
    keep(found, order_);
    if (kept_plans_ != nullptr && found.possible()) kept_plans_->offer(found, x);
    if (as_best && !(best_plan_score_ < found)) {
      best_plan_score_ = found;
      best_plan_.assign(x);
    }
    return found;
  }

  /// Plans legs so slow that micro-batches in flight leave `spare` halves of F's memory on rank 0,
  /// with a period `longer` percent above the work of the busiest rank. False if no leg of the
  /// shape is left to pace.
  bool fill_memory(plan& x, int longer, int spare, int shape) const {
    constexpr long one = 1 << 12, whole = 1 << 8;  // units of memory and of time
    int const p = problem_.ranks, visits = 2 * problem_.chunks, legs = plans_.legs();
    auto const is_paced = [&](int leg) {
      return shape == 0   ? leg % 2 == 0
             : shape == 1 ? true
             : shape == 2 ? leg == 0 && legs > 2
                          : leg == legs / 2 && legs > 2;
    };
    long const work = plans_.busiest(),
               period = work + work / 100 * longer + work % 100 * longer / 100;
    long free = one * whole, paced = 0;
    for (int index = 0; index < problem_.held(); ++index) {
      int const chunk = chunk_on(problem_.where, p, 0, index);
      chunk_cost const& cost = problem_.cost(chunk);
      // Parts of the memory; whole parts where the numbers are huge.
      long const share = cost.memory.forward < problem_.no_limit / one
                             ? cost.memory.forward * one / problem_.room(0)
                             : one / (problem_.room(0) / cost.memory.forward + 1);
      if (share <= 0) continue;
      long life = cost.backward_input + 2 * cost.backward_weight, slower = 0;
      for (int visit = chunk; visit < visits - 1 - chunk; ++visit) {
        life += plans_.natural(visit);
        if (visit % p != p - 1 && is_paced(visit / p)) slower += plans_.natural(visit);
      }
      free -= share * (life / (period / whole + 1)) + share * spare * whole / 2 / problem_.held();
      paced += share * (slower / (period / whole + 1));
    }
    if (paced <= 0) return false;
    long quarters = planner::parts + (planner::parts * 2 * free + paced) / (2 * paced);
    quarters = quarters < 2 ? 2 : quarters > 24 ? 24 : quarters;
    x.period = planner::parts * period;
    for (int leg = 0; leg < legs; ++leg)
      plans_.pace(x, leg, is_paced(leg) ? static_cast<int>(quarters) : planner::parts);
    return true;
  }

  /// Changes a plan: the pace of a leg, the waits before one or two visits, the period, or a rule.
  void vary(plan& x, search_dice& roll) const {
    int const p = problem_.ranks, leg = roll.below(plans_.legs()), which = roll.below(8);
    // In parts of the plan's own unit, which for all plans but blocks is the problem's.
    long const work = planner::parts * plans_.busiest(),
               quarter = work * p / problem_.chunks / 4 + 1;
    if (which < 2) {
      plans_.pace(x, leg, which == 0 ? roll.below(17) : 2 + roll.below(8));
    } else if (which < 4) {
      long const amount = (1 + roll.below(4)) * quarter;
      long &longer = x.gap.item[roll.below(2 * x.chunks)],
           &shorter = x.gap.item[roll.below(2 * x.chunks)];
      int const change = roll.below(3);
      if (change != 0) longer += amount;
      if (change != 1) shorter = shorter > amount ? shorter - amount : 0;
    } else if (which == 4) {
      int const turn = (leg + 1) * p - 1;
      x.gap.item[turn] = planner::parts * plans_.natural(turn) + work / 12 * roll.below(13);
    } else if (which == 5) {
      x.period = work + work / 128 * roll.below(40) + work % 128 * roll.below(40) / 128;
    } else {
      constexpr int aheads[] = {0, 1, 2, plan_rules::any_ahead};
      long const some = plans_.weight() * roll.below(5) / 4;
      int const rule = roll.below(6);
      if (rule == 0) x.rules.backward_first = !x.rules.backward_first;
      if (rule == 1) x.rules.weight_first = !x.rules.weight_first;
      if (rule == 2) x.rules.ahead = aheads[roll.below(4)];
      if (rule == 3) x.rules.overrun = roll.below(3) == 0 ? plan_rules::any_time : some;
      if (rule == 4) x.rules.weight_overrun = roll.below(3) == 0 ? plan_rules::any_time : some;
      if (rule == 5) x.rules.oldest_fits = !x.rules.oldest_fits;
    }
  }

  search_problem const& problem_;
  planner const& plans_;
  search_order order_, best_;  // the one being tried, and the best so far
  order_times times_;
  score best_score_{}, best_plan_score_{};
  plan best_plan_;
  shortlist* kept_ = nullptr;
  plan_list* kept_plans_ = nullptr;
};

}  // namespace pp::detail
