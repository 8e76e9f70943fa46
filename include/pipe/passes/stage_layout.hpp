// SPDX-License-Identifier: BSL-1.0
//
// The layout of one stage's memory, and the storage of the result: constants of stage_programs, or
// the heap of heap_stage.
#pragma once

#include <pipe/passes/launches.hpp>
#include <pipe/passes/storage.hpp>

namespace pp::detail {

/// The addresses of a stage's values, and the offsets of its parameters.
template <class Values, class Parameters, class Passed>
struct stage_layout : layout_totals {
  array<address, Values> values;       // in forward; by value: forward values, then gradients
  array<address, Values> recomputed;   // in all other programs; by value
  array<long, Parameters> parameters;  // offset of each parameter and of its gradient
  array<int, Parameters> by_offset;    // parameters in the order of their offsets
  array<long, Parameters> transposed;  // offset of the transposed copy, where there is one
  // Values and gradients that leave the stage but are not computed in their boundary slots.
  array<copied, Passed> passed_values, passed_gradients;
  /// The lengths of these two lists; `Passed` is the room of each.
  int passed_value_count = 0, passed_gradient_count = 0;
};

/// A stage of a model. drops: whether forward drops the values that backward recomputes
struct stage_position {
  compiled_model const& model;
  stage_range const& range;
  int stage = 0;
  bool drops = false;
};

/// Lays out a stage: parameters first, then values. note(layout, p) calls value_layout::note() of
/// program p, and is called in the order in which the programs run.
///
/// values:  local_values() of at.range
/// passed:  at least the number of values, and of gradients, that leave the stage
/// uses:    `values` for each program that runs
/// scratch: in_memory and in_evaluation are given, working memory is set here
template <class Values, class Parameters, class Passed, class Uses, class Note>
constexpr auto lay_out_stage(stage_position const& at, layout_scratch scratch, Values values,
                             Parameters parameters, Passed passed, Uses uses, Note const& note) {
  stage_layout<Values, Parameters, Passed> l{{},
                                             array_of<address>(values),
                                             array_of<address>(values),
                                             array_of<long>(parameters),
                                             array_of<int>(parameters),
                                             array_of<long>(parameters),
                                             array_of<copied>(passed),
                                             array_of<copied>(passed)};
  layout_sinks out{l.values.begin(),
                   l.recomputed.begin(),
                   l.parameters.begin(),
                   l.by_offset.begin(),
                   l.transposed.begin(),
                   {l.passed_values.begin()},
                   {l.passed_gradients.begin()}};
  auto order_of = array_of<char>(parameters);
  lay_out_parameters(at.model, at.range, order_of.begin(), out, l.bytes);
  auto seen = array_of<occurrence>(uses);
  auto forward_blocks = array_of<scratch_block>(values + fixed<1>{}),
       backward_blocks = array_of<scratch_block>(values + fixed<1>{});
  scratch.forward_blocks = forward_blocks.begin();
  scratch.backward_blocks = backward_blocks.begin();
  view<program> const run = programs_of(at.model.splits_backward, at.model.recomputes_ahead);
  for (int i = 0; i < run.count; ++i)
    scratch.seen[int(run[i])] = seen.begin() + i * long(int(values));
  value_layout pass(at.model, at.range, at.stage, at.drops, scratch);
  for (int i = 0; i < run.count; ++i) note(pass, run[i]);
  pass.run(out, l);
  l.passed_value_count = out.passed_values.count;
  l.passed_gradient_count = out.passed_gradients.count;
  return l;
}

}  // namespace pp::detail
