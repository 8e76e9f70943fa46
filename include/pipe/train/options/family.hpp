// SPDX-License-Identifier: BSL-1.0
//
// A family of options: a Pipeline has one option of each. A family is a type in namespace
// option_family, with a header of its own (train/options/) and a line in the list of all
// (train/options.hpp).
#pragma once

#include <type_traits>

#include <pipe/base/diagnosis.hpp>
#include <pipe/graph/diagnostics.hpp>

namespace pp {

namespace detail {

/// What families have in common; each hides what it has to say more of. It also has a `fallback`,
/// the option in force where none is given.
struct any_family {
  /// Whether option O is of this family though it does not name it: `using family = ...`.
  template <class O>
  static constexpr bool holds() {
    return false;
  }
  /// What type O lacks to be an option of this family, if it looks like one.
  template <class O>
  static constexpr auto diagnose_type() {
    return std::type_identity<nothing_wrong>{};
  }
  /// The diagnosis of the option of this family in an option_set, in which the families before
  /// this one are right.
  template <class Options>
  static constexpr auto diagnose() {
    return std::type_identity<nothing_wrong>{};
  }
  /// Its diagnosis for model M, where all options are right by themselves.
  template <class M, class Options>
  static constexpr auto diagnose_for() {
    return std::type_identity<nothing_wrong>{};
  }
};

}  // namespace detail

namespace wrong {
template <class... What>
struct number_must_be_positive;
template <class... What>
struct number_is_too_large;

/// Words of messages.
template <int Number>
struct Layers;
template <long Number>
struct AtMost;
}  // namespace wrong

}  // namespace pp
