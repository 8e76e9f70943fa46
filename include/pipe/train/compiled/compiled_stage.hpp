// SPDX-License-Identifier: BSL-1.0
//
// One stage of a compiled pipeline: its programs, its parameters, and where its memory lies in the
// chunk. This header and step_memory.hpp are where the layouts of the passes are read.
#pragma once

#include <type_traits>
#include <utility>

#include <pipe/base/bytes.hpp>
#include <pipe/base/list.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/train/compiled/update_ranges.hpp>

namespace pp {

/// Work: a pipeline_schedule whose table is valid.
template <class Work, int S>
struct compiled_stage {
  using passes = typename Work::passes;
  using schedule = typename Work::schedule;
  using element = typename Work::element;
  using value = typename Work::value;
  using optimizer = typename Work::optimizer;
  static constexpr auto const& graph = Work::model::graph;

  /// The stage's programs, with values made again or all kept.
  template <bool Drops>
  using programs = typename passes::template programs<S, Drops>;
  /// Where both are in use, those that keep everything. Parameters lie alike in both.
  using any_programs = programs<!Work::some_keep>;

  /// Whether what another stage hands over arrives in a slot of this one's own: it is on another
  /// rank, and the transport copies.
  static constexpr bool copies_from(int other) {
    return Work::transport::copies &&
           rank_of(schedule::where, Work::ranks, other) != rank_of(schedule::where, Work::ranks, S);
  }

  static constexpr int first_parameter = passes::ranges[S].parameters.begin,
                       parameter_count = passes::ranges[S].parameters.size();

  static constexpr auto place_parameters() {
    constexpr auto const& layout = any_programs::layout;
    list<parameter_place, parameter_count> all;
    for (int i = 0; i < parameter_count; ++i) {
      int const index = first_parameter + i;
      parameter const& p = graph.parameters[index];
      all[i] = parameter_place{index,
                               p.trained,
                               p.tied_to >= 0,
                               p.rows,
                               p.columns,
                               layout.parameters[i],
                               passes::backward.transposed[index] ? layout.transposed[i] : -1};
    }
    return all;
  }
  static constexpr auto places = place_parameters();
  static constexpr auto updates = find_update_ranges<optimizer, element, parameter_count>(
      graph.parameters + first_parameter, any_programs::layout.by_offset);

  /// Of a micro-batch's values that are not kept, in either set of programs.
  static constexpr long scratch_bytes() {
    long most = 0;
    if constexpr (Work::some_keep) most = programs<false>::layout.bytes.scratch;
    if constexpr (Work::some_drop)
      if (long const n = programs<true>::layout.bytes.scratch; n > most) most = n;
    return most;
  }

  template <class Programs, program P>
  static constexpr program_view view() {
    return {Programs::template launches<P>.items.items,
            Programs::template launches<P>.operands.items,
            Programs::template launches<P>.items.size()};
  }
  template <class Programs>
  static constexpr program_set describe_set() {
    program_set set;
    set.programs[int(program::forward)] = view<Programs, program::forward>();
    if constexpr (schedule::splits_backward) {
      set.programs[int(program::backward_input)] = view<Programs, program::backward_input>();
      set.programs[int(program::backward_weight)] = view<Programs, program::backward_weight>();
    } else {
      set.programs[int(program::backward)] = view<Programs, program::backward>();
    }
    set.passed_gradients = Programs::passed_gradients.items;
    set.passed_gradient_count = Programs::passed_gradients.count;
    if constexpr (S == Work::stages - 1)
      set.output = Programs::template resolve<program::forward>(graph.loss().in[0]);
    return set;
  }

  /// Programs and memory. Offsets are from the start of the chunk.
  static constexpr chunk_description describe() {
    constexpr auto const& layout = any_programs::layout;
    constexpr stage_bytes const& b = layout.bytes;
    chunk_description c;
    c.rank = rank_of(schedule::where, Work::ranks, S);
    c.parameters = places.items;
    c.parameter_count = places.size();
    c.parameter_bytes = b.parameters;
    c.trained_bytes = b.trained;
    c.updates = updates.ranges.items;
    c.update_count = int(updates.ranges.size());
    auto const take = [&](long bytes) {
      long const at = c.bytes;
      c.bytes += align_up(bytes);
      return at;
    };
    auto const take_ring = [&](long stride, int slots) {
      return ring{take(stride * slots), stride, slots < 1 ? 1 : slots};
    };
    c.values = take(b.parameters);
    c.gradients = take(b.trained);
    c.state = take(updates.state * long(sizeof(element)));
    c.average = take(Work::averaging::averages ? b.trained : 0);
    c.copy_bytes =
        passes::has_copies ? b.parameters / long(sizeof(element)) * long(sizeof(value)) : 0;
    c.copies = take(c.copy_bytes);
    c.transposed = take(b.transposed);
    c.transposed_bytes = b.transposed;
    int const in_flight = peak_in_flight(Work::table(), c.rank, S);
    long pending = 0;
    bool rereads_result = false, rereads_gradient = false;
    c.first_kept = Work::first_kept;
    auto const add_set = [&]<class Programs>(program_set& set, std::type_identity<Programs>,
                                             int most) {
      constexpr auto const& own = Programs::layout;
      set = describe_set<Programs>();
      set.records = take_ring(own.bytes.record, in_flight < most ? in_flight : most);
      pending = own.bytes.pending > pending ? own.bytes.pending : pending;
      rereads_result = rereads_result || own.rereads_result;
      rereads_gradient = rereads_gradient || own.rereads_gradient;
    };
    if constexpr (Work::some_keep)
      add_set(c.keeping, std::type_identity<programs<false>>{},
              Work::micro_batches - Work::first_kept);
    if constexpr (Work::some_drop)
      add_set(c.dropping, std::type_identity<programs<true>>{}, Work::first_kept);
    int const pending_slots = Work::pending_slots(S);
    c.pending = take_ring(pending, pending_slots);
    if constexpr (S + 1 < Work::stages) {
      int const least = Work::template slots<S>().activation;
      c.boundary = take_ring(b.boundary, rereads_result && least < in_flight ? in_flight : least);
    }
    if constexpr (S > 0) {
      int const least = Work::template slots<S - 1>().gradient;
      c.gradient =
          take_ring(b.gradient, rereads_gradient && least < pending_slots ? pending_slots : least);
    }
    if constexpr (S > 0)
      if (copies_from(S - 1))
        c.received = take_ring(passes::boundaries[S].forward_bytes,
                               Work::template slots<S - 1>().activation);
    if constexpr (S + 1 < Work::stages)
      if (copies_from(S + 1))
        c.received_gradient =
            take_ring(passes::boundaries[S + 1].gradient_bytes, Work::template slots<S>().gradient);
    c.passed_values = any_programs::passed_values.items;
    c.passed_value_count = any_programs::passed_values.count;
    return c;
  }
};

}  // namespace pp
