// SPDX-License-Identifier: BSL-1.0
//
// The programs of a stage: the order in which its kernels run.
#pragma once

#include <pipe/passes/stage.hpp>

namespace pp::detail {

/// The programs of a stage, each a list of segments: forward; B; W; and B with W, where each W runs
/// as soon as it can.
enum class program : unsigned char { forward, backward_input, backward_weight, backward };
/// law: a schedule runs either split_programs or whole_programs
inline constexpr int program_count = 4;
inline constexpr program split_programs[] = {program::forward, program::backward_input,
                                             program::backward_weight},
                         whole_programs[] = {program::forward, program::backward};

/// The programs that a schedule runs.
constexpr view<program> programs_of(bool splits_backward) {
  return splits_backward ? view<program>{split_programs, 3} : view<program>{whole_programs, 2};
}
/// The program that makes input gradients.
constexpr program backward_of(bool splits_backward) {
  return splits_backward ? program::backward_input : program::backward;
}

/// A segment in a program: a list of ops, and an index into that list's segments.
struct scheduled_segment {
  op_list list = op_list::forward;
  int index = 0;
};

/// Whether a program begins with the recomputed ops. `drops`: whether the values that the recompute
/// policy drops are dropped in this run.
constexpr bool recomputes(program p, bool drops) {
  return drops && (p == program::backward || p == program::backward_input);
}

/// The number of segments of a program.
constexpr int length_of(program p, stage_range const& r, bool drops) {
  auto const count = [&](op_list l) { return r.segments[l].size(); };
  int own = 0;
  switch (p) {
    case program::forward: own = count(op_list::forward); break;
    case program::backward_input: own = count(op_list::input_gradients); break;
    case program::backward_weight: own = count(op_list::weight_gradients); break;
    case program::backward:
      own = count(op_list::input_gradients) + count(op_list::weight_gradients);
      break;
  }
  return own + (recomputes(p, drops) ? count(op_list::recompute) : 0);
}

/// Lists the segments of a program in order.
///
/// shape: -> order[length_of(p, r, drops)]
/// law:   in program::backward a weight gradient runs as soon as the gradient that it reads is
///        complete
constexpr void order_program(compiled_model const& m, stage_range const& r, program p, bool drops,
                             sink<scheduled_segment>& order) {
  auto const take = [&](op_list l) {
    for (int i = r.segments[l].begin; i < r.segments[l].end; ++i)
      order.push_back(scheduled_segment{l, i});
  };
  if (recomputes(p, drops)) take(op_list::recompute);
  switch (p) {
    case program::forward: return take(op_list::forward);
    case program::backward_input: return take(op_list::input_gradients);
    case program::backward_weight: return take(op_list::weight_gradients);
    case program::backward: break;
  }
  range const inputs = r.segments[op_list::input_gradients],
              weights = r.segments[op_list::weight_gradients];
  segment const* const input_segments = m.kernels.fused[op_list::input_gradients].segments.items;
  segment const* const weight_segments = m.kernels.fused[op_list::weight_gradients].segments.items;
  int w = weights.begin;
  auto const ready = [&](int origin) {  // W segments that read gradients of ops from `origin` on
    while (w < weights.end &&
           m.backward.weight_ops.items[weight_segments[w].end - 1].origin >= origin)
      order.push_back(scheduled_segment{op_list::weight_gradients, w++});
  };
  for (int b = inputs.begin; b < inputs.end; ++b) {
    ready(m.backward.input_ops.items[input_segments[b].begin].origin);
    order.push_back(scheduled_segment{op_list::input_gradients, b});
  }
  ready(-1);
}

}  // namespace pp::detail
