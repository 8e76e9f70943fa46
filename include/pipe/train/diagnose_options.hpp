// SPDX-License-Identifier: BSL-1.0
//
// What is wrong with the options of a pipeline: by themselves, and for a model. Each function
// returns one of the types in `wrong` (base/diagnosis.hpp), or nothing_wrong.
#pragma once

#include <concepts>
#include <type_traits>

#include <pipe/base/constant.hpp>
#include <pipe/base/diagnosis.hpp>
#include <pipe/base/list.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/schedule/proved.hpp>
#include <pipe/train/options.hpp>

namespace pp {

namespace wrong {
template <class... What>
struct first_argument_of_a_pipeline_must_be_a_model;
template <class... What>
struct model_must_be_complete_before_it_is_trained;
template <class... What>
struct model_must_be_derived_from_publicly;
template <class... What>
struct option_is_unknown;
template <class... What>
struct schedule_is_incomplete;
template <class... What>
struct optimizer_is_incomplete;
template <class... What>
struct there_is_no_such_option;
template <class... What>
struct recompute_needs_kinds_of_op;
template <class... What>
struct option_is_given_twice;
template <class... What>
struct more_stages_than_layers;
template <class... What>
struct number_must_be_positive;
template <class... What>
struct number_is_too_large;
template <class... What>
struct micro_batch_is_too_large;
template <class... What>
struct decay_of_averages_is_out_of_range;
template <class... What>
struct pipeline_keeps_no_averages;
template <class... What>
struct stages_are_no_multiple_of_the_chunks_per_rank;
template <class... What>
struct cuts_must_ascend_and_make_as_many_stages;
template <class... What>
struct profile_is_of_another_model;
template <class... What>
struct schedule_does_not_train;
template <class... What>
struct pipeline_keeps_one_copy_of_each_weight;
template <class... What>
struct no_parameters_to_train;
template <class... What>
struct cuda_is_compiled_by_nvcc;
template <class... What>
struct cuda_needs_a_target_from_sm_80;
template <class... What>
struct backend_has_no_such_precision;
template <class... What>
struct cuda_updates_single_elements;
template <class... What>
struct custom_layer_has_no_functions_for_cuda;
template <class... What>
struct host_has_no_cublaslt;
template <class... What>
struct ranks_of_a_device_share_its_memory;

/// Words of their messages.
template <int Number>
struct Layers;
template <long Number>
struct AtMost;
}  // namespace wrong

/// The most samples of a mini-batch, numbers of a value for a micro-batch, and threads of a rank.
inline constexpr long most_samples = (1L << 31) - 1, most_numbers_of_value = 1L << 36;
inline constexpr int most_threads = 256;

/// What a user-defined type lacks of a schedule, or of an optimizer; `none` if it does not look
/// like one.
template <class O>
constexpr member missing_of_schedule() {
  using enum member;
  if constexpr (!requires(problem<> const& question, static_table<1, 8>& answer) {
                  O::fill(question, answer);
                })
    return requires { O::chunks_per_rank; } ? fill : none;
  else if constexpr (!requires { O::name; })
    return name;
  else if constexpr (!requires { O::where; })
    return where;
  else if constexpr (!requires { O::chunks_per_rank; })
    return chunks_per_rank;
  else if constexpr (!requires { O::splits_backward; })
    return splits_backward;
  else if constexpr (!requires { O::trains; })
    return trains;
  else if constexpr (!refuses_in_words<O>)
    return refuses;
  else
    return none;
}
template <class O>
constexpr member missing_of_optimizer() {
  using enum member;
  if constexpr (!element_optimizer<O> && !tensor_optimizer<O>)
    return requires(O const& o) { o.learning_rate; } ? states_and_prepare : none;
  else if constexpr (!requires {
                       { O::name } -> std::convertible_to<char const*>;
                     })
    return name;
  else if constexpr (!requires(O const& o) { o.learning_rate; })
    return learning_rate;
  else
    return none;
}
/// A static member of O, as a function.
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
    if constexpr (Which == state_elements) return O::state_elements(smallest_tensor);
  }
};
/// The first of these members that is not constexpr. Needs: O has them, and one is not.
template <class O, member First, member... Rest>
constexpr member first_not_constexpr() {
  if constexpr (sizeof...(Rest) == 0 || !is_constant<fact_of<O, First>>)
    return First;
  else
    return first_not_constexpr<O, Rest...>();
}
/// What is wrong with a schedule, or an optimizer, that has everything.
template <class O>
constexpr auto diagnose_constants() {
  using enum member;
  constexpr member found = [] {
    if constexpr (has_facts_of_schedule<O>)
      return first_not_constexpr<O, name, where, chunks_per_rank, splits_backward, trains,
                                 updates>();
    else if constexpr (!tensor_optimizer<O>)
      return first_not_constexpr<O, name, states>();
    else if constexpr (!element_optimizer<O>)
      return first_not_constexpr<O, name, takes, state_elements>();
    else
      return first_not_constexpr<O, name, takes, state_elements, states>();
  }();
  if constexpr (found == takes || found == state_elements)
    return diagnosis_of<wrong::function_must_be_constexpr, O, wrong::Function<found>>();
  else
    return diagnosis_of<wrong::value_must_be_constexpr, O, wrong::Value<found>>();
}
/// What is wrong with type O among the options.
template <class O>
constexpr auto diagnose_unknown() {
  constexpr member of_schedule = missing_of_schedule<O>(), of_optimizer = missing_of_optimizer<O>();
  if constexpr (requires { typename O::use_instead; })
    return say<wrong::there_is_no_such_option>(word<O>{}, spell_instead(word<O>{}));
  else if constexpr (of_schedule != member::none)
    return diagnosis_of<wrong::schedule_is_incomplete, O, wrong::Missing<of_schedule>>();
  else if constexpr (of_optimizer != member::none)
    return diagnosis_of<wrong::optimizer_is_incomplete, O, wrong::Missing<of_optimizer>>();
  else if constexpr (has_facts_of_schedule<O> || has_parts_of_optimizer<O>)
    return diagnose_constants<O>();
  else
    return diagnosis_of<wrong::option_is_unknown, O>();
}

