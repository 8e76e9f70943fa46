// SPDX-License-Identifier: BSL-1.0
//
// The optimizer option: one of the library's (pipe/optim), or a user-defined one.
#pragma once

#include <concepts>

#include <pipe/optim/adam.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/sgd.hpp>
#include <pipe/plan/options/constants.hpp>
#include <pipe/plan/options/family.hpp>

namespace pp {

namespace detail {

/// The first missing member of a type that resembles an optimizer; `none` for one that does not.
template <class O>
constexpr wrong::member missing_of_optimizer() {
  using enum wrong::member;
  constexpr bool has_rate = requires(O const& o) { o.learning_rate; };
  if constexpr (!custom::element_optimizer<O> && !custom::tensor_optimizer<O>)
    return has_rate ? states_and_prepare : none;
  else if constexpr (!requires {
                       { O::name } -> std::convertible_to<char const*>;
                     })
    return name;
  else
    return has_rate ? none : learning_rate;
}

}  // namespace detail

namespace option_family {
/// The family of optimizers: every type that satisfies concept optimizer. Members are checked one
/// by one, so that the error names the first that is missing or not constant. A type with a
/// `diagnosis` is refused with it.
struct optimizer : detail::any_family {
  using fallback = SGD;
  template <class O>
  static constexpr bool holds() {
    return pp::detail::optimizer<O>;
  }

  template <class O>
  static constexpr auto diagnose_type() {
    using enum wrong::member;
    constexpr wrong::member lacks = detail::missing_of_optimizer<O>();
    if constexpr (requires { typename O::diagnosis; })
      return typename O::diagnosis{};
    else if constexpr (lacks != none)
      return detail::diagnosis_of<wrong::optimizer_is_incomplete, O, wrong::Missing<lacks>>();
    else if constexpr (!detail::has_parts_of_optimizer<O>)
      return std::type_identity<detail::nothing_wrong>{};
    else if constexpr (!custom::tensor_optimizer<O>)
      return detail::diagnose_facts<O, name, states>();
    else if constexpr (!custom::element_optimizer<O>)
      return detail::diagnose_facts<O, name, takes, state_elements>();
    else
      return detail::diagnose_facts<O, name, takes, state_elements, states>();
  }
};
}  // namespace option_family

}  // namespace pp
