// SPDX-License-Identifier: BSL-1.0
//
// The simulated execution of a table. Every rank runs its actions in order, each as soon as the
// rank is free and its inputs are ready; the outcome does not depend on the order in which ranks
// are visited. `validate` asks whether every rank reaches its end, `simulate` asks when. A blocked
// rank waits in the list of the one result that it misses, so the work is linear in the number of
// actions. In a static_assert that matters: compilers allow about a million steps (clang++:
// statements), which is why this file uses few and long statements.
#pragma once

#include <cstddef>
#include <type_traits>

#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/required.hpp>
#include <pipe/schedule/scratch.hpp>
#include <pipe/schedule/slots.hpp>
#include <pipe/schedule/table.hpp>

namespace pp::detail {

/// One execution. `Slots` is indexed by boundary (between chunk c and c + 1) and gives a
/// `slot_count`.
///
/// needs:  check_shape and check_complete; missing actions are allowed: their readers never start
/// throws: pp::error as require_actions does
template <pipeline_problem Problem, action_table Table, class Slots = unbounded_slots>
class execution {
 public:
  constexpr execution(Problem const& problem, Table const& table, Slots const& slots)
      : problem_(required(problem, table, slots)), table_(table), slots_(slots),
        end_(1 + results * long(problem.chunks) * problem.micro_batches),
        waiting_(1 + results * long(problem.chunks) * problem.micro_batches),
        also_waiting_(problem.ranks), position_(problem.ranks), clock_(problem.ranks, 1) {
    end_.item[nothing] = 1;
  }

  /// Runs until no rank can proceed. Calls `done(rank, start, end)` for each action, in an order in
  /// which every action follows its inputs. Returns whether every rank reached its end.
  template <class Done>
  constexpr bool run(Done done) {
    auto awake = scratch<int>(problem_.ranks);
    int count = 0, unfinished = problem_.ranks;
    for (int rank = problem_.ranks - 1; rank >= 0; --rank) awake.item[count++] = rank;

    auto const record = [&](long result, long end) {
      end_.item[result] = end;
      for (int next = waiting_.item[result]; next > 0; next = also_waiting_.item[next - 1])
        awake.item[count++] = next - 1;
    };
    while (count > 0) {
      int const rank = awake.item[--count];
      int& position = position_.item[rank];
      long missing = nothing;
      for (int const size = table_.size(rank); position < size; ++position) {
        action const a = table_.at(rank, position);
        needs const need = needs_of(a, rank);
        missing = first_missing(need);
        if (missing != nothing) break;
        long const time = problem_.time(a), start = latest(need, clock_.item[rank], time),
                   end = start + time;
        clock_.item[rank] = end;
        done(rank, start - 1, end - 1);
        if (a.kind == action_kind::forward) record(result_of(a.chunk, a.micro_batch, output), end);
        if (makes_input_gradient(a.kind))
          record(result_of(a.chunk, a.micro_batch, input_gradient), end);
        if (makes_weight_gradient(a.kind))
          record(result_of(a.chunk, a.micro_batch, weight_gradient), end);
      }
      if (missing == nothing) {
        --unfinished;
      } else {
        also_waiting_.item[rank] = waiting_.item[missing];
        waiting_.item[missing] = rank + 1;
      }
    }
    return unfinished == 0;
  }

  /// The position of the action that a rank could not start, or the size of its list.
  constexpr int position(int rank) const { return position_.item[rank]; }
  constexpr bool stuck(int rank) const { return position(rank) < table_.size(rank); }

  /// Whether a stuck rank misses a result that only a later action of its own list makes.
  constexpr bool waits_for_itself(int rank) const {
    needs const need = needs_of(table_.at(rank, position(rank)), rank);
    long const missing = first_missing(need);
    return missing == need.own || (missing == need.handed_over && need.source_rank == rank);
  }

 private:
  static constexpr Problem const& required(Problem const& problem, Table const& table,
                                           Slots const& slots) {
    require_actions(problem, table, slots);
    return problem;
  }

  /// The three results of a chunk for a micro-batch; `nothing` stands for a result that is always
  /// ready.
  enum : int { output, input_gradient, weight_gradient, results };
  static constexpr int nothing = 0;

