// SPDX-License-Identifier: BSL-1.0
//
// The needs of an action: results of other actions, by number. No other header has the rules of
// data between actions: the simulated execution asks for those of a table, the period for those of
// a step in the middle of a run.
#pragma once

#include <cstddef>
#include <type_traits>

#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/slots.hpp>
#include <pipe/schedule/table.hpp>

namespace pp::detail {

/// The number of a result that is always ready.
inline constexpr int nothing_needed = 0;

/// The results that an action waits for, and the hop of `handed_over`.
struct result_needs {
  long own;  ///< of its own chunk: B and R wait for F, W for B, U for W
  /// Of the neighbouring chunk: F reads the output before it, B the gradient after it.
  long handed_over;
  long slot;  ///< of the last reader of the old value in the slot to be written
  int source_rank;
  long hop;
  long before;  ///< of the previous micro-batch, which adds to a shared sum first
};

/// The needs of actions of a run of `micro_batches` micro-batches on a placement.
template <pipeline_problem Problem, chunk_placement Where, class Slots>
struct needs_rule {
  Problem const& problem;
  Where const& where;
  Slots const& slots;
  bool trains;
  int micro_batches;
  /// The room for a chunk's results of one kind: an odd number of cache lines, as rows at a power
  /// of two would share the few places of a cache.
  long of_a_chunk;
  long of_a_kind;  // its chunks' rooms

  constexpr needs_rule(Problem const& of, Where const& placed, Slots const& channels,
                       bool is_training, int count)
      : problem(of), where(placed), slots(channels), trains(is_training), micro_batches(count),
        of_a_chunk((long(count + 7) / 8 | 1) * 8), of_a_kind(of.chunks * of_a_chunk) {}

  /// The three results of a chunk for a micro-batch.
  enum : int { output, input_gradient, weight_gradient, kinds };

  constexpr long result_of(int chunk, int micro_batch, int which) const {
    return 1 + which * of_a_kind + chunk * of_a_chunk + micro_batch;
  }
  /// The number of all results, nothing_needed included.
  constexpr long results() const { return 1 + kinds * of_a_kind; }
  /// The number of those that come first: nothing_needed, outputs and input gradients.
  constexpr long results_handed_over() const { return 1 + weight_gradient * of_a_kind; }

  /// Whether several ranks add to the weight gradients of one chunk, and in forward to the chunk's
  /// sums of buffers. The ranks add kernel by kernel, one rank behind the other, so an action ends
  /// no earlier than the same action of the previous micro-batch. If the chunk's actions take equal
  /// times, it begins no earlier, either.
  static constexpr bool ordered = adds_in_order<Where>;

  constexpr result_needs of(action const& a, int rank) const {
    using enum action_kind;
    int const chunk = a.chunk, mb = a.micro_batch;
    bool const is_forward = a.kind == forward,
               hands_on = is_forward || a.kind == backward_input || a.kind == backward;
    int const source = is_forward ? chunk - 1 : chunk + 1,
              reader = is_forward ? chunk + 1 : chunk - 1;
    bool const reads = hands_on && source >= 0 && source < problem.chunks;
    bool const writes = hands_on && reader >= 0 && reader < problem.chunks;
    int const source_rank = reads ? rank_of(where, problem.ranks, source, mb) : rank;

    int const own_result = a.kind == backward_weight ? input_gradient
                           : a.kind == update        ? weight_gradient
                                                     : output;
    long const own = is_forward ? nothing_needed : result_of(chunk, mb, own_result);
    long const handed_over =
        reads ? result_of(source, mb, is_forward ? output : input_gradient) : nothing_needed;
    long slot = nothing_needed;
    if constexpr (!std::is_same_v<Slots, unbounded_slots>)
      if (writes) {
        slot_count const ring = slots[static_cast<std::size_t>(is_forward ? chunk : reader)];
        long const length = is_forward ? ring.activation : ring.gradient;
        long const before = mb - (length > 0 ? length : 0) * replicas(where, chunk);
        if (before >= 0) slot = result_of(reader, int(before), trains ? weight_gradient : output);
      }
    return result_needs{own,
                        handed_over,
                        slot,
                        source_rank,
                        hop_time_of(problem, source_rank, rank, is_forward ? source : chunk, mb),
                        ordered && mb > 0 && (is_forward || makes_weight_gradient(a.kind))
                            ? result_of(chunk, mb - 1, is_forward ? output : weight_gradient)
                            : nothing_needed};
  }
};

}  // namespace pp::detail
