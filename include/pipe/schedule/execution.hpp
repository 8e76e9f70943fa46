// SPDX-License-Identifier: BSL-1.0
//
// The simulated execution of a table. Every rank runs its actions in order, each as soon as the
// rank is free and its inputs are ready; the outcome does not depend on the order in which ranks
// are visited. `schedules::validate` asks whether every rank reaches its end, `schedules::simulate`
// asks when. A blocked rank waits in the list of the one result that the rank misses, so the work
// is linear in the number of actions. In a static_assert linear work matters: compilers allow about
// a million steps (clang++: statements), which is why this file uses few and long statements.
#pragma once

#include <type_traits>

#include <pipe/schedule/needs.hpp>
#include <pipe/schedule/pairs.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/required.hpp>
#include <pipe/schedule/scratch.hpp>
#include <pipe/schedule/slots.hpp>
#include <pipe/schedule/table.hpp>

namespace pp::detail {

/// One execution. `Slots` is indexed by boundary (between chunk c and c + 1) and gives a
/// `slot_count`.
///
/// needs:  check_shape and check_complete; missing actions are allowed: their readers never start
/// throws: pp::error as require_actions does
template <pipeline_problem Problem, action_table Table, class Slots = unbounded_slots>
class execution {
  using rule = needs_rule<Problem, std::remove_cvref_t<decltype(Table::where)>, Slots>;
  static constexpr bool ordered = rule::ordered;

 public:
  constexpr execution(Problem const& problem, Table const& table, Slots const& slots)
      : problem_(required(problem, table, slots)), table_(table),
        rule_{problem, table.where, slots, table.trains, problem.micro_batches},
        fetches_ahead_(!std::is_constant_evaluated()),
        records_sums_(has_readers_of_weight_gradients(table)),
        results_(records_sums_ ? rule_.results() : rule_.results_handed_over()), end_(results_),
        also_waiting_(problem.ranks), position_(problem.ranks), clock_(problem.ranks, 1),
        left_(problem.ranks) {
    end_.item[nothing_needed] = 1;
  }

  /// Runs until no rank can proceed. Calls `done(rank, start, end, ready)` for each action, in an
  /// order in which every action follows its inputs; `ready`: when the action's result is there;
  /// for the first action of a pair, the end of the pair. Returns whether every rank reached its
  /// end.
  template <class Done>
  constexpr bool run(Done done) {
    auto awake = scratch<int>(problem_.ranks);
    int count = 0, unfinished = problem_.ranks;
    for (int rank = problem_.ranks - 1; rank >= 0; --rank) awake.item[count++] = rank;

    auto const record = [&](long result, long end) {
      // One statement, as constant evaluations count them.
      for (int next = int(-end_.item[result]); end_.item[result] = end, next > 0;
           next = also_waiting_.item[next - 1])
        awake.item[count++] = next - 1;
    };
    while (count > 0) {
      int const rank = awake.item[--count];
      int& position = position_.item[rank];
      long missing = nothing_needed;
      for (int const size = table_.size(rank); position < size; ++position) {
        action const a = table_.at(rank, position);
        result_needs const need = rule_.of(a, rank);
        if ((missing = first_missing(need)) != nothing_needed) break;
        if (a.with_next &&
            (missing = first_missing(inputs_of(rank, position + 1))) != nothing_needed)
          break;
        // The backward of a pair takes what the forward has left of the pair's time.
        long const left = left_.item[rank], alone = a.with_next ? 0
                                                    : left > 0  ? left - 1
                                                                : problem_.time(a);
        auto const [time, own] = a.with_next ? time_of(problem_, a, table_.at(rank, position + 1))
                                             : pair_time{alone, alone};
        long const free = clock_.item[rank],
                   start = latest(
                       need, a.with_next ? latest(inputs_of(rank, position + 1), free, 0) : free,
                       time),
                   end = start + own, ready = start + time;
        fetches_ahead_ ? prefetch(a, rank, position, size) : void(),
            clock_.item[rank] = end, left_.item[rank] = a.with_next ? 1 + time - own : 0,
            done(rank, start - 1, end - 1, ready - 1);
        if (a.kind == action_kind::forward)
          record(rule_.result_of(a.chunk, a.micro_batch, rule::output), ready);
        if (makes_input_gradient(a.kind))
          record(rule_.result_of(a.chunk, a.micro_batch, rule::input_gradient), ready);
        if (makes_weight_gradient(a.kind) && records_sums_)
          record(rule_.result_of(a.chunk, a.micro_batch, rule::weight_gradient), ready);
      }
      if (missing == nothing_needed) {
        --unfinished;
      } else {
        also_waiting_.item[rank] = int(-end_.item[missing]);
        end_.item[missing] = -(rank + 1);
      }
    }
    return unfinished == 0;
  }

