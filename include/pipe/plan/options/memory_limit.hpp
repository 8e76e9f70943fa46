// SPDX-License-Identifier: BSL-1.0
//
// The option for a limit on the memory of a rank, checked against the plan at compile time, or at
// construction for schedules that the program makes.
#pragma once

#include <type_traits>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/plan/options/family.hpp>
#include <pipe/plan/plan.hpp>
#include <pipe/schedule/proved.hpp>

namespace pp {

namespace option_family {
struct memory_limit;
}

/// Upper bound of every rank's planned memory, N bytes (default 0: no limit).
template <long N>
struct MemoryLimit {
  using family = option_family::memory_limit;
  static constexpr long value = N;
};

namespace detail {

/// MemoryLimit<N> in a trial of a schedule that it limits: see fitting_room.hpp.
template <long N, int Trial>
struct limit_in_trial : MemoryLimit<N> {
  static constexpr int trial = Trial;
};
/// In place of a trial's number: the first trial that fits.
inline constexpr int fitting_trial = -1;

/// The number of the trial; 0 for a first or only one.
template <class Limit>
constexpr int trial_of() {
  if constexpr (requires { Limit::trial; })
    return Limit::trial;
  else
    return 0;
}

}  // namespace detail

namespace wrong {
/// Words of the message.
template <long Bytes>
struct LimitBytes;
template <long Bytes>
struct NeededBytes;
template <long Bytes>
struct OverBytes;
template <memory_use What, long Bytes>
struct Takes;
}  // namespace wrong

/// The family of the memory limit. Here only its sign is checked; the limit itself needs the plan,
/// see diagnose_memory_limit.
struct option_family::memory_limit : detail::any_family {
  using fallback = MemoryLimit<0>;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<memory_limit>;
    if constexpr (option::value < 0)
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

namespace detail {

/// The fullest rank if its memory exceeds the limit, or -1. A limit of 0 is none.
template <class Ranks>
constexpr int fullest_over(Ranks const& ranks, long limit) {
  int fullest = 0;
  for (int r = 1; r < ranks.size(); ++r)
    if (ranks[r].bytes > ranks[fullest].bytes) fullest = r;
  return limit > 0 && ranks[fullest].bytes > limit ? fullest : -1;
}

/// The check of a plan that is no constant: of a schedule made at run time, and of Planned.
///
/// throws: error that names the fullest rank, if it is over the limit
template <class Ranks>
void require_memory(Ranks const& ranks, long limit) {
  if (int const rank = fullest_over(ranks, limit); rank >= 0)
    detail::throw_error<error>({"rank ", rank, " needs ", ranks[rank].bytes, " bytes of memory, ",
                                ranks[rank].bytes - limit, " more than the limit of ", limit});
}

/// Number of uses of memory with at least one byte.
constexpr int used(list<memory_share, memory_uses> const& shares) {
  int n = 0;
  for (memory_share const& s : shares) n += s.bytes > 0;
  return n;
}

/// The diagnosis of compiled pipeline P against its memory limit. Requires a plan that is a
/// constant.
template <class P>
constexpr auto diagnose_memory_limit() {
  if constexpr (constexpr int rank = fullest_over(P::memory().rank, P::memory_limit); rank < 0) {
    return std::type_identity<detail::nothing_wrong>{};
  } else {
    constexpr long bytes = P::plan().rank_bytes[rank];
    return []<int... Is>(std::integer_sequence<int, Is...>) {
      return detail::diagnosis_of<wrong::memory_limit_is_exceeded, wrong::OnRank<rank>,
                                  wrong::OverBytes<bytes - P::memory_limit>,
                                  wrong::LimitBytes<P::memory_limit>, wrong::NeededBytes<bytes>,
                                  wrong::Takes<P::plan().memory_of(rank)[Is].what,
                                               P::plan().memory_of(rank)[Is].bytes>...>();
    }(std::make_integer_sequence<int, used(P::plan().memory_of(rank))>{});
  }
}

}  // namespace detail

}  // namespace pp
