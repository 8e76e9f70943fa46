// SPDX-License-Identifier: BSL-1.0
//
// The option for gradients of a model's inputs.
#pragma once

#include <type_traits>

#include <pipe/plan/options/backend.hpp>
#include <pipe/plan/options/family.hpp>
#include <pipe/plan/options/transport.hpp>

namespace pp {

/// Makes `input_gradients` available: backward also computes the gradients of inputs that are
/// numbers, which takes an op for each layer that reads them and, in the memory of the first stage,
/// room for a micro-batch. On the host, in one process.
///
/// law: changes no bit of any other call
struct InputGradients {
  static constexpr bool is_on = true;
};
/// Backward ends at the first layers that are trained (default).
struct NoInputGradients {
  static constexpr bool is_on = false;
};

namespace detail {

/// Whether a model has an input with a gradient: numbers that layers read.
template <class M>
constexpr bool has_input_with_gradient() {
  for (int i = 0; i < M::graph.size.inputs; ++i)
    if (has_gradient(M::graph.inputs[i])) return true;
  return false;
}

/// The diagnosis of a use of input gradients in a pipeline with this option.
template <class Gradients>
constexpr auto diagnose_use_of_input_gradients() {
  if constexpr (Gradients::is_on)
    return std::type_identity<nothing_wrong>{};
  else
    return diagnosis_of<wrong::pipeline_has_no_input_gradients, Gradients>();
}

}  // namespace detail

namespace option_family {

/// The family of input gradients: on or off.
struct input_gradients : detail::any_family {
  using fallback = NoInputGradients;
  template <class O>
  static constexpr bool holds() {
    return std::is_same_v<O, InputGradients> || std::is_same_v<O, NoInputGradients>;
  }
  template <class M, class Options>
  static constexpr auto diagnose_for() {
    using option = typename Options::template get<input_gradients>;
    using runs_on = typename Options::template get<backend>;
    using carried_by = typename Options::template get<transport>;
    if constexpr (!option::is_on)
      return std::type_identity<detail::nothing_wrong>{};
    else if constexpr (runs_on::has_own_memory)
      return detail::diagnosis_of<wrong::input_gradients_are_of_one_process_on_the_host, option,
                                  runs_on>();
    else if constexpr (carried_by::transport::copies)
      return detail::diagnosis_of<wrong::input_gradients_are_of_one_process_on_the_host, option,
                                  carried_by>();
    else if constexpr (!detail::has_input_with_gradient<M>())
      return detail::diagnosis_of<wrong::input_has_no_gradient, M>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace option_family

}  // namespace pp
