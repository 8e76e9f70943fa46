// SPDX-License-Identifier: BSL-1.0
//
// The period of a table whose steps follow each other without a barrier: each rank begins the next
// step right after its last action of this step. The run is a graph that repeats itself: an action
// begins when its rank and its inputs are ready, and some inputs are of an earlier step. The
// long-run time per step is the maximum of time / steps over the cycles of the graph. No step can
// be faster than the slowest cycle of actions that wait for each other, and the run keeps the pace
// of that cycle.
//
// A graph of actions and not a matrix of ranks: in a matrix each slot, and each value under way
// between steps, would be a state. The first policy is what delayed each action in the second of
// two simulated steps, nearly always the best one. The period is a fraction, as a slowest cycle may
// span several updates. The outcome of an update has no edge: that a step's first backward has
// passed all stages after they updated is a law of every family with a flush.
//
// source: Howard's policy iteration, as in Cochet-Terrasson et al., Numerical computation of
//         spectral elements in max-plus algebra, 1998
#pragma once

#include <type_traits>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/schedule/needs.hpp>
#include <pipe/schedule/pairs.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/required.hpp>
#include <pipe/schedule/scratch.hpp>
#include <pipe/schedule/step_period.hpp>

namespace pp {

namespace detail {

/// needs: steps > 0
constexpr step_period in_lowest_terms(long time, long steps) {
  long common = time, rest = steps;
  while (rest != 0) {
    long const next = common % rest;
    common = rest, rest = next;
  }
  return {time / common, steps / common};
}

/// The graph of a run of equal steps: the actions of one step, and what each action waits for, in
/// the same step or in an earlier one.
///
/// needs: P times the time of a step, times the square of the steps of a cycle, is below 2^62
template <pipeline_problem Problem, chunk_placement Where, class Slots>
class repeated_step {
 public:
  /// each(use): calls use(rank, action) for the actions of a step, rank by rank, each rank's in
  /// order. A step has `micro_batches` micro-batches, numbered from 0; actions of a rank's step may
  /// have micro-batches of later steps.
  ///
  /// throws: pp::error if actions of a step wait for each other
  template <class Each>
  constexpr repeated_step(Problem const& problem, Where const& where, Slots const& slots,
                          bool trains, int micro_batches, Each each)
      : problem_(problem), micro_batches_(micro_batches), count_(counted(each)), rank_(count_),
        position_(count_), duration_(count_), ready_(count_), edges_(long(most_edges) * count_),
        sorted_(count_), chosen_(count_), mark_(count_), time_(count_), steps_(count_, 1),
        value_(count_), path_(count_) {
    connect(where, slots, trains, each);
    sort();
  }

  /// The maximum of time / steps over all cycles.
  constexpr step_period run() {
    for (int pass = 0; pass < first_passes; ++pass) follow();
    for (int x = 0; x < count_; ++x) value_.item[x] = 0;
    do evaluate();
    while (improve());
    for (int x = 1; x < count_; ++x)
      if (is_slower(x, critical_)) critical_ = x;
    return count_ == 0 ? step_period{} : step_period{time_.item[critical_], steps_.item[critical_]};
  }

  /// Calls use(rank, position) for the actions of a slowest cycle, backwards, each action as often
  /// as the cycle passes it.
  ///
  /// needs: run()
  template <class Use>
  constexpr void for_each_critical(Use use) const {
    if (count_ == 0) return;
    for (int x = 0; x < count_; ++x) mark_.item[x] = 0;
    int first = critical_;
    while (mark_.item[first] == 0) mark_.item[first] = 1, first = edge_of(first).from;
    int x = first;
    do
      if (position_.item[x] >= 0) use(rank_.item[x], position_.item[x]);
    while ((x = edge_of(x).from) != first);
  }

 private:
  using rule = needs_rule<Problem, Where, Slots>;
  static constexpr bool bounded = !std::is_same_v<Slots, unbounded_slots>;
  enum : int {
    order,
    handed_over,
    slot,
    before = slot + bounded,
    most_edges = before + rule::ordered
  };

  /// An edge to an action: the action begins no earlier than `time` after the beginning of action
  /// `from` in the step `steps` steps before.
  struct edge {
    int from = -1;
    int steps = 0;
    long time = 0;
  };

  template <class Each>
  static constexpr int counted(Each each) {
    int count = 0;
    each([&](int, action const& a) { count += 1 + a.with_next; });
    return count;
  }
  /// The step of a micro-batch, and its number there.
  constexpr int step_of(int micro_batch) const {
    return micro_batch >= 0 ? micro_batch / micro_batches_
                            : -((micro_batches_ - 1 - micro_batch) / micro_batches_);
  }
  constexpr int within(int micro_batch) const {
    return micro_batch - step_of(micro_batch) * micro_batches_;
  }

