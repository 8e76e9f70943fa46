// SPDX-License-Identifier: BSL-1.0
//
// A fault of a model as a value: passes record the first fault, and graph/diagnostics.hpp turns
// this value into a diagnostic.
#pragma once

#include <pipe/base/diagnosis.hpp>
#include <pipe/base/shape.hpp>

namespace pp {

namespace wrong {

/// The members of user-defined types that diagnostics can name as missing or not constant.
enum member : unsigned char {
  none,
  forward,
  derivative,
  derivative_reads_output,
  value,
  slope,
  slopes,
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
  samples_are_independent,
  labels,
  statistics,
  of,
  fits_a_constant,
  updates,
  recomputes_ahead,
  limits_memory,
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

}  // namespace wrong

namespace detail {

/// The first fault of a model, or none. The message has a word for each member that is set.
struct model_fault {
  wrong::diagnosis what = wrong::nothing;
  int layer = 0;  // top-level position, from 0, in the opened list that `explain` prints; -1: none
  int leaf = -1;  // the layer type, as an index into the model's leaf types
  sample_shape expected{}, found{};  // shapes or single numbers, depending on the diagnosis
  int option = -1;  // index into the leaf's `options`; -1: the fault is not about an option
  wrong::member missing = wrong::member::none, function = wrong::member::none,
                value = wrong::member::none;
  bool says_type = true, says_name = false;  // whether the message has the type, and the name in it
  constexpr bool ok() const { return what == wrong::nothing; }
};

}  // namespace detail

}  // namespace pp