/// Whether a schedule reads one copy of each weight in one version: no second replica, no update
/// before the end of the step.
template <schedule_policy S>
constexpr bool reads_one_copy() {
  return replicas(S::where) == 1 && !is_unflushed<S>();
}
/// Whether this number of chunks can lie on each rank.
constexpr bool can_place(placement where, int chunks_per_rank) {
  return where != placement::straight || chunks_per_rank == 1;
}

/// What a schedule says to these numbers.
template <class S, int Ranks, int MicroBatches>
struct refusal {
  static constexpr auto call() { return why_refused<S>(Ranks, MicroBatches); }
};
/// Whether the compiler makes its table for them.
template <class S, int Ranks, int MicroBatches>
struct maker {
  static constexpr auto call() { return fits_a_constant<S>(Ranks, MicroBatches); }
};

/// What is wrong with a set of options by themselves.
template <class O>
constexpr auto diagnose_options() {
  using all = typename O::all;
  using stages = typename O::template get<option_family::stages>;
  using micro_batches = typename O::template get<option_family::micro_batches>;
  using size = typename O::template get<option_family::micro_batch_size>;
  using schedule = typename O::template get<option_family::schedule>;
  using threads = typename O::template get<option_family::threads>;
  using limit = typename O::template get<option_family::memory_limit>;
  using averaging = typename O::template get<option_family::averaging>;
  using backend = typename O::template get<option_family::backend>;
  using precision = typename O::template get<option_family::precision>;
  using optimizer = typename O::template get<option_family::optimizer>;
  using recompute = typename O::template get<option_family::recompute>;
  using products = typename O::template get<option_family::products>;
  using transport = typename O::template get<option_family::transport>;
  constexpr int unknown = O::first_of(option_family::unknown, 0), twice = O::doubled();
  if constexpr (unknown >= 0) {
    return diagnose_unknown<leaf_at<(unknown < 0 ? 0 : unknown), all>>();
  } else if constexpr (twice >= 0) {
    using second = leaf_at<(twice < 0 ? 0 : twice), all>;
    return diagnosis_of<wrong::option_is_given_twice,
                        typename O::template get<option_family_of<second>()>, second>();
  } else if constexpr (std::is_same_v<recompute, Recompute<>>) {
    return diagnosis_of<wrong::recompute_needs_kinds_of_op, recompute>();
  } else if constexpr (stages::value < 1) {
    return diagnosis_of<wrong::number_must_be_positive, stages>();
  } else if constexpr (micro_batches::value < 1) {
    return diagnosis_of<wrong::number_must_be_positive, micro_batches>();
  } else if constexpr (size::value < 1) {
    return diagnosis_of<wrong::number_must_be_positive, size>();
  } else if constexpr (long(micro_batches::value) * size::value > most_samples) {
    return diagnosis_of<wrong::number_is_too_large, micro_batches, size,
                        wrong::AtMost<most_samples>>();
  } else if constexpr (threads::value > most_threads) {
    return diagnosis_of<wrong::number_is_too_large, threads, wrong::AtMost<most_threads>>();
  } else if constexpr (threads::value < 1) {
    return diagnosis_of<wrong::number_must_be_positive, threads>();
  } else if constexpr (limit::value < 0) {
    return diagnosis_of<wrong::number_must_be_positive, limit>();
  } else if constexpr (!averaging::of_integers) {
    return diagnosis_of<wrong::ratio_is_written_as_two_integers, averaging>();
  } else if constexpr (!averaging::in_range) {
    return diagnosis_of<wrong::decay_of_averages_is_out_of_range, averaging,
                        typename averaging::found>();
  } else if constexpr (schedule::chunks_per_rank < 1) {
    return diagnosis_of<wrong::number_must_be_positive, schedule,
                        wrong::Found<schedule::chunks_per_rank>>();
  } else if constexpr (!reads_one_copy<schedule>()) {
    return diagnosis_of<wrong::pipeline_keeps_one_copy_of_each_weight, schedule>();
  } else if constexpr (!can_place(schedule::where, schedule::chunks_per_rank)) {
    return diagnosis_of<wrong::schedule_is_not_valid, schedule,
                        wrong::Because<fault::wrong_shape>>();
  } else if constexpr (!schedule::trains) {
    return diagnosis_of<wrong::schedule_does_not_train, schedule>();
  } else if constexpr (stages::value % schedule::chunks_per_rank != 0) {
    return diagnosis_of<wrong::stages_are_no_multiple_of_the_chunks_per_rank, stages, schedule>();
  } else if constexpr (!is_constant<refusal<schedule, stages::value / schedule::chunks_per_rank,
                                            micro_batches::value>>) {
    return diagnosis_of<wrong::function_must_be_constexpr, schedule,
                        wrong::Function<member::refuses>>();
  } else if constexpr (!is_constant<maker<schedule, stages::value / schedule::chunks_per_rank,
                                          micro_batches::value>>) {
    return diagnosis_of<wrong::function_must_be_constexpr, schedule,
                        wrong::Function<member::fits_a_constant>>();
  } else if constexpr (why_refused<schedule>(stages::value / schedule::chunks_per_rank,
                                             micro_batches::value) != nullptr) {
    return diagnosis_of<wrong::schedule_refuses_these_numbers, schedule, stages, micro_batches>();
  } else if constexpr (requires { backend::is_device; } && transport::transport::copies) {
    return diagnosis_of<wrong::ranks_of_a_device_share_its_memory, backend, transport>();
  } else if constexpr (requires { backend::is_device; } && !is_nvcc) {
    return diagnosis_of<wrong::cuda_is_compiled_by_nvcc, backend>();
  } else if constexpr (requires { backend::is_device; } && !has_target_for_kernels) {
    return diagnosis_of<wrong::cuda_needs_a_target_from_sm_80, backend>();
  } else if constexpr (!backend::template computes_in<precision>) {
    return diagnosis_of<wrong::backend_has_no_such_precision, backend, precision>();
  } else if constexpr (requires { backend::is_device; } && tensor_optimizer<optimizer>) {
    return diagnosis_of<wrong::cuda_updates_single_elements, backend, optimizer>();
  } else if constexpr (!requires { backend::is_device; } && needs_cublaslt(products::products)) {
    return diagnosis_of<wrong::host_has_no_cublaslt, backend, products>();
  } else if constexpr (!is_constant<
                           workspace_call<optimizer, backend, typename precision::element>>) {
    return diagnosis_of<wrong::function_must_be_constexpr, optimizer,
                        wrong::Function<member::workspace_elements>>();
  } else {
    return std::type_identity<nothing_wrong>{};
  }
}

