// SPDX-License-Identifier: BSL-1.0
//
// The number of slots that a boundary needs: the values on it at once, on the simulated timeline.
// With this many slots per channel no rank waits for a slot on that timeline, and no deadlock is
// possible however long the actions really take. Each wait for a slot is for an action that starts
// strictly earlier on the simulated timeline, so waits cannot form a cycle.
#pragma once

#include <pipe/schedule/simulate.hpp>

namespace pp {

namespace detail {

/// The length that a ring needs for values that are alive in [from[mb], until[mb]), where `writers`
/// writers take micro-batches in turn and each has a ring of its own.
///
/// needs: from[mb] < until[mb]; from ascends within a writer
constexpr int ring_length(int writers, int micro_batches, scratch<long> const& from,
                          scratch<long> const& until) {
  int longest = 0;
  for (int first = 0; first < writers && first < micro_batches; ++first)
    for (int mb = first, oldest = first; mb < micro_batches; mb += writers) {
      while (until.item[oldest] <= from.item[mb]) oldest += writers;
      int const live = (mb - oldest) / writers + 1;
      if (live > longest) longest = live;
    }
  return longest;
}

}  // namespace detail

namespace schedules {

/// The slots that a timeline needs between `boundary` and `boundary + 1`. A value occupies its slot
/// from the start of the F that writes it to the end of the last action that reads it: BW or W of
/// the next chunk, or the next chunk's F in a forward-only table. A gradient occupies its slot from
/// the start of B or BW of the next chunk to the end of BW or W of `boundary`'s chunk.
///
/// law:    with these slots at every boundary, or more, the table still validates, and its timeline
///         is unchanged
/// needs:  validate(problem, table); `when` is its timeline
/// throws: pp::error if there is no such boundary, or the timeline is of another table
template <pipeline_problem Problem, detail::action_table Table, class Rows>
constexpr detail::slot_count boundary_slots(Problem const& problem, Table const& table,
                                            timeline<Rows> const& when, int boundary) {
  detail::require_placement(problem, table.where);
  detail::require_spans(table, when);
  if (table.ranks() != problem.ranks)
    detail::throw_error<error>({"a schedule's table: expected ", problem.ranks,
                                " ranks, as its problem has, got ", table.ranks()});
  detail::checked_index<error>("boundary", boundary, problem.chunks - 1);
  auto const is_last_reader = [&](action const& a) {
    return table.trains ? detail::makes_weight_gradient(a.kind) : a.kind == action_kind::forward;
  };
  // A reader of zero duration still reads after its start: otherwise writers and readers at the
  // same time could wait for each other in a cycle.
  auto const gone = [](time_span const& reader) {
    return reader.end > reader.start ? reader.end : reader.start + 1;
  };

  int const micro_batches = problem.micro_batches;
  auto value_from = detail::scratch<long>(micro_batches);
  auto value_until = detail::scratch<long>(micro_batches);
  auto gradient_from = detail::scratch<long>(micro_batches);
  auto gradient_until = detail::scratch<long>(micro_batches);

  detail::for_each_of_chunk(table, boundary, [&](int rank, int position, action const& a) {
    time_span const span = when.spans.at(rank, position);
    if (a.kind == action_kind::forward) value_from.item[a.micro_batch] = span.start;
    if (is_last_reader(a)) gradient_until.item[a.micro_batch] = gone(span);
  });
  detail::for_each_of_chunk(table, boundary + 1, [&](int rank, int position, action const& a) {
    time_span const span = when.spans.at(rank, position);
    if (detail::makes_input_gradient(a.kind))
      gradient_from.item[a.micro_batch] = detail::is_second(table, rank, position)
                                              ? when.spans.at(rank, position - 1).start
                                              : span.start;
    if (is_last_reader(a)) value_until.item[a.micro_batch] = gone(span);
  });

  int const gradients = table.trains
                            ? detail::ring_length(replicas(table.where, boundary + 1),
                                                  micro_batches, gradient_from, gradient_until)
                            : 0;
  return detail::slot_count{
      detail::ring_length(replicas(table.where, boundary), micro_batches, value_from, value_until),
      gradients};
}

}  // namespace schedules

}  // namespace pp
