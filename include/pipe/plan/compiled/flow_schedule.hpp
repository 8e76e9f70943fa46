// SPDX-License-Identifier: BSL-1.0
//
// The schedule of steps that overlap without a flush: the order of each rank's period and, of a run
// long enough to show all that is there at once, versions, slots and micro-batches in flight.
#pragma once

#include <pipe/base/once.hpp>
#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/validate.hpp>

namespace pp::detail {

/// A run of family Flow with an update after every MiniBatch micro-batches, as a family.
template <class Flow, int MiniBatch>
struct run_of_flow : Flow {
  static constexpr char const* refuses(int, int) { return nullptr; }
  template <pipeline_problem Problem, action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    Flow::fill_run(problem, table, MiniBatch);
  }
};

/// How many mini-batches ahead of its period an action is at most.
constexpr int steps_ahead_of_flow(int ranks, int mini_batch) {
  return (ranks - 1 + mini_batch - 1) / mini_batch;
}

/// Mini-batches of a run in which the pipeline is full: those that it takes to fill it, those that
/// it takes to drain, and three, of which the last reads no version that was there at the start.
constexpr int periods_of_flow(int ranks, int mini_batch) {
  return 3 + 2 * steps_ahead_of_flow(ranks, mini_batch);
}

/// Versions of the weights on a rank: those that are there at once and, if there is a later rank, a
/// predicted one.
template <class Flow, action_table Table>
constexpr int version_slots_of(Table const& run, int ranks, int rank) {
  return peak_versions(run, rank) + (predicts<Flow>() && rank + 1 < ranks);
}

/// If steps overlap and values are copied: room for reports on steps in progress, see step_flow.
template <class Flow, class Transport>
constexpr int report_slots_of(int ranks, int mini_batch) {
  if (overlap_of<Flow>() == step_overlap::none || !Transport::copies) return 0;
  bool const is_free = overlap_of<Flow>() == step_overlap::free;
  return 3 + (is_free ? steps_ahead_of_flow(ranks, mini_batch) : 0);
}

/// The larger numbers of slots.
constexpr slot_count most_of(slot_count a, slot_count b) {
  return {a.activation > b.activation ? a.activation : b.activation,
          a.gradient > b.gradient ? a.gradient : b.gradient};
}

/// The schedule of Work's flow, whose updates are free: see step_overlap.
template <class Work>
struct flow_schedule {
  static constexpr int mini_batch = Work::mini_batch, ranks = Work::ranks;
  using family = run_of_flow<typename Work::schedule, mini_batch>;

  static constexpr int micro_batches = periods_of_flow(ranks, mini_batch) * mini_batch;
  /// Whether the compiler can make the run and prove it.
  static constexpr bool fits = fits_a_constant<family>(ranks, micro_batches);

  struct make_problem {
    static constexpr auto make() {
      auto whole = Work::times();
      whole.micro_batches = micro_batches;
      return whole;
    }
  };
  static constexpr auto const& times() { return once<Work::by_compiler, make_problem>::get(); }
  struct make_run {
    static constexpr auto make() {
      if constexpr (Work::by_compiler)
        return make_table<family, ranks, micro_batches>(times(), Work::where);
      else
        return make_dynamic_table<family>(times(), Work::where);
    }
  };
  static constexpr auto const& table() { return once<Work::by_compiler, make_run>::get(); }
  struct judge {
    static constexpr verdict make() { return validate(times(), table()); }
  };
  static constexpr verdict const& judgement() { return once<Work::by_compiler, judge>::get(); }
  struct make_timeline {
    static constexpr auto make() { return simulate(times(), table()); }
  };
  static constexpr auto const& timeline() { return once<Work::by_compiler, make_timeline>::get(); }

  static constexpr slot_count slots_after(int stage) {
    return spare_slots(boundary_slots(times(), table(), timeline(), stage), micro_batches);
  }
  static constexpr int in_flight(int chunk) { return peak_in_chunk(table(), chunk); }
  static constexpr int version_slots(int chunk) {
    return version_slots_of<family>(table(), ranks, rank_of(Work::where, ranks, chunk));
  }

  /// By rank: the actions of a period.
  struct make_period {
    static constexpr auto make() {
      auto rows = [] {
        if constexpr (Work::by_compiler)
          return static_rows<action, ranks, (2 + recomputes_ahead<family>()) * mini_batch>{};
        else
          return dynamic_rows<action>(ranks);
      }();
      for (int r = 0; r < ranks; ++r)
        Work::schedule::for_each_in_period(ranks, r, mini_batch,
                                           [&](action const& a) { rows.push(r, a); });
      return rows;
    }
  };
  static constexpr auto const& period() { return once<Work::by_compiler, make_period>::get(); }
};

}  // namespace pp::detail
