// SPDX-License-Identifier: BSL-1.0
//
// The precision option: one of the library's policies (plan/precision.hpp), or a user-defined
// precision_policy.
#pragma once

#include <pipe/plan/options/constants.hpp>
#include <pipe/plan/options/family.hpp>
#include <pipe/plan/precision.hpp>

namespace pp {

namespace detail {

/// The first missing member of a type that resembles a precision; `none` for one that does not.
template <class O>
constexpr wrong::member missing_of_precision() {
  using enum wrong::member;
  constexpr bool looks_like_one = requires { O::scales_loss; } || requires {
    { O::product } -> std::convertible_to<dtype>;
  };
  if constexpr (!looks_like_one)
    return none;
  else if constexpr (!has_elements<O>)
    return element;
  else if constexpr (!has_values<O>)
    return value;
  else if constexpr (!requires {
                       { O::product } -> std::convertible_to<dtype>;
                     })
    return product;
  else if constexpr (!requires {
                       { O::scales_loss } -> std::convertible_to<bool>;
                     })
    return scales_loss;
  else if constexpr (!requires {
                       { O::name } -> std::convertible_to<char const*>;
                     })
    return name;
  else
    return none;
}

}  // namespace detail

namespace option_family {
/// The family of precisions: every precision_policy. The backend checks whether it computes in it.
struct precision : detail::any_family {
  using fallback = FP32;
  template <class O>
  static constexpr bool holds() {
    return custom::precision_policy<O>;
  }

  template <class O>
  static constexpr auto diagnose_type() {
    using enum wrong::member;
    constexpr wrong::member lacks = detail::missing_of_precision<O>();
    if constexpr (lacks != none)
      return detail::diagnosis_of<wrong::precision_is_incomplete, O, wrong::Missing<lacks>>();
    else if constexpr (detail::has_facts_of_precision<O>)
      return detail::diagnose_facts<O, name, product, scales_loss>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};
}  // namespace option_family

}  // namespace pp
