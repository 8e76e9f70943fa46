// SPDX-License-Identifier: BSL-1.0
//
// Proof, times and memory of a table at run time, in one execution and without the spans of its
// actions: a table of a thousand ranks and millions of actions is compared with others by a few
// numbers of each rank.
#pragma once

#include <vector>

#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/validate.hpp>

namespace pp {

namespace detail {

/// The sums of a rank's spans, in place of the spans.
struct span_sums {
  long first_start = 0, last_end = 0, busy = 0;
  bool any = false;
};

/// What timeline reads of spans, for ranks whose spans are added up as they come.
struct added_spans {
  std::vector<span_sums> of_rank;

  int ranks() const { return static_cast<int>(of_rank.size()); }
  span_sums const& at(int rank) const {
    return of_rank[static_cast<std::size_t>(checked_index<error>("rank", rank, ranks()))];
  }
  long busy(int rank) const { return at(rank).busy; }
  long local_span(int rank) const { return at(rank).last_end - at(rank).first_start; }
  void push(int rank, time_span const& span) {
    span_sums& mine = of_rank[static_cast<std::size_t>(rank)];
    if (!mine.any) mine.any = true, mine.first_start = span.start;
    mine.last_end = span.end;
    mine.busy += span.end - span.start;
  }
};

}  // namespace detail

namespace schedules {

/// Proof, times and memory of a table, without its spans.
struct appraisal {
  verdict found;  ///< the first fault, or none
  /// As of simulate(), but without `spans.at`; not complete unless the table is right.
  timeline<detail::added_spans> when;
  long peak = 0;  ///< of memory, on the rank that needs the most
};

/// The first fault of a schedule, or its times and its memory.
///
/// law:  found == validate(problem, table); if that is ok, `when` has the numbers of
///       simulate(problem, table), and `peak` is the highest peak_memory
/// cost: one execution of the table, where validate() and simulate() have one each
template <pipeline_problem Problem, detail::action_table Table>
appraisal appraise(Problem const& problem, Table const& table) {
  appraisal result;
  result.found = detail::check_shape(problem, table);
  if (result.found.ok()) result.found = detail::check_complete(problem, table);
  if (result.found.ok()) result.found = detail::check_order(problem, table);
  if (result.found.ok()) result.found = detail::check_resources(problem, table, result.peak);
  if (!result.found.ok()) return result;
  result.when.spans.of_rank.resize(static_cast<std::size_t>(problem.ranks));
  result.when = detail::simulate_into(std::move(result.when.spans), problem, table);
  if (!result.when.complete) result.found = detail::check_progress(problem, table);
  return result;
}

}  // namespace schedules

}  // namespace pp
