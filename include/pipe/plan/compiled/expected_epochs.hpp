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
#include <pipe/data/batch_check.hpp>
#include <pipe/data/compositions.hpp>
#include <pipe/plan/compiled/step_on_cores.hpp>
#include <pipe/plan/epoch_times.hpp>
#include <pipe/plan/options/lengths.hpp>
#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/slots.hpp>
#include <pipe/schedule/uneven.hpp>

namespace pp::detail {

/// The numbers of the inputs with lengths of P's model, ascending.
template <class P>
std::vector<int> inputs_with_lengths() {
  std::vector<int> all;
  graph_view const g = P::work::graph();
  for (int i = 0; i < g.inputs.count; ++i)
    if (is_axis(g.inputs[i], i)) all.push_back(i);
  return all;
}
/// What the micro-batches of compiled pipeline P with Lengths have room for.
template <class P>
composition_room room_of() {
  int const first = inputs_with_lengths<P>()[0], each = P::samples,
            context = int(P::work::graph().inputs[first].form.elements());
  return {context, each, P::micro_batches, P::sum::accumulations,
          row_room{each * context, each * P::lengths::most, P::lengths::block}};
}

/// The rows of samples, by input with lengths. given: the lengths of each sample, likewise
///
/// throws: data_error for lists of other inputs; for no lengths, or one that is not in [0,
/// context];
///         for lists of different numbers of samples
template <class P>
std::vector<measured_rows> measure_rows(char const* what,
                                        std::span<std::span<int const> const> given) {
  std::vector<int> const inputs = inputs_with_lengths<P>();
  if (given.size() != inputs.size())
    throw_error<data_error>({what, ": expected the lengths of ", inputs.size(),
                             " inputs of token ids, in their order, got those of ", given.size()});
  std::vector<measured_rows> all;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    int const context = int(P::work::graph().inputs[inputs[k]].form.elements());
    std::span<int const> const lengths = given[k];
    if (lengths.empty())
      throw_error<data_error>({what, ": expected the length of each sample, got none"});
    check_lengths({what}, lengths.size(), given[0].size());
    for (std::size_t s = 0; s < lengths.size(); ++s) check_length({what}, lengths[s], s, context);
    all.push_back({{lengths.begin(), lengths.end()},
                   context,
                   {P::samples * context, P::samples * P::lengths::most, P::lengths::block}});
  }
  return all;
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

/// The epochs of P, a compiled_pipeline or a planned_pipeline, of samples of several lengths.
template <class P>
class expected_epochs {
  using stages = typename step_on_cores<P>::problem_of_stages;

 public:
  /// inputs: as of measure_rows
  explicit expected_epochs(std::vector<measured_rows> inputs) : inputs_(std::move(inputs)) {
    auto const of = step_on_cores<P>().by_length();
    full_ = {of.all, of.squares, of.fixed, {}, std::size_t(P::stages)};
    of_step_ = of.of_step;
    // From axes, as in op::axis, to places among the inputs.
    int place[max_inputs + 1]{}, next = 1;
    for (int const input : inputs_with_lengths<P>()) place[input + 1] = next++;
    for (int s = 0; s < P::stages; ++s) {
      work_by_input& to = shares_.emplace_back();
      for (int a = 0; a <= max_inputs; ++a) {
        to.rows[place[a]] += of.shares[s].rows[a];
        for (int b = 0; b <= max_inputs; ++b)
          to.products[place[a]][place[b]] += of.shares[s].products[a][b];
      }
    }
    for (int s = 0; s + 1 < P::stages; ++s)
      slots_.push_back(
          spare_slots(boundary_slots(P::times(), P::table(), P::timeline(), s), P::micro_batches));
  }

  std::vector<measured_rows> const& inputs() const { return inputs_; }
  /// Full micro-batches, without loads.
  uneven_problem<stages> const& full() const { return full_; }
  /// The loads of an epoch's micro-batches.
  std::vector<micro_batch_load> loads(composed_epoch const& epoch) const {
    return loads_of(epoch, inputs_, shares_, P::samples);
  }
  /// Whether micro-batches may have other numbers of samples than MicroBatchSize. Behind a pool
  /// they may not, as a row of each sample is planned.
  static bool go_by_tokens() { return has_rows_alone<typename P::model>; }

  /// needs: go_by_tokens() for by_tokens and packed
  expected_epoch of(composition way) const { return of(inputs_, way); }
  /// The same samples, padded to the contexts.
  expected_epoch padded() const {
    std::vector<measured_rows> all = inputs_;
    for (measured_rows& in : all) in.lengths.assign(in.lengths.size(), in.context);
    return of(all, composition::as_they_come);
  }

  /// The time of all ranks for a load, in full micro-batches. Weights, which the samples of a
  /// micro-batch share, are apart.
  double work_of(work_by_input const& load) const {
    using enum action_kind;
    double time = 0;
    for (int c = 0; c < P::stages; ++c) {
      micro_batch_load const of = load.in(shares_[std::size_t(c)]);
      for (action_kind const kind : {forward, recompute, backward_input, backward_weight}) {
        action const a{kind, c, 0};
        double const square = double(full_.squares.time(a)), fixed = double(full_.fixed.time(a));
        if (kind == forward || P::schedule::trains)
          time += (double(full_.stages::time(a)) - square - fixed) * of.rows + square * of.squares;
      }
    }
    return time;
  }

  /// The values and gradients that ranks send each other in an epoch, in bytes: of the rows that
  /// are there.
  double sent() const {
    work_by_input all;
    for (std::size_t s = 0; s < inputs_[0].lengths.size(); ++s) all.add(inputs_, s, P::samples);
    return bytes_between([&](int chunk) { return all.in(shares_[std::size_t(chunk)]).rows; });
  }
  double sent_padded() const {
    return bytes_between([&](int) { return double(inputs_[0].lengths.size()) / P::samples; });
  }

 private:
  /// rows_of(chunk): of all samples, in full micro-batches
  template <class Rows>
  static double bytes_between(Rows const& rows_of) {
    double bytes = 0;
    for (link_plan const& link : P::plan().links) {
      int chunk = 0;
      while (!P::plan().stages[chunk].is_on(link.from)) ++chunk;
      bytes += double(link.bytes()) / link.every * rows_of(chunk);
    }
    return bytes;
  }
  expected_epoch of(std::vector<measured_rows> const& inputs, composition way) const {
    composition_room const room = room_of<P>();
    composed_epoch const epoch = compose(inputs, room, way);
    uneven_problem<stages> problem = full_;
    problem.loads = loads_of(epoch, inputs, shares_, P::samples);
    auto const simulated = [&](auto const& slots) {
      return simulate_loads(problem, P::table(), epoch.size(), room.micro_batches,
                            room.accumulations, slots);
    };
    epoch_times const times = simulated(slots_), free = simulated(unbounded_slots{});
    return {long(times.batches), times.makespan + double(times.batches) * of_step_,
            times.bubble(P::ranks), 1 - free.makespan / times.makespan};
  }

  std::vector<measured_rows> inputs_;
  uneven_problem<stages> full_;
  std::vector<work_by_input> shares_;  // by stage
  double of_step_ = 0;                 // beside the mini-batch
  std::vector<slot_count> slots_;
};

}  // namespace pp::detail
