// SPDX-License-Identifier: BSL-1.0
//
// The options of a Pipeline. Each belongs to one family; their order is free and a missing one has
// a default. An unknown or duplicate option is a one-line error.
#pragma once

#include <type_traits>

#include <pipe/base/list.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/plan/options/family.hpp>
#include <pipe/plan/options/attentions.hpp>
#include <pipe/plan/options/averaging.hpp>
#include <pipe/plan/options/backend.hpp>
#include <pipe/plan/options/devices.hpp>
#include <pipe/plan/options/graphs.hpp>
#include <pipe/plan/options/memory_limit.hpp>
#include <pipe/plan/options/micro_batch_size.hpp>
#include <pipe/plan/options/micro_batches.hpp>
#include <pipe/plan/options/offload.hpp>
#include <pipe/plan/options/optimizer.hpp>
#include <pipe/plan/options/partition.hpp>
#include <pipe/plan/options/precision.hpp>
#include <pipe/plan/options/prefetching.hpp>
#include <pipe/plan/options/products.hpp>
#include <pipe/plan/options/recompute.hpp>
#include <pipe/plan/options/schedule.hpp>
#include <pipe/plan/options/sorts.hpp>
#include <pipe/plan/options/stages.hpp>
#include <pipe/plan/options/sum_in.hpp>
#include <pipe/plan/options/threads.hpp>
#include <pipe/plan/options/transport.hpp>
#include <pipe/plan/options/zero.hpp>

namespace pp {

namespace detail {

/// All families, in the order in which their errors are reported. A new family is an entry here and
/// a header.
using option_families =
    layers<option_family::stages, option_family::micro_batches, option_family::micro_batch_size,
           option_family::sum, option_family::zero, option_family::schedule,
           option_family::partition, option_family::recompute, option_family::precision,
           option_family::optimizer, option_family::averaging, option_family::offload,
           option_family::prefetching, option_family::threads, option_family::products,
           option_family::sorts, option_family::attentions, option_family::graphs,
           option_family::backend, option_family::transport, option_family::devices,
           option_family::memory_limit>;

}  // namespace detail

/// Index of an option's family; the number of families if it belongs to none.
template <class O, class... Family>
constexpr int find_family(detail::layers<Family...> all) {
  if constexpr (requires { typename O::family; }) {
    return detail::leaf_index<typename O::family>(all);
  } else {
    // The last entry ends the search: no family holds O.
    bool const holds[] = {Family::template holds<O>()..., true};
    int i = 0;
    while (!holds[i]) ++i;
    return i;
  }
}

namespace detail {

/// The options of a pipeline, with the default of each family that is not given.
template <class... O>
struct option_set {
  static constexpr int given = sizeof...(O), families = leaf_count(option_families{});
  /// The list of `all`; only its type is used.
  template <class... Family>
  static constexpr layers<O..., typename Family::fallback...> with_fallbacks(layers<Family...>) {
    return {};
  }
  /// The given options, followed by the default of every family.
  using all = decltype(with_fallbacks(option_families{}));
  /// Families of the given options.
  static constexpr list<int, given> family_of{{find_family<O>(option_families{})...}};

  /// The first option of a family from a position on, or -1.
  static constexpr int find(int family, int from = 0) {
    for (int i = from; i < given; ++i)
      if (family_of[i] == family) return i;
    return -1;
  }
  /// Position of a family's option in `all`.
  template <class Family>
  static constexpr int place() {
    constexpr int family = leaf_index<Family>(option_families{});
    int const i = find(family);
    return i < 0 ? given + family : i;
  }
  /// A family's option: the given one, or the default.
  template <class Family>
  using get = leaf_at<place<Family>(), all>;

  /// Position of an option that belongs to no family, and of the second option of one family; -1:
  /// none.
  static constexpr int unknown() { return find(families); }
  static constexpr int doubled() {
    for (int f = 0; f < families; ++f)
      if (int const i = find(f), second = i < 0 ? -1 : find(f, i + 1); second >= 0) return second;
    return -1;
  }
};

}  // namespace detail

}  // namespace pp