  /// The position of the action that a rank could not start, or the size of its list.
  constexpr int position(int rank) const { return position_.item[rank]; }
  constexpr bool stuck(int rank) const { return position(rank) < table_.size(rank); }

  /// Whether a stuck rank misses a result that only a later action of its own list makes.
  constexpr bool waits_for_itself(int rank) const {
    bool const is_pair = table_.at(rank, position(rank)).with_next;
    result_needs need = rule_.of(table_.at(rank, position(rank)), rank);
    if (is_pair && first_missing(need) == nothing_needed)
      need = inputs_of(rank, position(rank) + 1);
    long const missing = first_missing(need);
    return missing == need.own || (missing == need.handed_over && need.source_rank == rank);
  }

 private:
  static constexpr Problem const& required(Problem const& problem, Table const& table,
                                           Slots const& slots) {
    require_actions(problem, table, slots);
    return problem;
  }

  /// Asks for the memory of the next actions of a rank and of their results: with many ranks that
  /// take turns the caches have lost it, and no hardware foresees a stream for each rank.
  void prefetch(action const& a, int rank, int position, int size) const {
    constexpr int line = 64, actions = line / int(sizeof(action)) + 2;
    if constexpr (std::is_lvalue_reference_v<decltype(table_.at(rank, position))>)
      if (position + actions < size) __builtin_prefetch(&table_.at(rank, position + actions));
    long const result = rule_.result_of(
                   a.chunk, a.micro_batch,
                   a.kind == action_kind::forward ? rule::output : rule::input_gradient),
               next = result + line / long(sizeof(long));
    if (next < results_) __builtin_prefetch(end_.item + next);
  }

  /// Whether an action may wait for a weight gradient: an update, or where sums or slots are
  /// shared. A constant evaluation does not look, since compilers count its steps.
  static constexpr bool has_readers_of_weight_gradients([[maybe_unused]] Table const& table) {
    if constexpr (ordered || !std::is_same_v<Slots, unbounded_slots>) {
      return true;
    } else {
      if (std::is_constant_evaluated()) return true;
      for (int rank = 0; rank < table.ranks(); ++rank)
        for (int i = 0, size = table.size(rank); i < size; ++i)
          if (table.at(rank, i).kind == action_kind::update) return true;
      return false;
    }
  }

  /// The needs of the backward of a pair when the pair begins: its data, and not the sums that the
  /// backward adds to.
  constexpr result_needs inputs_of(int rank, int position) const {
    result_needs need = rule_.of(table_.at(rank, position), rank);
    need.before = nothing_needed;
    return need;
  }
  constexpr long first_missing(result_needs const& need) const {
    return end_.item[need.own] <= 0                 ? need.own
           : end_.item[need.handed_over] <= 0       ? need.handed_over
           : end_.item[need.slot] <= 0              ? need.slot
           : ordered && end_.item[need.before] <= 0 ? need.before
                                                    : nothing_needed;
  }

  constexpr long latest(result_needs const& need, long free, [[maybe_unused]] long time) const {
    long const own = end_.item[need.own], handed_over = end_.item[need.handed_over] + need.hop;
    long const slot = end_.item[need.slot], input = own > handed_over ? own : handed_over,
               behind = ordered ? end_.item[need.before] - time : free,
               from = behind > free ? behind : free;
    long const ready = slot > input ? slot : input;
    return ready > from ? ready : from;
  }

  Problem const& problem_;
  Table const& table_;
  rule rule_;
  bool fetches_ahead_;  // at run time
  bool records_sums_;   // the weight gradients, which in most tables no action waits for
  long results_;        // that are recorded
  // By result: 1 + the time when it was ready; before that 0, or -1 - the last rank that began to
  // wait for it.
  scratch<long> end_;
  scratch<int> also_waiting_;  // by rank: 1 + the next one that waits for the same result
  scratch<int> position_;      // by rank: its next action
  scratch<long> clock_;        // by rank: 1 + the time when it is free
  scratch<long> left_;         // by rank: 1 + what the forward of a pair leaves of its time
};

}  // namespace pp::detail
