// SPDX-License-Identifier: BSL-1.0
//
// One stage of a compiled pipeline: programs, parameters, and memory layout in its chunk. Only this
// header and step_memory.hpp read the layouts of the passes.
#pragma once

#include <utility>

#include <pipe/base/bytes.hpp>
#include <pipe/base/list.hpp>
#include <pipe/plan/compiled/chunk_layout.hpp>
#include <pipe/plan/compiled/slot_parts.hpp>
#include <pipe/plan/compiled/update_ranges.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/device_blocks.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/policy.hpp>

namespace pp::detail {

/// Stage S of Work, a pipeline_schedule with a valid table.
template <class Work, int S>
struct compiled_stage {
  using passes = typename Work::passes;
  using flushed = typename Work::flushed;
  using element = typename Work::element;
  using value = typename Work::value;
  using optimizer = typename Work::optimizer;

  /// The stage's programs, with recomputed values or with all values kept.
  template <bool Drops>
  using programs = typename Work::template programs<S, Drops>;
  /// Either set of programs, for facts that both share, such as places of parameters.
  using any_programs = programs<!Work::some_keep>;

  /// Parameters of the stage, with buffers and tied ones.
  static constexpr int parameter_count = passes::ranges[S].parameters.size();

  /// Where each parameter lies in the chunk, in model order.
  static constexpr auto places = [](auto...) {
    list<parameter_place, parameter_count> all;
    pp::detail::place_parameters(passes::whole, passes::ranges[S],
                                 any_programs::layout.parameters.items,
                                 any_programs::layout.transposed.items, all.items);
    return all;
  }();

  /// The result of find_update_ranges: at most one range per parameter, of which `count` are used.
  struct update_memory {
    list<update_range, parameter_count> ranges;
    int count = 0;
    long state = 0;  // elements of optimizer state
  };
  static constexpr update_memory updates = [](auto...) {
    update_memory u;
    sink<update_range> ranges{u.ranges.items};
    u.state = find_update_ranges<optimizer, element>(
        passes::outline.parameters.part(passes::ranges[S].parameters),
        any_programs::layout.by_offset.items, ranges);
    u.count = ranges.count;
    return u;
  }();
  static constexpr view<update_range> update_ranges{updates.ranges.items, updates.count};

  /// Bytes of a micro-batch's values that no later program reads, the larger of both sets of
  /// programs.
  static constexpr long scratch_bytes() {
    long most = 0;
    if constexpr (Work::some_keep) most = programs<false>::layout.bytes.scratch;
    if constexpr (Work::some_drop)
      if (long const n = programs<true>::layout.bytes.scratch; n > most) most = n;
    return most;
  }

  /// The lists of a program. Their contents are made by make_launches_of, at run time.
  template <class Programs, program P>
  static constexpr program_view view_of() {
    return {Programs::template launch_list<P>.items.items,
            Programs::template launch_list<P>.operands.items,
            Programs::template launch_list<P>.items.size(), Programs::counts.trained[int(P)]};
  }
  /// Makes the launches of every program of a set, at run time.
  template <class Programs>
  static void make_launches_of() {
    Programs::template launches<program::forward>();
    if constexpr (Work::recomputes_ahead) Programs::template launches<program::recompute>();
    if constexpr (flushed::splits_backward) {
      Programs::template launches<program::backward_input>();
      Programs::template launches<program::backward_weight>();
    } else {
      Programs::template launches<program::backward>();
    }
  }
  /// The programs of a set, the gradients that pass through the stage, in the last stage the
  /// addresses of the outputs, and in the first stage those of gradients of inputs.
  template <class Programs>
  static constexpr program_set describe_set() {
    program_set set;
    set.programs[int(program::forward)] = view_of<Programs, program::forward>();
    if constexpr (Work::recomputes_ahead)
      set.programs[int(program::recompute)] = view_of<Programs, program::recompute>();
    if constexpr (flushed::splits_backward) {
      set.programs[int(program::backward_input)] = view_of<Programs, program::backward_input>();
      set.programs[int(program::backward_weight)] = view_of<Programs, program::backward_weight>();
    } else {
      set.programs[int(program::backward)] = view_of<Programs, program::backward>();
    }
    set.passed_gradients = Programs::passed_gradients;
    if constexpr (S == Work::stages - 1)
      for (int i = 0; i < passes::loss_inputs.size(); ++i)
        set.outputs[i] = Programs::template resolve<program::forward>(passes::loss_inputs[i].at);
    if constexpr (S == 0)
      for (int i = 0; i < passes::backward.inputs; ++i) {
        view<handed_on> const left = passes::boundaries[0].gradient;
        int const at = find(left, passes::backward.entering(0, crossing_of_input(i)));
        if (at >= 0) set.input_gradients[i] = address{region::gradient_out, left[at].offset};
      }
    return set;
  }

  /// What the passes say about the chunk.
  static constexpr chunk_facts facts() {
    chunk_facts f;
    if constexpr (Work::some_keep) f.keeping = programs<false>::totals();
    if constexpr (Work::some_drop) f.dropping = programs<true>::totals();
    f.state_bytes = updates.state * long(sizeof(element));
    if constexpr (S > 0) {
      f.entered = Work::template slots<S - 1>();
      f.received_bytes = passes::boundaries[S].forward_bytes;
    }
    if constexpr (S + 1 < Work::stages) {
      f.left = Work::template slots<S>();
      f.received_gradient_bytes = passes::boundaries[S + 1].gradient_bytes;
    }
    return f;
  }

  /// Makes the launches that describe() has the addresses of.
  static void make_launches() {
    if constexpr (Work::some_keep) make_launches_of<programs<false>>();
    if constexpr (Work::some_drop) make_launches_of<programs<true>>();
  }

  /// The parts of a slot of a boundary: see find_slot_parts.
  template <int Boundary, bool OfGradients>
  static constexpr auto parts = find_slot_parts<passes, Boundary, OfGradients>();

  /// Programs and memory layout, with offsets from the start of the chunk.
  static constexpr chunk_description describe() {
    chunk_description c;
    c.parameters = view<parameter_place>{places.items, places.size()};
    c.updates = update_ranges;
    if constexpr (Work::some_keep) c.keeping = describe_set<programs<false>>();
    if constexpr (Work::some_drop) c.dropping = describe_set<programs<true>>();
    c.passed_values = any_programs::passed_values;
    if constexpr (Work::lengths::block > 0 && Work::transport::copies) {
      if constexpr (S + 1 < Work::stages)
        c.value_parts = {parts<S + 1, false>.items, parts<S + 1, false>.size()};
      if constexpr (S > 0) c.gradient_parts = {parts<S, true>.items, parts<S, true>.size()};
    }
    describe_chunk<Work>(S, facts(), c);
    return c;
  }
};

}  // namespace pp::detail
