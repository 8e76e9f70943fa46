// SPDX-License-Identifier: BSL-1.0
//
// Families of options. A Pipeline has exactly one option of each family. A family is a type in
// namespace option_family, with a header of its own (plan/options/) and an entry in
// option_families (plan/options/options.hpp).
#pragma once

#include <type_traits>

#include <pipe/base/diagnosis.hpp>
#include <pipe/graph/diagnostics.hpp>

namespace pp {

namespace detail {

/// Default members of a family; a family hides those that it redefines. It must define `fallback`,
/// the option in force if none is given.
struct any_family {
  /// Whether O belongs to this family without naming it by `using family = ...`.
  template <class O>
  static constexpr bool holds() {
    return false;
  }
  /// The diagnosis of a type that resembles an option of this family but lacks members.
  template <class O>
  static constexpr auto diagnose_type() {
    return std::type_identity<nothing_wrong>{};
  }
  /// The diagnosis of this family's option in an option_set whose earlier families are valid.
  template <class Options>
  static constexpr auto diagnose() {
    return std::type_identity<nothing_wrong>{};
  }
  /// The diagnosis of this family's option for model M, in a valid option_set.
  template <class M, class Options>
  static constexpr auto diagnose_for() {
    return std::type_identity<nothing_wrong>{};
  }
};

}  // namespace detail

namespace wrong {
/// Words of messages.
template <int Number>
struct Layers;
template <long Number>
struct AtMost;
}  // namespace wrong

}  // namespace pp
