// SPDX-License-Identifier: BSL-1.0
//
// The options of a Pipeline. Each belongs to one family; they come in any order, a missing one has
// a default, and one that is unknown or given twice is a one-line error.
#pragma once

#include <type_traits>

#include <pipe/base/list.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/train/options/family.hpp>
#include <pipe/train/options/averaging.hpp>
#include <pipe/train/options/backend.hpp>
#include <pipe/train/options/memory_limit.hpp>
#include <pipe/train/options/micro_batch_size.hpp>
#include <pipe/train/options/micro_batches.hpp>
#include <pipe/train/options/optimizer.hpp>
#include <pipe/train/options/partition.hpp>
#include <pipe/train/options/precision.hpp>
#include <pipe/train/options/products.hpp>
#include <pipe/train/options/recompute.hpp>
#include <pipe/train/options/schedule.hpp>
#include <pipe/train/options/stages.hpp>
#include <pipe/train/options/threads.hpp>
#include <pipe/train/options/transport.hpp>

namespace pp {

namespace detail {

/// All families, in the order in which their mistakes are reported. A new one is a line here and a
/// header.
using option_families =
    layers<option_family::stages, option_family::micro_batches, option_family::micro_batch_size,
           option_family::schedule, option_family::partition, option_family::recompute,
           option_family::precision, option_family::optimizer, option_family::averaging,
           option_family::threads, option_family::products, option_family::backend,
           option_family::transport, option_family::memory_limit>;

}  // namespace detail

/// Which of the families an option is of: its index; their number if it is of none.
template <class O, class... Family>
constexpr int find_family(layers<Family...> all) {
  if constexpr (requires { typename O::family; }) {
    return leaf_index<typename O::family>(all);
  } else {
    bool const holds[] = {Family::template holds<O>()..., true};
    int i = 0;
    while (!holds[i]) ++i;
    return i;
  }
}

namespace detail {

/// The options of one pipeline, with defaults where none is given.
template <class... O>
struct option_set {
  static constexpr int given = sizeof...(O), families = leaf_count(option_families{});
  template <class... Family>
  static constexpr layers<O..., typename Family::fallback...> with_fallbacks(layers<Family...>) {
    return {};
  }
  /// Those that are given, and then a default of each family.
  using all = decltype(with_fallbacks(option_families{}));
  /// Of those that are given.
  static constexpr list<int, given> family_of{{find_family<O>(option_families{})...}};

  /// The first option of a family from a position on, or -1.
  static constexpr int find(int family, int from = 0) {
    for (int i = from; i < given; ++i)
      if (family_of[i] == family) return i;
    return -1;
  }
  template <class Family>
  static constexpr int place() {
    constexpr int family = leaf_index<Family>(option_families{});
    int const i = find(family);
    return i < 0 ? given + family : i;
  }
  /// The option of a family that is in force.
  template <class Family>
  using get = leaf_at<place<Family>(), all>;

  /// An option of no family, or -1; the second of two of one family, or -1.
  static constexpr int unknown() { return find(families); }
  static constexpr int doubled() {
    for (int f = 0; f < families; ++f)
      if (int const i = find(f), second = i < 0 ? -1 : find(f, i + 1); second >= 0) return second;
    return -1;
  }
};

}  // namespace detail

}  // namespace pp
