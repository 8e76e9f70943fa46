// SPDX-License-Identifier: BSL-1.0
//
// The option for mini-batches that are uploaded while a run before them is in progress.
#pragma once

#include <type_traits>

#include <pipe/plan/options/family.hpp>

namespace pp {

/// Makes `prefetch` available. On a GPU each rank has room for a second mini-batch, which the plan
/// counts as staging; on a host the trainer keeps up to two copies of one.
struct Prefetching {
  static constexpr bool is_on = true;
};
/// No mini-batch is prefetched (default).
struct NoPrefetching {
  static constexpr bool is_on = false;
};

namespace detail {

/// The diagnosis of a use of prefetched mini-batches in a pipeline with this option.
template <class Prefetches>
constexpr auto diagnose_use_of_prefetching() {
  if constexpr (Prefetches::is_on)
    return std::type_identity<nothing_wrong>{};
  else
    return diagnosis_of<wrong::pipeline_prefetches_nothing, Prefetches>();
}

}  // namespace detail

namespace option_family {

/// The family of prefetching: on or off.
struct prefetching : detail::any_family {
  using fallback = NoPrefetching;
  template <class O>
  static constexpr bool holds() {
    return std::is_same_v<O, Prefetching> || std::is_same_v<O, NoPrefetching>;
  }
};

}  // namespace option_family

}  // namespace pp
