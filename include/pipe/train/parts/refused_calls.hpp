// SPDX-License-Identifier: BSL-1.0
//
// Mistakes of users of other frameworks, each of them an error of one line: inputs and labels as
// two arguments, `step(x, y)`, and a number in place of the settings, `Trainer t(0.01)`. Without
// these, compilers list all functions of that name.
#pragma once

#include <type_traits>

#include <pipe/graph/diagnostics.hpp>

namespace pp::detail {

/// A second argument of a call on a mini-batch that cannot be meant as a learning rate.
template <class T>
concept labels_alone = !std::is_convertible_v<T const&, double>;

/// Reports inputs and labels as two arguments of a call of Trainer that returns a Result.
template <class Trainer, class Result, class>
Result refused_call() {
  static_assert(accepted<decltype(diagnosis_of<wrong::inputs_and_labels_are_one_argument_in_braces,
                                               Trainer>())>::value);
  return {};
}

/// The calls of a trainer on a mini-batch that are refused. Step: the result of a training step.
template <class Trainer, class Step>
struct refused_calls {
  template <labels_alone Labels>
  Step step(auto const&, Labels const&) {
    return refused_call<Trainer, Step, Labels>();
  }
  template <labels_alone Labels>
  Step accumulate(auto const&, Labels const&) {
    return refused_call<Trainer, Step, Labels>();
  }
  template <labels_alone Labels>
  Step gradients(auto const&, Labels const&) {
    return refused_call<Trainer, Step, Labels>();
  }
};

/// Reports a number in place of the settings of Trainer.
template <class Trainer, class Number>
typename Trainer::settings refused_settings() {
  static_assert(
      accepted<
          decltype(diagnosis_of<wrong::settings_have_names_and_are_in_braces, Trainer>())>::value);
  return {};
}

}  // namespace pp::detail
