// SPDX-License-Identifier: BSL-1.0
//
// List scheduling in ticks of one action each: in every tick each rank runs, of the actions that
// could run, the action that a rule prefers. For families that are defined by such a rule, and for
// placements without a published order.
#pragma once

#include <climits>

#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp {

namespace schedules {

/// Fills `table` with F and BW of all chunks as if each took one tick and hops took none; the order
/// is the same for other times. Of the actions whose inputs are ready a rank takes the one with the
/// smallest order(action). may(action, in_flight) says whether an F may begin while `in_flight`
/// micro-batches are in flight in its chunk (and replica).
///
/// needs: may(action, 0) is true; `table` is a table, or has a table's `where` and `push`
/// cost:  ticks times ranks times chunks per rank
template <pipeline_problem Problem, class Table, class Order, class May>
constexpr void list_schedule(Problem const& problem, Table& table, Order order, May may) {
  using enum action_kind;
  int const p = problem.ranks, m = problem.micro_batches, chunks = problem.chunks,
            copies = replicas(table.where);
  int const held = chunks * copies / p;  // chunks per rank
  struct stream {  // a chunk of a rank (and replica), the index of the chunk's next F and next BW
    int chunk = 0, forward = 0, backward = 0;
  };
  auto streams = detail::scratch<stream>(p * held);
  for (int rank = 0; rank < p; ++rank)
    for (int i = 0; i < held; ++i)
      streams.item[rank * held + i].chunk = copies == 1 ? chunk_on(table.where, p, rank, i)
                                            : i == 0    ? rank
                                                        : p - 1 - rank;
  // The tick after which a value, or a gradient, is ready. The value before the first chunk and the
  // gradient after the last one are ready from the start.
  auto made = detail::scratch<int>(2 * (chunks + 2) * m, INT_MAX);
  int* const values = made.item + m;
  int* const gradients = values + (chunks + 2) * m;
  for (int mb = 0; mb < m; ++mb) values[-m + mb] = gradients[chunks * m + mb] = -1;

  for (int tick = 0, left = 2 * chunks * m; left > 0; ++tick)
    for (int rank = 0; rank < p; ++rank) {
      action best{};
      stream* of_best = nullptr;
      long least = LONG_MAX;
      for (int i = 0; i < held; ++i) {
        stream& s = streams.item[rank * held + i];
        int const f = s.forward * copies + (copies - 1) * i,
                  b = s.backward * copies + (copies - 1) * i;
        if (action const a{backward, s.chunk, b};
            s.backward < s.forward && gradients[(s.chunk + 1) * m + b] < tick)
          if (long const number = order(a); number < least) least = number, best = a, of_best = &s;
        if (action const a{forward, s.chunk, f}; f < m && values[(s.chunk - 1) * m + f] < tick)
          if (long const number = order(a); number < least && may(a, s.forward - s.backward))
            least = number, best = a, of_best = &s;
      }
      if (of_best == nullptr) continue;
      --left;
      table.push(rank, best);
      if (best.kind == forward)
        ++of_best->forward, values[best.chunk * m + best.micro_batch] = tick;
      else
        ++of_best->backward, gradients[best.chunk * m + best.micro_batch] = tick;
    }
}

}  // namespace schedules

}  // namespace pp