  constexpr long result_of(int chunk, int micro_batch, int which) const {
    return 1 + which + results * (long(chunk) * problem_.micro_batches + micro_batch);
  }

  /// Whether weight gradients of a chunk are added in one place by several ranks, and in forward
  /// the sums of buffers. They do so kernel by kernel, one behind the other, so that an action ends
  /// no earlier than that of the micro-batch before. With equal times of a chunk's actions it then
  /// begins no earlier, either.
  static constexpr bool ordered = adds_in_order<std::remove_cvref_t<decltype(Table::where)>>;

  /// The results that an action waits for, and the hop of the second.
  struct needs {
    long own;  ///< of its own chunk: B and R wait for F, W for B, U for W
    /// Of the neighbouring chunk: F reads the output before it, B the gradient after it.
    long handed_over;
    long slot;  ///< of the last reader of the old value in the slot to be written
    int source_rank;
    long hop;
    long before;  ///< of the micro-batch before, whose sums are added to before this one's
  };

  constexpr needs needs_of(action const& a, int rank) const {
    using enum action_kind;
    int const chunk = a.chunk, mb = a.micro_batch;
    bool const is_forward = a.kind == forward,
               hands_on = is_forward || a.kind == backward_input || a.kind == backward;
    int const source = is_forward ? chunk - 1 : chunk + 1,
              reader = is_forward ? chunk + 1 : chunk - 1;
    bool const reads = hands_on && source >= 0 && source < problem_.chunks;
    bool const writes = hands_on && reader >= 0 && reader < problem_.chunks;
    int const source_rank = reads ? rank_of(table_.where, problem_.ranks, source, mb) : rank;

    int const own_result = a.kind == backward_weight ? input_gradient
                           : a.kind == update        ? weight_gradient
                                                     : output;
    long const own = is_forward ? nothing : result_of(chunk, mb, own_result);
    long const handed_over =
        reads ? result_of(source, mb, is_forward ? output : input_gradient) : nothing;
    long slot = nothing;
    if constexpr (!std::is_same_v<Slots, unbounded_slots>)
      if (writes) {
        slot_count const ring = slots_[static_cast<std::size_t>(is_forward ? chunk : reader)];
        long const length = is_forward ? ring.activation : ring.gradient;
        long const before = mb - (length > 0 ? length : 0) * replicas(table_.where, chunk);
        if (before >= 0)
          slot = result_of(reader, int(before), table_.trains ? weight_gradient : output);
      }
    return needs{own,
                 handed_over,
                 slot,
                 source_rank,
                 problem_.hop_time(source_rank, rank, is_forward ? source : chunk),
                 ordered && mb > 0 && (is_forward || makes_weight_gradient(a.kind))
                     ? result_of(chunk, mb - 1, is_forward ? output : weight_gradient)
                     : nothing};
  }

  constexpr long first_missing(needs const& need) const {
    return end_.item[need.own] == 0                 ? need.own
           : end_.item[need.handed_over] == 0       ? need.handed_over
           : end_.item[need.slot] == 0              ? need.slot
           : ordered && end_.item[need.before] == 0 ? need.before
                                                    : nothing;
  }

  constexpr long latest(needs const& need, long free, [[maybe_unused]] long time) const {
    long const own = end_.item[need.own], handed_over = end_.item[need.handed_over] + need.hop;
    long const slot = end_.item[need.slot], input = own > handed_over ? own : handed_over,
               behind = ordered ? end_.item[need.before] - time : free,
               from = behind > free ? behind : free;
    long const ready = slot > input ? slot : input;
    return ready > from ? ready : from;
  }

  Problem const& problem_;
  Table const& table_;
  Slots const& slots_;
  scratch<long> end_;          // by result: 1 + the time when it was ready; 0: not yet
  scratch<int> waiting_;       // by result: 1 + the last rank that began to wait for it
  scratch<int> also_waiting_;  // by rank: 1 + the next one that waits for the same result
  scratch<int> position_;      // by rank: its next action
  scratch<long> clock_;        // by rank: 1 + the time when it is free
};

}  // namespace pp::detail
