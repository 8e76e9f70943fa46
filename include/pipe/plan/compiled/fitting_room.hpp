// SPDX-License-Identifier: BSL-1.0
//
// A memory limit as the limit of a schedule. The schedule decides how many micro-batches are in
// flight; what a rank has beside their values (weights, scratch, bookkeeping) and how many slots
// its boundaries have is known only from the plan. So the plan of a first table says how much is
// left, and as long as a rank is over the limit, the table is made again for what is left.
#pragma once

#include <cstddef>
#include <type_traits>

#include <pipe/passes/layer_profile.hpp>
#include <pipe/plan/options/memory_limit.hpp>
#include <pipe/plan/options/options.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/schedule/in_flight.hpp>

namespace pp::detail {

/// The most times that a table is made again.
inline constexpr int most_room_trials = 3;

/// Whether the memory limit of a pipeline with these options limits its schedule.
template <class Chosen>
inline constexpr bool is_limited_in_room =
    Chosen::memory_limit > 0 && !Chosen::is_free && limits_memory<typename Chosen::flushed>();

/// The options of a trial; of number fitting_trial: those of the first trial that fits, chosen when
/// the program first asks.
template <class Set, int Trial>
struct trial_options;
template <class... O, int Trial>
struct trial_options<option_set<O...>, Trial> {
  static constexpr long limit = option_set<O...>::template get<option_family::memory_limit>::value;
  using type = option_set<limit_in_trial<limit, Trial>, O...>;
};
template <long Limit, int Before, class... O, int Trial>
struct trial_options<option_set<limit_in_trial<Limit, Before>, O...>, Trial> {
  using type = option_set<limit_in_trial<Limit, Trial>, O...>;
};

/// By rank: what the values of micro-batches may take in the trial after `Before`. All that grows
/// with the number of micro-batches in flight is taken to grow in proportion to their records. At
/// least one micro-batch has room.
///
/// units: bytes of records
template <class Before>
constexpr auto next_room() {
  auto const& times = Before::times();
  auto const& memory = Before::memory();
  list<long, Before::ranks> room;
  for (int rank = 0; rank < Before::ranks; ++rank) {
    long values = 0, least = 1;
    for (chunk_holder const& h : memory.holders.items)
      if (h.rank == rank) {
        values += memory.chunks[h.chunk].sizes.values;
        least += times.cost(h.chunk).memory.forward;
      }
    long const fixed = memory.rank[rank].bytes - values, before = memory_limit(times, rank),
               peak = schedules::peak_memory(times, Before::table(), rank);
    long next = in_proportion(peak, Before::memory_limit - fixed, values);
    if (before > 0 && before < next) next = before;
    room[rank] = next > least ? next : least;
  }
  return room;
}

/// Calls use(trial) with the first trial that fits, or the last.
///
/// Work: has the trials as in_trial<n>
template <class Work, int Trial = 0, class Use>
auto const& in_fitting_trial(Use const& use) {
  using trial = typename Work::template in_trial<Trial>;
  if constexpr (Trial < most_room_trials)
    if (fullest_over(trial::memory().rank, trial::memory_limit) >= 0)
      return in_fitting_trial<Work, Trial + 1>(use);
  return use(std::type_identity<trial>{});
}

/// Maker of the room by rank in Work's own trial; 0: unlimited.
template <class Work>
struct make_room {
  static constexpr auto make() {
    if constexpr (Work::room_trial == 0)
      return list<long, Work::ranks>{};
    else if constexpr (Work::room_trial == fitting_trial)
      return in_fitting_trial<Work>(
          []<class T>(std::type_identity<T>) -> auto const& { return T::work::room(); });
    else
      return next_room<typename Work::template in_trial<Work::room_trial - 1>>();
  }
};

/// The options of a pipeline whose schedule fits its memory limit, if a trial does.
///
/// Compiled: compiled_pipeline, of a model and options
template <template <class, class> class Compiled, class M, class Set, int Trial = 0>
struct options_in_room {
  using type = Set;
};
template <template <class, class> class Compiled, class M, class Set, int Trial>
  requires is_limited_in_room<chosen_options<Set>>
struct options_in_room<Compiled, M, Set, Trial> {
  static auto choose() {
    if constexpr (!Compiled<M, Set>::by_compiler) {
      return std::type_identity<typename trial_options<Set, fitting_trial>::type>{};
    } else {
      using tried = typename trial_options<Set, Trial>::type;
      using compiled = Compiled<M, tried>;
      if constexpr (Trial == most_room_trials ||
                    fullest_over(compiled::memory().rank, compiled::memory_limit) < 0)
        return std::type_identity<tried>{};
      else
        return options_in_room<Compiled, M, Set, Trial + 1>{};
    }
  }
  using type = typename decltype(choose())::type;
};

}  // namespace pp::detail