  /// The number of a step so late that its actions wait for no step before the first, and whose
  /// micro-batches are on the ranks on which those of the first step are.
  constexpr int late_step(Where const& where, [[maybe_unused]] Slots const& slots) const {
    long longest = 1;
    int pairs = 1;
    for (int c = 0; c < problem_.chunks; ++c) {
      int const copies = replicas(where, c);
      pairs = pairs_of(pairs, copies);
      if constexpr (bounded)
        if (c + 1 < problem_.chunks) {
          slot_count const ring = slots[static_cast<std::size_t>(c)];
          for (long const n : {ring.activation, ring.gradient})
            if (n < most_actions && n * replicas(where, c + 1) * copies > longest)
              longest = n * replicas(where, c + 1) * copies;
        }
    }
    long const least = 1 + longest / micro_batches_;
    return static_cast<int>((least + pairs - 1) / pairs * pairs);
  }

  template <class Each>
  constexpr void connect(Where const& where, Slots const& slots, bool trains, Each each) {
    // By result of one step: 1 + the action that makes the result, and the step of the action's
    // micro-batch.
    auto const one = rule{problem_, where, slots, trains, micro_batches_};
    auto made_by = scratch<int>(one.results()), made_for = scratch<int>(one.results());
    int x = 0, rank_before = -1, first = 0, position = 0, last_step = 0;
    action before_it{};
    auto const add = [&](int rank, int at, long time) {
      rank_.item[x] = rank, position_.item[x] = at;
      duration_.item[x] = ready_.item[x] = time;
      if (x > first) edge_at(x, order) = edge{x - 1, 0, duration_.item[x - 1]};
      edge_at(first, order) = edge{x, 1, time};  // its last action, so far
    };
    each([&](int rank, action const& a) {
      if (rank != rank_before) rank_before = rank, first = x, position = 0, before_it = action{};
      if (a.with_next) add(rank, ~position, 0), ++x;
      long time = problem_.time(a);
      if (before_it.with_next) {
        pair_time const pair = time_of(problem_, before_it, a);
        duration_.item[x - 1] = pair.first, ready_.item[x - 1] = pair.whole;
        time = pair.second();
      }
      add(rank, position++, time);
      before_it = a;
      int const step = step_of(a.micro_batch);
      if (step > last_step) last_step = step;
      auto const makes = [&](int which) {
        long const result = one.result_of(a.chunk, within(a.micro_batch), which);
        made_by.item[result] = x + 1, made_for.item[result] = step;
      };
      if (a.kind == action_kind::forward) makes(rule::output);
      if (makes_input_gradient(a.kind)) makes(rule::input_gradient);
      if (makes_weight_gradient(a.kind)) makes(rule::weight_gradient);
      ++x;
    });

    int const late = late_step(where, slots);
    auto const run = rule{problem_, where, slots, trains, (late + last_step + 1) * micro_batches_};
    x = 0;
    bool is_second = false;
    each([&](int rank, action a) {
      if (a.with_next) ++x;
      int const reader = is_second ? x - 2 : x;
      is_second = a.with_next;
      a.micro_batch += late * micro_batches_;
      result_needs const need = run.of(a, rank);
      // Action y begins `more` after the end of the action that makes the result.
      auto const wait = [&](int y, int which, long result, long more) {
        if (result == nothing_needed) return;
        int const kind = static_cast<int>((result - 1) / run.of_a_kind);
        long const place = (result - 1) % run.of_a_kind;
        int const chunk = static_cast<int>(place / run.of_a_chunk),
                  mb = static_cast<int>(place % run.of_a_chunk);
        long const local = one.result_of(chunk, within(mb), kind);
        int const maker = made_by.item[local] - 1;
        if (maker < 0) return;
        edge_at(y, which) =
            edge{maker, late - (step_of(mb) - made_for.item[local]), ready_.item[maker] + more};
      };
      wait(reader, handed_over, need.handed_over, need.hop);
      if constexpr (bounded) wait(reader, slot, need.slot, 0);
      if constexpr (rule::ordered) wait(x, before, need.before, -ready_.item[x]);
      ++x;
    });
  }