/// What is wrong with training model M at all.
template <class M>
constexpr auto diagnose_parameters() {
  constexpr bool any = [] {
    for (int i = 0; i < M::graph.size.parameters; ++i)
      if (M::graph.parameters[i].trained) return true;
    return false;
  }();
  if constexpr (any)
    return std::type_identity<nothing_wrong>{};
  else
    return diagnosis_of<wrong::no_parameters_to_train, M>();
}

/// The first of a model's layers that a device cannot run: a user-defined without functions for
/// one; or -1.
template <class Backend, class T, class... L>
constexpr int first_without_kernels(layers<L...>) {
  constexpr auto lacks = []<class Layer>(Layer const*) {
    if constexpr (requires { typename Layer::kernels; })
      return !Backend::template can_call<Layer, T>;
    else
      return false;
  };
  bool const found[] = {lacks(static_cast<L const*>(nullptr))...};
  for (int i = 0; i < int(sizeof...(L)); ++i)
    if (found[i]) return i;
  return -1;
}

/// What is wrong with running model M on the backend of options O.
template <class M, class O>
constexpr auto diagnose_backend() {
  using backend = typename O::template get<option_family::backend>;
  using leaves = typename M::leaves;
  if constexpr (requires { backend::is_device; }) {
    constexpr int lacking =
        first_without_kernels<backend, typename O::template get<option_family::precision>::value>(
            leaves{});
    if constexpr (lacking >= 0)
      return diagnosis_of<wrong::custom_layer_has_no_functions_for_cuda,
                          leaf_at<lacking, leaves>>();
    else
      return std::type_identity<nothing_wrong>{};
  } else {
    return std::type_identity<nothing_wrong>{};
  }
}

