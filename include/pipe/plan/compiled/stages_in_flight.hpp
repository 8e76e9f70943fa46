// SPDX-License-Identifier: BSL-1.0
//
// Micro-batches in flight in each stage before the stages' times are known, by which the cuts of a
// model weigh what a micro-batch keeps.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/policy.hpp>

namespace pp::detail {

/// Micro-batches in flight by stage in the table of a schedule for stages of equal times. Where
/// there is no such table yet, the peaks of 1F1B: of a user-defined schedule, of one that is
/// searched for the times, or of one too large to be made twice, unless a small table of the last
/// keeps all micro-batches.
template <class Schedule, int Stages, int Ranks, int MicroBatches>
struct stages_in_flight {
  /// A few micro-batches tell a bounded peak from one that grows with their number.
  static constexpr int sampled = [](auto...) {
    constexpr int few = 3 * Ranks + MicroBatches % Ranks;
    if constexpr (is_of_this_library<Schedule> && few < MicroBatches)
      return why_refused<Schedule>(Ranks, few) == nullptr ? few : MicroBatches;
    else
      return MicroBatches;
  }();
  template <int R, int M>
  static constexpr bool has_table() {
    if constexpr (!is_of_this_library<Schedule> ||
                  requires(problem<> const& times) { Schedule::options(times); })
      return false;
    else
      return R * M <= 8 * 32 && fits_a_constant<Schedule>(R, M) &&
             why_refused<Schedule>(R, M) == nullptr &&
             chunks_for(Schedule::where, Ranks, Schedule::chunks_per_rank) == Stages;
  }
  /// Whether the peaks of a small table are all of its micro-batches.
  static constexpr bool keeps_all() {
    if constexpr (constexpr int few = 4; Ranks > few && has_table<few, 3 * few>())
      return peak_in_chunk(make_table<Schedule, few, 3 * few>(), few / 2) == 3 * few;
    else
      return false;
  }
  /// shape: [stages]
  static constexpr auto most = [](auto...) {
    list<int, Stages> all;
    if constexpr (has_table<Ranks, sampled>()) {
      auto const table = make_table<Schedule, Ranks, sampled>();
      for (int s = 0; s < Stages; ++s) {
        int const peak = peak_in_chunk(table, s);
        all[s] = peak == sampled ? MicroBatches : peak;
      }
    } else {
      for (int s = 0; s < Stages; ++s)
        all[s] = keeps_all() || Stages - s > MicroBatches ? MicroBatches : Stages - s;
    }
    return all;
  }();
};

}  // namespace pp::detail