  /// Sorts the actions so that each follows the actions of its step for which it waits. The numbers
  /// of a rank's actions ascend.
  constexpr void sort() {
    auto next = scratch<int>(problem_.ranks), end = scratch<int>(problem_.ranks);
    for (int x = count_ - 1; x >= 0; --x) next.item[rank_.item[x]] = x;
    for (int x = 0; x < count_; ++x) end.item[rank_.item[x]] = x + 1;
    auto const is_ready = [&](int x) {
      for (int k = 0; k < most_edges; ++k)
        if (edge const& e = edge_at(x, k);
            e.from >= 0 && e.steps == 0 && e.from >= next.item[rank_.item[e.from]])
          return false;
      return true;
    };
    int count = 0, stuck = 0;
    for (bool any = true; any;) {
      any = false;
      for (int rank = 0; rank < problem_.ranks; ++rank) {
        int& x = next.item[rank];
        for (; x < end.item[rank] && is_ready(x); ++x) sorted_.item[count++] = x, any = true;
        if (x < end.item[rank]) stuck = x;
      }
    }
    if (count < count_)
      throw_error<error>(
          {"the period of a schedule: the table deadlocks on rank ", rank_.item[stuck],
           ", position ",
           position_.item[stuck] < 0 ? ~position_.item[stuck] : position_.item[stuck]});
  }

  // ---- policy iteration: the policy is one of the edges of each action ----

  /// The number of passes of follow(); the last pass leaves the first policy.
  static constexpr int first_passes = 2;

  /// Times a step behind the step before, and chooses for each action the edge that delays it.
  constexpr void follow() {
    for (int i = 0; i < count_; ++i) {
      int const x = sorted_.item[i];
      long latest = -1;
      for (int k = 0; k < most_edges; ++k)
        if (edge const& e = edge_at(x, k); e.from >= 0 && value_.item[e.from] + e.time > latest)
          latest = value_.item[e.from] + e.time, chosen_.item[x] = k;
      value_.item[x] = latest;
    }
  }
  /// Sets for every action time_ / steps_, the pace of the cycle to which the chosen edges lead,
  /// and value_, the sum of the edges up to the cycle, less what as many steps take at that pace.
  constexpr void evaluate() {
    for (int x = 0; x < count_; ++x) mark_.item[x] = 0;
    for (int x = 0; x < count_; ++x) {
      int length = 0, end = x;
      for (; mark_.item[end] == 0; end = edge_of(end).from)
        mark_.item[end] = x + 1, path_.item[length++] = end;
      bool const is_cycle = mark_.item[end] == x + 1;
      if (is_cycle) close_cycle(end);
      while (length > 0)
        if (int const y = path_.item[--length]; !is_cycle || y != end) {
          edge const& e = edge_of(y);
          time_.item[y] = time_.item[e.from], steps_.item[y] = steps_.item[e.from];
          value_.item[y] = value_by(y, e);
        }
    }
  }
  constexpr void close_cycle(int root) {
    long time = 0, steps = 0;
    int x = root;
    do {
      edge const& e = edge_of(x);
      time += e.time, steps += e.steps, x = e.from;
    } while (x != root);
    step_period const pace = in_lowest_terms(time, steps);
    // The value is kept where the cycle is as slow as before, so that values only grow.
    if (pace != step_period{time_.item[root], steps_.item[root]}) value_.item[root] = 0;
    time_.item[root] = pace.time, steps_.item[root] = pace.steps;
  }
  /// Chooses better edges. Returns whether there are any.
  constexpr bool improve() {
    bool any = false;
    for (int i = 0; i < count_; ++i)
      for (int x = sorted_.item[i], k = 0; k < most_edges; ++k)
        if (edge const& e = edge_at(x, k); e.from >= 0 && is_slower(e.from, x)) {
          chosen_.item[x] = k, any = true;
          time_.item[x] = time_.item[e.from], steps_.item[x] = steps_.item[e.from];
        }
    if (any) return true;
    for (int i = 0; i < count_; ++i)
      for (int x = sorted_.item[i], k = 0; k < most_edges; ++k)
        if (edge const& e = edge_at(x, k);
            e.from >= 0 && !is_slower(x, e.from) && value_by(x, e) > value_.item[x]) {
          chosen_.item[x] = k, any = true;
          value_.item[x] = value_by(x, e);
        }
    return any;
  }
  constexpr long value_by(int x, edge const& e) const {
    return value_.item[e.from] + e.time * steps_.item[x] - time_.item[x] * e.steps;
  }
  /// Whether the cycle of action x is slower than that of y.
  constexpr bool is_slower(int x, int y) const {
    return time_.item[x] * steps_.item[y] > time_.item[y] * steps_.item[x];
  }

  constexpr edge& edge_at(int x, int which) { return edges_.item[most_edges * x + which]; }
  constexpr edge const& edge_at(int x, int which) const {
    return edges_.item[most_edges * x + which];
  }
  constexpr edge const& edge_of(int x) const { return edge_at(x, chosen_.item[x]); }

