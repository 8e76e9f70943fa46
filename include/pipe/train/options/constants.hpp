// SPDX-License-Identifier: BSL-1.0
//
// User-defined types as options: members that must be constants.
#pragma once

#include <pipe/base/constant.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/passes/recompute_policy.hpp>

namespace pp::detail {

/// A member of O, read, or called with an argument.
template <class O, member Which>
struct fact_of {
  static constexpr auto call() {
    using enum member;
    if constexpr (Which == name) return O::name;
    if constexpr (Which == where) return O::where;
    if constexpr (Which == chunks_per_rank) return O::chunks_per_rank;
    if constexpr (Which == splits_backward) return O::splits_backward;
    if constexpr (Which == trains) return O::trains;
    if constexpr (Which == updates) return O::updates;
    if constexpr (Which == states) return O::states;
    if constexpr (Which == takes) return O::takes(tensor_kind::matrix);
    if constexpr (Which == state_elements) return O::state_elements(detail::smallest_tensor);
    if constexpr (Which == keeps_last) return O::keeps_last;
    if constexpr (Which == recomputes) return O::recomputes;
    if constexpr (Which == product) return O::product;
    if constexpr (Which == scales_loss) return O::scales_loss;
    if constexpr (Which == drops) return drops_call<O>::call();
  }
};

/// The first of these members that is not constant; the last if all others are.
template <class O, member First, member... Rest>
constexpr member first_not_constant() {
  if constexpr (sizeof...(Rest) == 0)
    return First;
  else if constexpr (!is_constant<fact_of<O, First>>)
    return First;
  else
    return first_not_constant<O, Rest...>();
}

/// The diagnosis of an O that has all of its members, one of which is not constant.
template <class O, member... Facts>
constexpr auto diagnose_facts() {
  using enum member;
  constexpr member found = first_not_constant<O, Facts...>();
  if constexpr (found == takes || found == state_elements || found == drops)
    return diagnosis_of<wrong::function_must_be_constexpr, O, wrong::Function<found>>();
  else
    return diagnosis_of<wrong::value_must_be_constexpr, O, wrong::Value<found>>();
}

}  // namespace pp::detail
