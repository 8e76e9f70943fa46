// SPDX-License-Identifier: BSL-1.0
//
// The faults of a model as values: passes record the first, and graph/diagnostics.hpp turns it into
// a diagnostic.
#pragma once

#include <pipe/base/shape.hpp>

namespace pp {

namespace detail {

/// The kinds of mistakes in a model, one for each diagnostic in namespace `wrong`.
enum class fault_kind : unsigned char {
  none,
  first_item_is_not_an_input,
  input_is_not_first,
  loss_is_missing,
  loss_is_not_last,
  needs_real_numbers,
  needs_token_ids,
  residual_changes_the_shape,
  // expected: the shape of the branches before; found: that of the next
  branches_differ,
  heads_do_not_divide,
  key_value_heads_do_not_divide,
  rotary_head_is_odd,
  gate_width_is_odd,
  // expected: a patch; found: the image
  patches_do_not_divide,
  reversible_width_is_odd,
  // found: the shape of the pool's operand
  pool_of_one_row,
  // expected: the extents of the window, with its dilation; found: those of the padded input
  window_too_large,
  // expected: half of the window's extents; found: the padding
  padding_over_half,
  // expected: the largest padding that can be mirrored; found: the padding
  reflection_too_wide,
  // expected: the elements of the new shape; found: the shape
  reshape_changes_the_size,
  size_not_positive,
  size_is_negative,
  // expected: 3 extents of an image, or 2 of a sequence; found: the shape
  not_an_image,
  not_a_sequence,
  // expected: the groups; found: channels, filters
  groups_do_not_divide,
  // expected: the stride; found: the output padding
  output_padding_too_large,
  // found: numerator, denominator
  ratio_out_of_range,
  not_a_layer,
  no_layers,
  pop_without_stash,
  popped_shape_differs,
  // found: the shape of the stashed value
  stash_is_never_popped,
  // found: the shape of the value
  value_is_thrown_away,
  // expected: max_inputs
  too_many_inputs,
  // expected: 1; found: the complete layers of that name
  tied_to_nothing,
  // expected: the shape of the shared parameter; found: the shape that the tied layer asks for
  tied_shape_differs,
  tied_buffer,
  commit_out_of_range,
  // expected: the number of parameters that can be shared
  too_many_tied,
  name_twice,
  size_too_large,
  extents_of_input,
  option_not_taken,
  option_twice,
  formula_is_incomplete,
  loss_is_incomplete,
  class_weights_differ,
  custom_is_incomplete,
  too_many_custom_parameters,
  no_layers_inside,
  nothing_to_adapt,
  base_is_no_layer,
  ratio_of_real_numbers,
  probabilities_to_a_loss_of_logits,
  // found: the columns of the loss's operand
  one_class,
  one_position,
  one_channel,
  // found: the channels
  norm_groups_do_not_divide,
  // found: the shape of the norm's operand
  norm_group_of_one,
  name_is_empty,
  name_is_no_text,
  parameters_of_one_name,
  // expected: most_ops
  too_many_layers,
  // expected: most_nested
  nested_too_deep,
  function_not_constexpr,
  value_not_constexpr,
  no_such_layer,
};

}  // namespace detail

/// The members of user-defined types that diagnostics can name as missing or not constant.
enum class member : unsigned char {
  none,
  forward,
  derivative,
  derivative_reads_output,
  value,
  slope,
  result,
  input_gradient,
  parameter,
  weight_gradient,
  name,
  where,
  chunks_per_rank,
  splits_backward,
  trains,
  fill,
  learning_rate,
  states_and_prepare,
  refuses,
  saved_per_sample,
  flops,
  parameters,
  buffer,
  buffers,
  statistics,
  of,
  fits_a_constant,
  updates,
  recomputes_ahead,
  states,
  takes,
  state_elements,
  workspace_elements,
  describe,
  drops,
  keeps_last,
  recomputes,
  cut,
  element,
  product,
  scales_loss,
  copies,
  constructor,
  place,
  set_memory,
  reset,
  wake_all,
  share,
  at,
  arrive_and_wait,
  cancel_barrier,
  publish,
  wait
};

namespace detail {

/// The first fault of a model, or none. `expected` and `found` are shapes or single numbers,
/// depending on the kind.
struct model_fault {
  fault_kind what = fault_kind::none;
  int layer = 0;  // top-level position, from 0, in the opened list that `explain` prints
  int leaf = -1;  // the layer type, as an index into the model's leaf types
  shape expected{}, found{};
  int option = -1;  // index into the leaf's `options`; -1: the fault is not about an option
  member missing = member::none;
  constexpr bool ok() const { return what == fault_kind::none; }
};

}  // namespace detail

}  // namespace pp
