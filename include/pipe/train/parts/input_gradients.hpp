// SPDX-License-Identifier: BSL-1.0
//
// Gradients of the inputs of a trainer's model: adversarial examples, saliency, and models in front
// that other code trains.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <pipe/base/text.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/plan/compiled/diagnose_pipeline.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/train/parts/batch.hpp>
#include <pipe/train/parts/outputs.hpp>

namespace pp::detail {

/// The number of model M's input with a name; 0 for the empty name, and for a name that is not
/// there, which is reported.
template <class M, Text Name>
inline constexpr int input_for_gradient = [] {
  if constexpr (Name.view().empty())
    return 0;
  else
    return find_input<M, Name>() < 0 ? 0 : find_input<M, Name>();
}();

/// The diagnosis of gradients of inputs of M by name, each of which is there, is numbers, and is
/// asked for once. An invalid model has been reported already.
template <class M, Text Name, Text... More>
constexpr auto diagnose_gradients_of() {
  constexpr int number = input_for_gradient<M, Name>;
  if constexpr (!M::valid)
    return std::type_identity<nothing_wrong>{};
  else if constexpr (!Name.view().empty() && find_input<M, Name>() < 0)
    return say<wrong::model_has_no_input_with_that_name>(word<M>{}, spell_text<Name>());
  else if constexpr (!has_gradient(M::graph.inputs[number]))
    return say<wrong::input_has_no_gradient>(word<input_item_of<M, number>>{});
  else if constexpr (((number == input_for_gradient<M, More>) || ...))
    return say<wrong::name_is_given_twice>(word<M>{}, spell_text<Name>());
  else if constexpr (sizeof...(More) > 0)
    return diagnose_gradients_of<M, More...>();
  else
    return std::type_identity<nothing_wrong>{};
}

/// A trainer that gives gradients of the inputs of model M.
template <class Trainer, class M>
struct with_input_gradients {
  /// The gradient of the mean loss of a mini-batch in an input of numbers: the first, or by name.
  /// Dropout and batch norms are as in training. Parameters, their gradients, accumulated
  /// mini-batches and the optimizer stay as they are. Needs InputGradients.
  ///
  /// shape:  -> n numbers for n numbers of the input
  /// law:    the loss is that of gradients(), whose gradient in the input this is
  /// throws: data_error for a batch out of range
  template <Text Name = "", class T = Trainer>
  std::vector<typename T::element> input_gradients(typename T::batch const& b) {
    constexpr auto& of = model_tables<M>::inputs[input_for_gradient<M, Name>];
    constexpr long each = of.form.elements(), first = model_tables<M>::inputs[0].form.elements();
    std::vector<typename T::element> to(b.inputs.size() / std::size_t(first) * std::size_t(each));
    input_gradients<Name>(b, to);
    return to;
  }
  /// The same into the caller's memory, for one input, or for several by name. Returns the loss;
  /// the norm of the result is 0.
  template <Text Name = "", Text... More, class T = Trainer>
  step_result input_gradients(
      typename T::batch const& b, typename T::output_values to,
      typename named_values<typename T::output_values, More>::type... more) {
    static_assert(accepted<decltype(diagnose_input_gradients<typename T::made>())>::value);
    static_assert(accepted<decltype(diagnose_gradients_of<M, Name, More...>())>::value);
    T& t = static_cast<T&>(*this);
    auto const access = t.engine_.enter();
    job j = t.prepare(b, job::kind::train);
    j.of_inputs = true;
    j.update.applies = false;
    auto const give = [&j](batch_part of, int input, auto const& values) {
      long const each = model_tables<M>::inputs[input].form.elements();
      check_size(of, values.size(), std::size_t(j.batch.samples * each));
      j.batch.input_gradient[input] = values.data();
    };
    give(gradient_part<Name>(), input_for_gradient<M, Name>, to);
    (give(gradient_part<More>(), input_for_gradient<M, More>, more), ...);
    return t.run(j);
  }

 private:
  template <Text Name>
  static constexpr batch_part gradient_part() {
    if constexpr (Name.view().empty())
      return {"input gradients"};
    else
      return {"gradients of input ", Name.view()};
  }
};

}  // namespace pp::detail
