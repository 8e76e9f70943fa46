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

/// Micro-batches with which the peaks of a schedule are found: a few tell a bounded peak from one
/// that grows with their number.
template <class Schedule, int Ranks, int MicroBatches>
constexpr int sampled_micro_batches() {
  constexpr int few = 3 * Ranks + MicroBatches % Ranks;
  if constexpr (is_of_this_library<Schedule> && few < MicroBatches)
    return why_refused<Schedule>(Ranks, few) == nullptr ? few : MicroBatches;
  else
    return MicroBatches;
}
/// Whether a schedule has a small table that does not depend on times.
template <class Schedule, int Ranks, int MicroBatches>
constexpr bool has_small_table() {
  if constexpr (!is_of_this_library<Schedule> ||
                requires(problem<> const& times) { Schedule::options(times); })
    return false;
  else
    return Ranks * MicroBatches <= 8 * 32 && fits_a_constant<Schedule>(Ranks, MicroBatches) &&
           why_refused<Schedule>(Ranks, MicroBatches) == nullptr;
}
/// Whether the peaks of a small table are all of its micro-batches.
template <class Schedule, int Ranks>
constexpr bool keeps_all() {
  constexpr int few = 4;
  if constexpr (Ranks > few && has_small_table<Schedule, few, 3 * few>())
    return peak_in_chunk(make_table<Schedule, few, 3 * few>(), few / 2) == 3 * few;
  else
    return false;
}

/// Finds the micro-batches in flight by stage, in the table of a schedule for stages of equal
/// times. Where there is no such table yet, the peaks of 1F1B: of a user-defined schedule, of one
/// that is searched for the times, or of one too large to be made twice, unless a small table of
/// the last keeps all micro-batches.
template <class Schedule, int Stages, int Ranks, int MicroBatches>
constexpr auto find_in_flight() {
  constexpr int sampled = sampled_micro_batches<Schedule, Ranks, MicroBatches>();
  list<int, Stages> all;
  if constexpr (has_small_table<Schedule, Ranks, sampled>()) {
    auto const table = make_table<Schedule, Ranks, sampled>();
    for (int s = 0; s < Stages; ++s) {
      int const peak = peak_in_chunk(table, s);
      all[s] = peak == sampled ? MicroBatches : peak;
    }
  } else {
    for (int s = 0; s < Stages; ++s)
      all[s] =
          keeps_all<Schedule, Ranks>() || Stages - s > MicroBatches ? MicroBatches : Stages - s;
  }
  return all;
}
template <class Schedule, int Stages, int Ranks, int MicroBatches>
inline constexpr auto stages_in_flight = find_in_flight<Schedule, Stages, Ranks, MicroBatches>();

}  // namespace pp::detail