/// Whether a partition policy has times of a model with this number of layers, or needs none.
template <class Cutter>
constexpr bool has_times_of([[maybe_unused]] int layers) {
  if constexpr (requires { typename Cutter::profile; })
    return Cutter::profile::layers == layers;
  else
    return true;
}

/// What is wrong with the size of a micro-batch of model M.
template <class M, class O>
constexpr auto diagnose_size() {
  using size = typename O::template get<option_family::micro_batch_size>;
  constexpr long most[] = {most_samples, most_numbers_of_value};  // rows, and numbers
  constexpr auto largest = [] {
    list<long, 2> n{{M::graph.output.rows(), 0}};
    for (int i = 0; i < M::graph.size.ops; ++i)
      if (M::graph.ops[i].rows > n[0]) n[0] = M::graph.ops[i].rows;
    for (int i = 0; i < M::graph.size.values; ++i)
      if (M::graph.values[i].elements > n[1]) n[1] = M::graph.values[i].elements;
    return n;
  }();
  if constexpr (size::value > most[0] / largest[0])
    return diagnosis_of<wrong::micro_batch_is_too_large, M, size,
                        wrong::AtMost<most[0] / largest[0]>>();
  else if constexpr (size::value > most[1] / largest[1])
    return diagnosis_of<wrong::micro_batch_is_too_large, M, size,
                        wrong::AtMost<most[1] / largest[1]>>();
  else
    return std::type_identity<nothing_wrong>{};
}

/// What is wrong with cutting model M as options O say.
template <class M, class O>
constexpr auto diagnose_cut() {
  using stages = typename O::template get<option_family::stages>;
  using cutter = typename O::template get<option_family::partition>;
  if constexpr (stages::value > M::graph.size.units)
    return diagnosis_of<wrong::more_stages_than_layers, stages,
                        wrong::Layers<M::graph.size.units>>();
  else if constexpr (!has_times_of<cutter>(M::graph.size.units))
    return diagnosis_of<wrong::profile_is_of_another_model, typename cutter::profile,
                        wrong::Expected<M::graph.size.units>,
                        wrong::Found<cutter::profile::layers>>();
  else if constexpr (!cutter::possible(M::graph.size.units, stages::value))
    return diagnosis_of<wrong::cuts_must_ascend_and_make_as_many_stages, cutter, stages,
                        wrong::Layers<M::graph.size.units>>();
  else
    return std::type_identity<nothing_wrong>{};
}

}  // namespace pp
