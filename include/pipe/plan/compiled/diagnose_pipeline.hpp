// SPDX-License-Identifier: BSL-1.0
//
// Diagnoses of a model and its options, in the order in which they are reported, and the stand-ins
// that keep an error from causing further ones.
#pragma once

#include <type_traits>

#include <pipe/base/diagnosis.hpp>
#include <pipe/nn/input.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/loss.hpp>
#include <pipe/nn/model.hpp>
#include <pipe/plan/compiled/compiled_pipeline.hpp>
#include <pipe/plan/compiled/fitting_cuts.hpp>
#include <pipe/plan/options/diagnose.hpp>

namespace pp {

namespace detail {

/// Stand-in for an argument that is no model, so that no other error is reported. Its base depends
/// on the argument: a program without such an argument does not compile the base.
template <class Given>
struct no_model : std::enable_if_t<!model_type<Given>, Model<Input<1>, Linear<1>, MSE>> {};

/// The diagnosis of a first argument that is no model.
template <class Given>
constexpr auto diagnose_no_model() {
  if constexpr (!requires { sizeof(Given); })
    return diagnosis_of<wrong::model_must_be_complete_before_it_is_trained, Given>();
  else if constexpr (std::is_base_of_v<any_model, Given>)
    return diagnosis_of<wrong::model_must_be_derived_from_publicly, Given>();
  else
    return diagnosis_of<wrong::first_argument_of_a_pipeline_must_be_a_model, Given>();
}

/// The diagnosis of a model without trained parameters.
template <class M>
struct parameter_check {
  static constexpr auto diagnose() {
    if constexpr (any_trained(model_tables<M>::outline))
      return std::type_identity<nothing_wrong>{};
    else
      return diagnosis_of<wrong::no_parameters_to_train, M>();
  }
};
/// The diagnosis of the options alone, in the form that first_finding takes.
template <class Set>
struct all_options_check {
  static constexpr auto diagnose() { return diagnose_options<Set>(); }
};
/// The diagnosis of the options together with the model M, in the form that first_finding takes.
/// needs: M is valid
template <class M, class Set>
struct all_options_for_model_check {
  static constexpr auto diagnose() { return diagnose_options_for<M, Set>(); }
};

/// The diagnosis of a pipeline, except for its memory limit. An invalid model has been reported
/// already.
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

/// O if its workspace is a constant expression, else SGD.
template <class O, class T>
using countable_optimizer =
    std::conditional_t<is_constant<detail::workspace_call<O, PortableHost, T>>, O, SGD>;

/// The compiled pipeline, within its memory limit if there are cuts for it; after an error, a
/// single stage with the same precision, optimizer and averaging, so that nothing else is reported.
template <class M, class Set, bool Fine>
struct checked_options {
  using type =
      option_set<countable_optimizer<typename Set::template get<option_family::optimizer>,
                                     typename Set::template get<option_family::precision>::element>,
                 typename Set::template get<option_family::precision>,
                 typename Set::template get<option_family::averaging>, PortableHost>;
};
template <class M, class Set>
struct checked_options<M, Set, true> : fitting_options<compiled_pipeline, M, Set> {};
template <class M, class Set, bool Fine>
using checked_pipeline = compiled_pipeline<M, typename checked_options<M, Set, Fine>::type>;

/// Whether Given is a model without an error; false for a type that is no model.
template <class Given>
constexpr bool is_valid_model() {
  if constexpr (model_type<Given>) return Given::valid;
  return false;
}

/// The types of a Pipeline: options, model, diagnosis and compiled pipeline, or stand-ins.
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
/// The diagnosis of a use of averages, of arrays in device memory, of accumulation, of
/// prefetched mini-batches, or of input gradients in a pipeline. Made: its made_from; an invalid
/// one has been reported already.
template <class Made>
constexpr auto diagnose_averages() {
  if constexpr (Made::fine)
    return diagnose_use_of_averages<typename Made::compiled::averaging>();
  else
    return std::type_identity<nothing_wrong>{};
}
template <class Made>
constexpr auto diagnose_device_data() {
  if constexpr (Made::fine)
    return diagnose_use_of_device_data<
        typename Made::compiled::backend,
        typename Made::compiled::template option<option_family::devices>>();
  else
    return std::type_identity<nothing_wrong>{};
}
template <class Made>
constexpr auto diagnose_accumulation() {
  if constexpr (Made::fine)
    return diagnose_accumulation_of<
        typename Made::compiled::sum, typename Made::compiled::template option<option_family::zero>,
        typename Made::compiled::template option<option_family::micro_batches>>();
  else
    return std::type_identity<nothing_wrong>{};
}
template <class Made>
constexpr auto diagnose_prefetching() {
  if constexpr (Made::fine)
    return diagnose_use_of_prefetching<typename Made::compiled::prefetching>();
  else
    return std::type_identity<nothing_wrong>{};
}

template <class Made>
constexpr auto diagnose_input_gradients() {
  if constexpr (Made::fine)
    return diagnose_use_of_input_gradients<typename Made::compiled::keeps_input_gradients>();
  else
    return std::type_identity<nothing_wrong>{};
}

/// Default options stand in for a list in which some entry is not a type.
template <class Given, class... Options>
struct made_from : made_from<Given> {};

/// The member `plan` of a trainer. It is a constant if the compiler makes the schedule, otherwise a
/// function that makes the plan at its first call, and throws pp::error if the schedule is not
/// valid. `Trainer::plan()` works for both.
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
