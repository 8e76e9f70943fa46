// SPDX-License-Identifier: BSL-1.0
//
// What an optimizer is: settings that a user writes (`AdamW{.learning_rate = 3e-4}`), and a formula for one element that
// every backend runs over flat memory. Whatever a step's coefficients have in common is computed once, in double.
#pragma once

#include <concepts>

namespace pp {

/// What the runtime knows when it asks for a step's coefficients.
struct update_context {
  long step = 1;              ///< counted from 1
  double learning_rate = 0;   ///< of this step, after the schedule
  double gradient_scale = 1;  ///< multiplies every gradient first: clipping
  bool decays = false;        ///< whether weight decay applies to these parameters
};

/// `states` arrays of the parameter's size belong to the optimizer, zero at the start; `apply` is called with the
/// parameter, its gradient and a reference to each state, and returns the new parameter.
template <class O>
concept optimizer = requires(O const& o, update_context const& c) {
  { O::states } -> std::convertible_to<int>;
  { O::name } -> std::convertible_to<char const*>;
  { o.learning_rate } -> std::convertible_to<double>;
  { o.template prepare<float>(c) } -> std::same_as<typename O::template coefficients<float>>;
};

}  // namespace pp