  Problem const& problem_;
  int micro_batches_, count_, critical_ = 0;
  // By action. Before a pair there is one entry more, which takes no time and waits for what the
  // pair's backward reads; the `position_` of that entry is the complement of the forward's.
  scratch<int> rank_, position_;
  scratch<long> duration_, ready_;  // ready_: the time until the action's result is there
  scratch<edge> edges_;             // by action and kind of edge
  scratch<int> sorted_;
  scratch<int> chosen_, mark_;  // by action: its edge; whether it has been visited
  scratch<long> time_, steps_, value_;
  scratch<int> path_;  // actions on the way to a cycle
};

/// Calls use(rank, action) for a table's actions, rank by rank.
template <action_table Table>
constexpr auto actions_of(Table const& table) {
  return [&table](auto use) {
    for (int rank = 0; rank < table.ranks(); ++rank)
      for (int i = 0; i < table.size(rank); ++i) use(rank, table.at(rank, i));
  };
}

template <pipeline_problem Problem, action_table Table, class Slots>
constexpr auto repeated_step_of(Problem const& problem, Table const& table, Slots const& slots) {
  require_actions(problem, table, slots);
  using where = std::remove_cvref_t<decltype(Table::where)>;
  return repeated_step<Problem, where, Slots>(problem, table.where, slots, table.trains,
                                              problem.micro_batches, actions_of(table));
}

}  // namespace detail

namespace schedules {

/// The period of a table over channels of `slots[boundary]` slots; without `slots` no rank waits
/// for a slot.
///
/// law:    the makespan of n steps without a barrier between them, divided by n, approaches the
///         period
/// law:    work of the busiest rank <= period <= stage-local span <= makespan
/// needs:  validate(problem, table, slots)
/// throws: pp::error as simulate(), and for a table that deadlocks
template <pipeline_problem Problem, detail::action_table Table,
          class Slots = detail::unbounded_slots>
constexpr step_period period_of(Problem const& problem, Table const& table,
                                Slots const& slots = Slots{}) {
  return detail::repeated_step_of(problem, table, slots).run();
}

/// The period of a family without a flush that updates after every `mini_batch` micro-batches, once
/// its pipeline is full. The problem's number of micro-batches does not matter. As updates take no
/// time and the order repeats with every micro-batch, the period is `mini_batch` times that of one
/// micro-batch.
///
/// throws: pp::error if the problem does not fit the family's placement
template <schedule_policy Flow, pipeline_problem Problem, class Slots = detail::unbounded_slots>
  requires(detail::is_unflushed<Flow>())
constexpr step_period period_of(Problem const& problem, int mini_batch,
                                Slots const& slots = Slots{}) {
  detail::require_placement(problem, Flow::where);
  auto const each = [&](auto use) {
    for (int rank = 0; rank < problem.ranks; ++rank)
      Flow::for_each_in_period(problem.ranks, rank, 1, [&](action const& a) { use(rank, a); });
  };
  auto const one =
      detail::repeated_step<Problem, placement, Slots>(problem, Flow::where, slots, true, 1, each)
          .run();
  return detail::in_lowest_terms(mini_batch * one.time, one.steps);
}

}  // namespace schedules

namespace detail {

/// The period of Policy's steps, which overlap: the period of the table, or of a family without a
/// flush.
///
/// throws: as period_of
template <schedule_policy Policy, pipeline_problem Problem, action_table Table>
  requires(overlap_of<Policy>() != step_overlap::none)
constexpr step_period period_of_steps(Problem const& problem, Table const& table) {
  if constexpr (overlap_of<Policy>() == step_overlap::free)
    return period_of<Policy>(problem, problem.micro_batches);
  else
    return period_of(problem, table);
}

/// Whether every compiler can find the period of the policy's table at compile time within the
/// compiler's default limits: up to 3,072 actions, that is 16 ranks and 64 micro-batches with B and
/// W apart, or half as many with pairs.
template <schedule_policy Policy>
constexpr bool period_fits_a_constant(int ranks, int micro_batches) {
  return (has_pairs<Policy>() ? 2 : 1) * ranks * actions_per_rank<Policy>(micro_batches) <=
         3 * 16 * 64;
}

}  // namespace detail

namespace schedules {

/// Calls use(rank, position) for the actions on a slowest cycle: only speeding up an action on a
/// slowest cycle makes steps faster. A cycle may pass an action several times, in different steps.
/// Returns the period.
///
/// needs, throws: as period_of
template <pipeline_problem Problem, detail::action_table Table, class Use,
          class Slots = detail::unbounded_slots>
constexpr step_period for_each_critical_of_period(Problem const& problem, Table const& table,
                                                  Use use, Slots const& slots = Slots{}) {
  auto step = detail::repeated_step_of(problem, table, slots);
  step_period const period = step.run();
  step.for_each_critical(use);
  return period;
}

}  // namespace schedules

}  // namespace pp
