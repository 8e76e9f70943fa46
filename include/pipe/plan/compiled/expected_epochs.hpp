// SPDX-License-Identifier: BSL-1.0
//
// The expected time of an epoch of samples of several lengths, by the composition of its
// mini-batches: each is simulated with the schedule and the slots of a pipeline with Lengths.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/compositions.hpp>
#include <pipe/plan/compiled/step_on_cores.hpp>
#include <pipe/plan/epoch_times.hpp>
#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/uneven.hpp>

namespace pp::detail {

/// What the micro-batches of compiled pipeline P with Lengths have room for.
template <class P>
composition_room room_of() {
  int const context = int(P::work::graph().inputs[0].form.elements()), each = P::samples;
  return {context, each, P::micro_batches, P::sum::accumulations,
          row_room{each * context, each * P::lengths::most, P::lengths::block}};
}

/// throws: data_error for a model with several inputs of lengths, or with lengths of a later one
///         alone; for no lengths, or one that is not in [0, context]
template <class P>
void require_lengths(char const* what, std::span<int const> lengths) {
  int const context = room_of<P>().context;
  bool has_one_list = P::work::graph().inputs[0].is_axis;
  for (int i = 1; i < P::work::graph().inputs.count; ++i)
    has_one_list = has_one_list && !P::work::graph().inputs[i].is_axis;
  if (!has_one_list)
    throw_error<data_error>(
        {what, ": expected a model whose first input has lengths, and no other input"});
  if (lengths.empty())
    throw_error<data_error>({what, ": expected the length of each sample, got none"});
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] < 0 || lengths[i] > context)
      throw_error<data_error>(
          {what, ": ", lengths[i], " at position ", i, " is not in [0, ", context, "]"});
}

/// An epoch by one composition.
///
/// units: nanoseconds
struct expected_epoch {
  long steps = 0;
  double time = 0;
  double bubble = 0;   ///< idle share of the ranks' time in forward and backward
  double waiting = 0;  ///< share of that time which more slots would save
};

/// The epochs of P, a compiled_pipeline or a planned_pipeline.
///
/// needs: Lengths, of which no other length is above the context; at least one sample
template <class P>
class expected_epochs {
  using stages = typename step_on_cores<P>::problem_of_stages;

 public:
  explicit expected_epochs(std::span<int const> lengths) : lengths_(lengths) {
    auto const of = step_on_cores<P>().by_length();
    full_ = {of.all, of.squares, of.fixed, {}};
    of_step_ = of.of_step;
    for (int s = 0; s + 1 < P::stages; ++s)
      slots_.push_back(
          spare_slots(boundary_slots(P::times(), P::table(), P::timeline(), s), P::micro_batches));
  }

  /// The room of a micro-batch.
  composition_room const& room() const { return room_; }
  /// Full micro-batches.
  uneven_problem<stages> const& full() const { return full_; }
  /// Whether micro-batches may have other numbers of samples than MicroBatchSize. Behind a pool
  /// they may not, as a row of each sample is planned.
  static bool go_by_tokens() { return P::work::graph().output.rows() > 1; }

  /// needs: go_by_tokens() for by_tokens and packed
  expected_epoch of(composition way) const { return of(lengths_, way); }
  /// The same samples, padded to the context.
  expected_epoch padded() const {
    return of(std::vector<int>(lengths_.size(), room_.context), composition::as_they_come);
  }

  /// The time of all ranks for samples of these rows and squares, in full micro-batches. Weights,
  /// which the samples of a micro-batch share, are apart.
  double work_of(double rows, double squares) const {
    using enum action_kind;
    double time = 0;
    for (int c = 0; c < P::stages; ++c)
      for (action_kind const kind : {forward, recompute, backward_input, backward_weight}) {
        action const a{kind, c, 0};
        double const square = double(full_.squares.time(a)), fixed = double(full_.fixed.time(a));
        if (kind == forward || P::schedule::trains)
          time += (double(full_.stages::time(a)) - square - fixed) * rows + square * squares;
      }
    return time;
  }

 private:
  expected_epoch of(std::span<int const> lengths, composition way) const {
    epoch_times const times = simulate_epoch(full_, P::table(), lengths, room_, way, slots_),
                      free = simulate_epoch(full_, P::table(), lengths, room_, way);
    return {long(times.batches), times.makespan + double(times.batches) * of_step_,
            times.bubble(P::ranks), 1 - free.makespan / times.makespan};
  }

  std::span<int const> lengths_;
  composition_room room_ = room_of<P>();
  uneven_problem<stages> full_;
  double of_step_ = 0;  // beside the mini-batch
  std::vector<slot_count> slots_;
};

}  // namespace pp::detail
