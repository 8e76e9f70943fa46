// SPDX-License-Identifier: BSL-1.0
//
// A pair: a forward and a backward of different micro-batches that a rank runs together, as one
// action with a time of its own. In a rank's list the forward is marked, and the backward follows
// it. The pair begins when the inputs of both actions are there, and the results of both are there
// at its end.
//
// A mark and not a kind of action: what counts micro-batches, memory, versions or order reads the
// list as it is, and only what knows of time asks for the mark. F is first, so that the list counts
// what both need at once. In a sum that ranks of a stage make in micro-batch order, each half waits
// by itself: as wholes two such pairs would wait for each other. `Paired<DualPipe>` is the authors'
// schedule, `DualPipe` has no pairs, as they cost time where nothing is hidden. On a host, and on
// one stream of a GPU, the halves run one after the other.
#pragma once

#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/table.hpp>

namespace pp::detail {

/// Whether two actions may be a pair: F, and then B or BW of another micro-batch.
constexpr bool makes_pair(action const& first, action const& second) {
  return first.kind == action_kind::forward && makes_input_gradient(second.kind) &&
         first.micro_batch != second.micro_batch && !second.with_next;
}

/// Whether the action at a position is the backward of a pair.
template <action_table Table>
constexpr bool is_second(Table const& table, int rank, int position) {
  return position > 0 && table.at(rank, position - 1).with_next;
}

/// The times of a pair. The two actions divide the pair's time in proportion to the times that they
/// take alone.
///
/// law: first <= whole; whole = first + second
struct pair_time {
  long whole, first;
  constexpr long second() const { return whole - first; }
};
template <pipeline_problem Problem>
constexpr pair_time time_of(Problem const& problem, action const& first, action const& second) {
  long const whole = problem.time_of_pair(first, second), f = problem.time(first),
             sum = f + problem.time(second);
  // In floating point, as products of times may not fit a long.
  long const share = sum == 0       ? 0
                     : whole == sum ? f
                                    : static_cast<long>(double(whole) * (double(f) / double(sum)));
  return {whole, share < whole ? share : whole};
}

}  // namespace pp::detail
