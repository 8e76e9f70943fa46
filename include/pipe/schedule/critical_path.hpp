// SPDX-License-Identifier: BSL-1.0
//
// The critical path of a step: a chain of actions from time 0 to the makespan, each started at the
// moment its predecessor allowed. Only speeding up an action on the path shortens the step.
#pragma once

#include <pipe/schedule/simulate.hpp>

namespace pp::detail {

/// An action by rank and position; rank -1 for none.
struct action_place {
  int rank = -1, position = -1;
};

/// The action of a neighbouring chunk whose result `a` reads.
///
/// cost: a walk through a rank's list; for many queries build an index
template <pipeline_problem Problem, action_table Table>
constexpr action_place source_of(Problem const& problem, Table const& table, action const& a) {
  bool const is_forward = a.kind == action_kind::forward;
  int const chunk = is_forward ? a.chunk - 1 : a.chunk + 1;
  if (!(is_forward || makes_input_gradient(a.kind)) || chunk < 0 || chunk >= problem.chunks)
    return {};
  int const rank = rank_of(table.where, problem.ranks, chunk, a.micro_batch);
  for (int i = 0; i < table.size(rank); ++i) {
    action const x = table.at(rank, i);
    bool const made = is_forward ? x.kind == action_kind::forward : makes_input_gradient(x.kind);
    if (made && x.chunk == chunk && x.micro_batch == a.micro_batch) return {rank, i};
  }
  return {};
}

/// The action of the previous micro-batch behind which `a` adds, where several ranks add to one
/// gradient or to one sum of a buffer.
template <pipeline_problem Problem, action_table Table>
constexpr action_place added_before(Problem const& problem, Table const& table, action const& a) {
  if constexpr (adds_in_order<std::remove_cvref_t<decltype(table.where)>>) {
    bool const is_forward = a.kind == action_kind::forward;
    if (a.micro_batch == 0 || !(is_forward || makes_weight_gradient(a.kind))) return {};
    auto const adds = [&](action_kind k) {
      return is_forward ? k == action_kind::forward : makes_weight_gradient(k);
    };
    int const rank = rank_of(table.where, problem.ranks, a.chunk, a.micro_batch - 1);
    for (int i = 0; i < table.size(rank); ++i)
      if (action const x = table.at(rank, i);
          adds(x.kind) && x.chunk == a.chunk && x.micro_batch == a.micro_batch - 1)
        return {rank, i};
  }
  return {};
}

/// Calls use(rank, position) for the actions of a longest path, the last one first. source(action)
/// is a faster equivalent of source_of. The predecessor of an action is the latest of three: the
/// rank's previous action, the arrival of the action's input, and added_before. So the path is also
/// defined for measured timelines.
///
/// law:    on a timeline of simulate(): the first action called ends at the makespan, the last one
///         starts at 0, and only hops lie between consecutive actions; but an action that adds
///         behind another may begin with it
/// needs:  channels on which no rank waits for a slot
/// throws: pp::error if the timeline is of another table
template <pipeline_problem Problem, action_table Table, class Rows, class Use, class Source>
constexpr void for_each_critical(Problem const& problem, Table const& table,
                                 timeline<Rows> const& when, Use use, Source source) {
  require_spans(table, when);
  action_place at;
  for (int r = 0; r < table.ranks() && at.rank < 0; ++r)
    if (int const n = when.spans.size(r); n > 0 && when.spans.at(r, n - 1).end == when.makespan)
      at = {r, n - 1};
  while (at.rank >= 0) {
    use(at.rank, at.position);
    action const a = table.at(at.rank, at.position);
    action_place const own{at.position > 0 ? at.rank : -1, at.position - 1};
    long const free = own.rank < 0 ? -1 : when.spans.at(own.rank, own.position).end;
    long arrived = -1;
    action_place input;
    // The action that made the input; in a pair the second one, at whose end the results are.
    auto const reads = [&](action const& reader) {
      action_place made = source(reader);
      if (made.rank < 0) return;
      int const boundary = reader.kind == action_kind::forward ? reader.chunk - 1 : reader.chunk;
      if (table.at(made.rank, made.position).with_next &&
          made.position + 1 < when.spans.size(made.rank))
        ++made.position;
      long const there = when.spans.at(made.rank, made.position).end +
                         hop_time_of(problem, made.rank, at.rank, boundary, reader.micro_batch);
      if (there > arrived) arrived = there, input = made;
    };
    // The inputs of a pair are those of both.
    if (!is_second(table, at.rank, at.position)) reads(a);
    if (a.with_next) reads(table.at(at.rank, at.position + 1));
    at = arrived > free ? input : own;
    if (action_place const before = added_before(problem, table, a); before.rank >= 0)
      if (long const begun = when.spans.at(before.rank, before.position).start;
          begun > free && begun > arrived)
        at = before;
  }
}
template <pipeline_problem Problem, action_table Table, class Rows, class Use>
constexpr void for_each_critical(Problem const& problem, Table const& table,
                                 timeline<Rows> const& when, Use use) {
  for_each_critical(problem, table, when, use,
                    [&](action const& a) { return source_of(problem, table, a); });
}

}  // namespace pp::detail
