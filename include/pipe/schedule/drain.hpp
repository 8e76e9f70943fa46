// SPDX-License-Identifier: BSL-1.0
//
// The time in which a rank's gradients can be added up over replicas while other ranks compute: the
// drain of its step, and the fill of the next one.
#pragma once

#include <pipe/schedule/simulate.hpp>

namespace pp {

namespace schedules {

/// The idle ends of a rank's step.
///
/// law: an exchange of the rank's gradients that takes at most `drain` delays no step. Where each
///      rank begins a step as soon as that rank has updated, without a barrier, an exchange of at
///      most drain + fill delays no rank either: all actions of a step read the same weights, so
///      nothing is stale
/// units: those of the problem's times
/// source: Ye et al., Hippie, 2021, which hides the exchange of a stage behind its last backward
struct exchange_window {
  long fill = 0;   ///< from the start of a step to the rank's first action
  long drain = 0;  ///< from the rank's last action that adds to gradients to the end of all
};

/// The window of a rank of a table and its timeline. For a rank without actions that add to
/// gradients the drain is the makespan, for a rank without actions the fill, too.
///
/// throws: pp::error if there is no such rank, or the timeline is not the table's
template <detail::action_table Table, class Rows>
constexpr exchange_window window_of(Table const& table, timeline<Rows> const& when, int rank) {
  detail::require_spans(table, when);
  detail::require_rank(table, rank);
  exchange_window w{when.makespan, when.makespan};
  for (int i = 0; i < when.spans.size(rank); ++i) {
    time_span const span = when.spans.at(rank, i);
    action_kind const kind = table.at(rank, i).kind;
    if (span.start < w.fill) w.fill = span.start;
    if (kind == action_kind::backward || kind == action_kind::backward_weight)
      if (when.makespan - span.end < w.drain) w.drain = when.makespan - span.end;
  }
  return w;
}

}  // namespace schedules

}  // namespace pp
