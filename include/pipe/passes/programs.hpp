// SPDX-License-Identifier: BSL-1.0
//
// The programs of a stage: the order in which its kernels run.
#pragma once

#include <pipe/passes/stage.hpp>

namespace pp::detail {

/// The programs of a stage, each a list of segments: forward; B; W; B with W, in which each op of W
/// runs as soon as it can; and R.
enum class program : unsigned char {
  forward,
  backward_input,
  backward_weight,
  backward,
  recompute
};
/// law: a schedule runs either split_programs or whole_programs, the first item of which (R) only
///      if the schedule recomputes ahead
inline constexpr int program_count = 5;
inline constexpr program split_programs[] = {program::recompute, program::forward,
                                             program::backward_input, program::backward_weight},
                         whole_programs[] = {program::recompute, program::forward,
                                             program::backward};

/// Whether a program adds to sums over micro-batches: of gradients or, in forward, of buffers.
constexpr bool adds_up(program p) {
  return p != program::backward_input && p != program::recompute;
}

/// The programs that a schedule runs. recomputes_ahead: R is a program; otherwise it is part of
/// backward.
constexpr view<program> programs_of(bool splits_backward, bool recomputes_ahead) {
  int const first = !recomputes_ahead;
  return splits_backward ? view<program>{split_programs + first, 4 - first}
                         : view<program>{whole_programs + first, 3 - first};
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

/// Whether a program runs the ops of list l.
constexpr bool runs(program p, op_list l, recompute_place again) {
  switch (l) {
    case op_list::forward: return p == program::forward;
    case op_list::input_gradients: return p == program::backward || p == program::backward_input;
    case op_list::weight_gradients: return p == program::backward || p == program::backward_weight;
    case op_list::recompute:
      return p == program::recompute ? again == recompute_place::ahead
                                     : again == recompute_place::in_backward &&
                                           (p == program::backward || p == program::backward_input);
  }
  return false;
}

/// The number of segments of a program.
constexpr int length_of(program p, stage_range const& r, recompute_place again) {
  int n = 0;
  for (op_list l : every_op_list)
    if (runs(p, l, again)) n += r.segments[l].size();
  return n;
}

/// Lists the segments of a program in order.
///
/// shape: -> order[length_of(p, r, again)]
/// law:   in program::backward a weight gradient runs as soon as the value gradient that it reads
///        is complete
constexpr void order_program(per_op_list<fused_view> const& fused, stage_range const& r, program p,
                             recompute_place again, scheduled_segment* order) {
  int n = 0;
  for (op_list l : {op_list::recompute, op_list::forward})
    if (runs(p, l, again))
      for (int i = r.segments[l].begin; i < r.segments[l].end; ++i)
        order[n++] = scheduled_segment{l, i};
  auto const part = [&](op_list l) { return runs(p, l, again) ? r.segments[l] : range{}; };
  // Both lists are in descending order of the forward ops whose gradients they compute.
  range const inputs = part(op_list::input_gradients), weights = part(op_list::weight_gradients);
  segment const* const input_segments = fused[op_list::input_gradients].segments.items;
  segment const* const weight_segments = fused[op_list::weight_gradients].segments.items;
  int w = weights.begin;
  for (int b = inputs.begin; b < inputs.end; ++b) {
    int const origin = input_segments[b].first_origin;
    // W segments that read gradients of ops from `origin` on.
    for (; w < weights.end && weight_segments[w].last_origin >= origin; ++w)
      order[n++] = scheduled_segment{op_list::weight_gradients, w};
    order[n++] = scheduled_segment{op_list::input_gradients, b};
  }
  for (; w < weights.end; ++w) order[n++] = scheduled_segment{op_list::weight_gradients, w};
}

}  // namespace pp::detail
