// SPDX-License-Identifier: BSL-1.0
//
// Diagnoses of a model with its options, in the order in which they are reported, and the stand-ins
// used after one.
#pragma once

#include <type_traits>

#include <pipe/base/diagnosis.hpp>
#include <pipe/nn/input.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/loss.hpp>
#include <pipe/nn/model.hpp>
#include <pipe/train/compiled/compiled_pipeline.hpp>
#include <pipe/train/options/diagnose.hpp>

namespace pp {

namespace wrong {
template <class... What>
struct first_argument_of_a_pipeline_must_be_a_model;
template <class... What>
struct model_must_be_complete_before_it_is_trained;
template <class... What>
struct model_must_be_derived_from_publicly;
template <class... What>
struct no_parameters_to_train;
}  // namespace wrong

namespace detail {

/// What stands in for a model that is none, so that nothing else is reported.
template <class Given>
struct no_model : Model<Input<1>, Linear<1>, MSE> {};

/// The diagnosis of a type that is given as a model and is none.
template <class Given>
constexpr auto diagnose_no_model() {
  if constexpr (!requires { sizeof(Given); })
    return diagnosis_of<wrong::model_must_be_complete_before_it_is_trained, Given>();
  else if constexpr (std::is_base_of_v<any_model, Given>)
    return diagnosis_of<wrong::model_must_be_derived_from_publicly, Given>();
  else
    return diagnosis_of<wrong::first_argument_of_a_pipeline_must_be_a_model, Given>();
}

/// The diagnosis of model M as one to train.
template <class M>
struct parameter_check {
  static constexpr bool any() {
    for (int i = 0; i < M::graph.size.parameters; ++i)
      if (M::graph.parameters[i].trained) return true;
    return false;
  }
  static constexpr auto diagnose() {
    if constexpr (any())
      return std::type_identity<nothing_wrong>{};
    else
      return diagnosis_of<wrong::no_parameters_to_train, M>();
  }
};
template <class Set>
struct all_options_check {
  static constexpr auto diagnose() { return diagnose_options<Set>(); }
};
template <class M, class Set>
struct all_options_for_model_check {
  static constexpr auto diagnose() { return diagnose_options_for<M, Set>(); }
};

/// The diagnosis of a pipeline but for its memory. A wrong model has been reported by itself.
template <class M, class Set>
constexpr auto diagnose_pipeline() {
  if constexpr (!model_type<M>)
    return diagnose_no_model<M>();
  else if constexpr (!M::valid)
    return std::type_identity<nothing_wrong>{};
  else
    return first_finding<all_options_check<Set>, parameter_check<M>,
                         all_options_for_model_check<M, Set>, pipeline_schedule<M, Set>>();
}

/// An optimizer that the compiler can ask how much memory it needs: O, if it can.
template <class O, class T>
using countable_optimizer =
    std::conditional_t<is_constant<detail::workspace_call<O, PortableHost, T>>, O, SGD>;

/// After a mistake has been reported a pipeline of one stage stands in, so that nothing else is.
template <class M, class Set, bool Fine>
using checked_pipeline = compiled_pipeline<
    M, std::conditional_t<
           Fine, Set,
           option_set<
               countable_optimizer<typename Set::template get<option_family::optimizer>,
                                   typename Set::template get<option_family::precision>::element>,
               typename Set::template get<option_family::precision>,
               typename Set::template get<option_family::averaging>, PortableHost>>>;

template <class Given>
constexpr bool is_valid_model() {
  if constexpr (model_type<Given>) return Given::valid;
  return false;
}

/// The pipeline made of a model and options, or of their stand-ins.
template <class Given, class... Options>
struct made_from;
template <class Given, class... Options>
  requires all_are_types<Options...>
struct made_from<Given, Options...> {
  using options = option_set<Options...>;
  using model = std::conditional_t<model_type<Given>, Given, no_model<Given>>;
  using diagnosis = decltype(diagnose_pipeline<Given, options>());
  static constexpr bool fine = is_valid_model<Given>() && is_accepted<typename diagnosis::type>;
  using compiled = checked_pipeline<model, options, fine>;
};
/// The defaults stand in for a list with something else than types.
template <class Given, class... Options>
struct made_from : made_from<Given> {};

/// Everything that was decided: `Trainer::plan` is a constant where the compiler has made the
/// schedule; elsewhere a function, which makes the plan at its first call and throws pp::error
/// where the schedule is not valid. `Trainer::plan()` reads both.
template <class Compiled, bool ByCompiler = Compiled::by_compiler>
struct with_plan {
  static constexpr auto plan = Compiled::plan();
};
template <class Compiled>
struct with_plan<Compiled, false> {
  static auto const& plan() { return Compiled::plan(); }
};

}  // namespace detail

}  // namespace pp
