// SPDX-License-Identifier: BSL-1.0
//
// Compile-time diagnostics as one readable line: a type in namespace `wrong` that is never defined.
// A name in an undefined type is exactly one error in every compiler, and its line spells the whole
// type, with the diagnosis by name. docs/reference/errors.md has a paragraph and the fix for each.
#pragma once

#include <type_traits>

namespace pp {

namespace wrong {
/// The mistakes in a program: each name is the sentence that the compiler prints, and a heading in
/// docs/reference/errors.md, in the same order. The enumeration is unscoped because the sentence
/// then stands alone: pp::wrong::loss_needs_two_classes in g++, clang++ and nvcc. Comments: the
/// meaning of Expected and Found.
enum diagnosis : unsigned char {
  nothing,

  // The list of a model
  first_item_of_a_model_must_be_its_input,
  input_must_be_the_first_item_of_a_model,
  // expected: max_inputs
  model_has_too_many_inputs,
  loss_is_missing_at_the_end_of_the_model,
  loss_must_be_the_last_item_of_a_model,
  model_needs_at_least_one_layer,
  layer_has_no_layers_inside,
  lora_needs_a_linear_or_an_attention_inside,
  layer_is_derived_from_this_and_named_itself,
  // expected: most_nested
  layers_are_nested_too_deep,
  // expected: most_ops
  model_has_too_many_layers,
  item_is_not_a_layer,
  element_is_not_a_hana_type,
  sequence_of_hana_is_expected,
  type_has_no_list_of_layers,

  // Sizes and shapes
  // found: the shape of the operand
  pooling_needs_more_than_one_position,
  // expected: the vocabulary; found: the index
  padding_index_is_outside_of_the_vocabulary,
  // found: the shape
  layer_needs_an_image_of_three_extents,
  // found: the shape
  layer_needs_a_sequence_of_two_extents,
  // expected: the extents of the window, with its dilation; found: those of the padded input
  window_is_larger_than_its_padded_input,
  // expected: half of the window's extents; found: the padding
  padding_must_be_at_most_half_of_the_window,
  // expected: the largest padding that can be mirrored; found: the padding
  reflection_must_be_narrower_than_its_input,
  // expected: the elements of the new shape; found: the shape
  reshape_must_keep_the_number_of_elements,
  size_must_be_positive,
  size_must_not_be_negative,
  size_is_too_large,
  input_needs_one_to_four_extents,
  layer_needs_real_numbers_but_gets_token_ids,
  layer_needs_token_ids_but_gets_real_numbers,
  // expected: the shape of the input; found: that of the result
  residual_must_keep_the_shape,
  // expected: the shape of the branches before; found: that of the next
  branches_must_have_the_same_shape,
  // found: the width
  heads_do_not_divide_the_width,
  // found: the heads of keys and values
  key_value_heads_do_not_divide_the_heads,
  // found: the channels
  norm_groups_must_divide_the_channels,
  // found: the shape of the operand
  norm_group_has_one_number,
  // found: the size of a head
  rotary_embedding_needs_an_even_head_size,
  gate_needs_an_even_width,
  // expected: a patch; found: the image
  patches_do_not_divide_the_image,
  reversible_needs_an_even_width,
  attention_needs_two_positions,
  layer_needs_two_channels,
  // found: the columns of the operand
  loss_needs_two_classes,
  loss_takes_logits_but_gets_probabilities,

  // Options of layers
  layer_does_not_take_this_option,
  layer_option_is_given_twice,
  // expected: the groups; found: channels, filters
  groups_do_not_divide_the_channels,
  // expected: the stride; found: the output padding
  output_padding_must_be_below_the_stride,
  // found: numerator, denominator
  ratio_is_out_of_range,
  ratio_is_written_as_two_integers,

  // Values and layers with names
  name_must_not_be_empty,
  name_must_be_utf8,
  parameters_have_the_same_name_in_files,
  value_is_popped_but_never_stashed,
  popped_value_must_have_the_shape_of_the_current_one,
  // found: the shape of the stashed value
  value_is_stashed_but_never_popped,
  // found: the shape of the value
  value_must_be_stashed_before_another_replaces_it,
  name_is_given_twice,
  // expected: 1; found: the complete layers of that name
  tied_name_must_belong_to_exactly_one_layer_before,
  // expected: the shape of the shared parameter; found: the shape that the tied layer asks for
  tied_layer_needs_parameters_of_the_same_shape,
  tied_layer_must_have_no_buffers,
  // expected: the number of parameters that can be shared
  tied_layers_have_too_many_parameters,

  // Layers of your own
  formula_needs_forward_and_derivative,
  loss_needs_value_and_slope,
  triplet_needs_three_equal_parts,
  contrast_needs_two_equal_parts,
  class_weights_must_be_one_for_each_class,
  custom_layer_needs_its_shapes_and_its_functions,
  function_must_be_constexpr,
  value_must_be_constexpr,
  buffer_rule_is_out_of_range,
  custom_layer_has_too_many_parameters,

