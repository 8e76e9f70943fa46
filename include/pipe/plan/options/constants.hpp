// SPDX-License-Identifier: BSL-1.0
//
// Checks that the members of a user-defined option are constant expressions.
#pragma once

#include <pipe/base/constant.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/passes/recompute_policy.hpp>

namespace pp::detail {

/// Access to a member of O as a call: a value is read, a function is called with some valid
/// argument.
template <class O, wrong::member Which>
struct fact_of {
  /// Optional, and not the last that are looked at.
  static constexpr bool has_updates() {
    if constexpr (requires { O::updates; })
      return O::updates;
    else
      return false;
  }
  static constexpr bool recomputes_ahead_of() {
    if constexpr (requires { O::recomputes_ahead; })
      return O::recomputes_ahead;
    else
      return false;
  }
  static constexpr auto call() {
    using enum wrong::member;
    if constexpr (Which == name) return O::name;
    if constexpr (Which == where) return O::where;
    if constexpr (Which == chunks_per_rank) return O::chunks_per_rank;
    if constexpr (Which == splits_backward) return O::splits_backward;
    if constexpr (Which == trains) return O::trains;
    if constexpr (Which == updates) return has_updates();
    if constexpr (Which == recomputes_ahead) return recomputes_ahead_of();
    if constexpr (Which == limits_memory) return O::limits_memory;
    if constexpr (Which == states) return O::states;
    if constexpr (Which == takes) return O::takes(custom::tensor_kind::matrix);
    if constexpr (Which == state_elements) return O::state_elements(detail::smallest_tensor);
    if constexpr (Which == keeps_last) return O::keeps_last;
    if constexpr (Which == recomputes) return O::recomputes;
    if constexpr (Which == product) return O::product;
    if constexpr (Which == scales_loss) return O::scales_loss;
    if constexpr (Which == drops) return drops_call<O>::call();
  }
};

/// The first of these members that is not a constant expression; the last one if all others are,
/// since the caller knows that one fails.
template <class O, wrong::member First, wrong::member... Rest>
constexpr wrong::member first_not_constant() {
  if constexpr (sizeof...(Rest) == 0)
    return First;
  else if constexpr (!is_constant<fact_of<O, First>>)
    return First;
  else
    return first_not_constant<O, Rest...>();
}

/// The diagnosis of an O that has all of its members, one of which is not a constant expression.
template <class O, wrong::member... Facts>
constexpr auto diagnose_facts() {
  using enum wrong::member;
  constexpr wrong::member found = first_not_constant<O, Facts...>();
  if constexpr (found == takes || found == state_elements || found == drops)
    return diagnosis_of<wrong::function_must_be_constexpr, O, wrong::Function<found>>();
  else
    return diagnosis_of<wrong::value_must_be_constexpr, O, wrong::Value<found>>();
}

}  // namespace pp::detail
