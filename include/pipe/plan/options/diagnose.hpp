// SPDX-License-Identifier: BSL-1.0
//
// The first error in a set of options: first of the set by itself, then for a model. Each family
// implements its own checks. Every function returns one of the types in `wrong`
// (base/diagnosis.hpp), or nothing_wrong.
#pragma once

#include <pipe/base/diagnosis.hpp>
#include <pipe/plan/options/options.hpp>

namespace pp {

namespace detail {

/// A family's checks as types, for first_finding.
template <class Family, class O>
struct type_check {
  static constexpr auto diagnose() { return Family::template diagnose_type<O>(); }
};
template <class Family, class Options>
struct option_check {
  static constexpr auto diagnose() { return Family::template diagnose<Options>(); }
};
template <class Family, class M, class Options>
struct model_check {
  static constexpr auto diagnose() { return Family::template diagnose_for<M, Options>(); }
};

/// The diagnosis of a type that belongs to no family: an incomplete option, or an unknown type.
template <class O>
struct unknown_option_check {
  static constexpr auto diagnose() { return diagnosis_of<wrong::option_is_unknown, O>(); }
};
/// The diagnosis of O: see unknown_option_check.
template <class O, class... Family>
constexpr auto diagnose_unknown(layers<Family...>) {
  return first_finding<type_check<Family, O>..., unknown_option_check<O>>();
}

/// The first finding of all families, in their order, each about its own option.
template <class Options, class... Family>
constexpr auto diagnose_each(layers<Family...>) {
  return first_finding<option_check<Family, Options>...>();
}
/// The first finding of all families about their options for model M.
template <class M, class Options, class... Family>
constexpr auto diagnose_each_for(layers<Family...>) {
  return first_finding<model_check<Family, M, Options>...>();
}

/// The diagnosis of a set of options, without a model.
template <class Options>
constexpr auto diagnose_options() {
  using all = typename Options::all;
  constexpr int unknown = Options::unknown(), twice = Options::doubled();
  if constexpr (unknown >= 0) {
    return diagnose_unknown<leaf_at<unknown, all>>(option_families{});
  } else if constexpr (twice >= 0) {
    constexpr int first = Options::find(Options::family_of[twice]);
    return diagnosis_of<wrong::option_is_given_twice, leaf_at<first, all>, leaf_at<twice, all>>();
  } else {
    return diagnose_each<Options>(option_families{});
  }
}

/// The diagnosis of a valid set of options for model M.
template <class M, class Options>
constexpr auto diagnose_options_for() {
  return diagnose_each_for<M, Options>(option_families{});
}

}  // namespace detail

}  // namespace pp