  // Options of a pipeline
  first_argument_of_a_pipeline_must_be_a_model,
  model_must_be_derived_from_publicly,
  model_must_be_complete_before_it_is_trained,
  option_is_unknown,
  schedule_is_incomplete,
  optimizer_is_incomplete,
  recompute_is_incomplete,
  transport_is_incomplete,
  partition_is_incomplete,
  precision_is_incomplete,
  recompute_needs_kinds_of_op,
  option_is_given_twice,
  number_must_be_positive,
  number_is_too_large,
  number_must_be_a_power_of_two,
  mini_batch_is_accumulated_already,
  micro_batch_is_too_large,
  micro_batch_norms_one_number,
  micro_batch_contrasts_one_row,
  sync_over_must_divide_the_micro_batch,
  step_is_too_large,
  decay_of_averages_is_out_of_range,
  more_stages_than_layers,
  cuts_must_ascend_and_make_as_many_stages,
  profile_is_of_another_model,
  no_parameters_to_train,
  cuda_is_compiled_by_nvcc,
  cuda_needs_a_target_from_sm_80,
  wgmma_products_need_sm_90a_alone,
  backend_has_no_such_precision,
  optimizer_has_no_passes_for_cuda,
  optimizer_has_no_error_feedback,
  host_has_no_cublaslt,
  ranks_of_a_device_share_its_memory,
  gradients_are_divided_on_the_host,
  zero_has_levels_0_to_3,
  divided_gradients_are_of_one_micro_batch,
  divided_gradients_are_updated_by_element,
  replicas_share_evenly,
  divided_parameters_have_no_averages,
  divided_gradients_are_of_one_rank,
  replicas_of_a_stage_are_on_the_host,
  replicas_of_a_stage_need_shared_memory_or_streams,
  backend_has_no_devices,
  process_has_one_device,
  transport_is_between_devices,
  more_devices_than_ranks,
  custom_layer_has_no_functions_for_cuda,
  layer_runs_on_the_host_alone,
  lengths_do_not_go_with,
  images_are_cropped_or_padded_to_one_size,
  lengths_are_of_token_ids_alone,
  block_must_divide_the_context,
  layer_needs_samples_of_one_length,

  // Schedules
  schedule_does_not_train,
  pipeline_keeps_one_version_of_each_weight,
  steps_do_not_overlap_with,
  stages_must_update_independently,
  schedule_has_no_stage_replicas,
  stages_are_no_multiple_of_the_chunks_per_rank,
  schedule_refuses_these_numbers,
  schedule_is_not_readable,
  schedule_is_not_valid,

  // Decoders
  decoder_needs_token_ids_as_the_only_input,
  decoder_needs_scores_of_the_vocabulary_at_every_position,
  layer_cannot_run_position_by_position,

  // Memory
  memory_limit_is_exceeded,

  // Arguments of a pipeline
  inputs_have_the_wrong_type,
  labels_have_the_wrong_type,
  outputs_have_the_wrong_type,
  host_has_no_device_memory,
  arrays_are_on_one_device,
  inputs_and_labels_are_one_argument_in_braces,
  predict_needs_a_trainer,
  predict_needs_the_inputs,
  further_inputs_are_given_by_name,
  model_has_no_input_with_that_name,
  model_has_no_loss_with_that_name,
  checkpoints_need_their_header,
  optimizer_state_needs_names,
  pipeline_keeps_no_averages,
  pipeline_prefetches_nothing,
  pipeline_has_samples_of_one_length,
  pipeline_has_no_input_gradients,
  input_gradients_are_of_one_process_on_the_host,
  input_has_no_gradient,
  there_is_no_such_setting,
  settings_have_names_and_are_in_braces,
  only_a_pipeline_can_be_explained,
};

/// The type of a message, never defined: a mistake in a layer of a model. Position: of the
/// top-level layer, from 0, in the list that `explain` prints.
template <int Position, diagnosis What, class... Words>
struct Layer;
/// The same for any other mistake.
template <diagnosis What, class... Words>
struct Use;
}  // namespace wrong

namespace detail {

/// The diagnosis of a correct program.
struct nothing_wrong {
  static constexpr bool ok = true;
};

/// A word of a message as a value. A deduced argument is the type itself and not an alias of it,
/// which nvcc would spell instead.
template <class T>
using word = std::type_identity<T>;

/// The type whose name is the message.
template <wrong::diagnosis What, class... Words>
constexpr std::type_identity<wrong::Use<What, Words...>> say(word<Words>...) {
  return {};
}

/// The same for types that may be spelled by an alias.
template <wrong::diagnosis What, class... Words>
constexpr auto diagnosis_of() {
  return say<What>(word<Words>{}...);
}

/// Reports the diagnosis that a function returns as std::type_identity<Diagnosis>:
///
///     static_assert(decltype(diagnosed(diagnose<M>()))::ok);
///
/// The type of a call's result has no alias, so every compiler spells the diagnosis itself and not
/// the alias under which it was found.
template <class Diagnosis>
Diagnosis diagnosed(std::type_identity<Diagnosis>);

/// The same for functions and variables: the error is inside a class of its own, so it is reported
/// once and leaves the function or variable usable.
///
///     static_assert(accepted<decltype(diagnose<M>())>::value);
template <class Found>
struct accepted {
  // The name of the diagnosis is a heading in docs/reference/errors.md.
  static_assert(decltype(detail::diagnosed(Found{}))::ok);
  static constexpr bool value = true;
};

/// Whether a diagnosis is that nothing is wrong.
template <class Diagnosis>
inline constexpr bool is_accepted = std::is_same_v<Diagnosis, nothing_wrong>;

/// The first finding of a list of checks, each with a static `diagnose()`. Checks after the first
/// finding are not instantiated, so each may rely on those before it.
template <class Check, class... Rest>
constexpr auto first_finding() {
  using found = decltype(Check::diagnose());
  if constexpr (sizeof...(Rest) == 0)
    return found{};
  else if constexpr (is_accepted<typename found::type>)
    return first_finding<Rest...>();
  else
    return found{};
}

/// Whether all arguments are types. False only where the compiler has already reported an argument
/// that is none, for instance a bare `Linear`: nvcc then continues with a placeholder, and every
/// use of it would be one more error.
template <class... T>
concept all_are_types = (... && (sizeof(std::type_identity<T>) > 0));

}  // namespace detail

}  // namespace pp
