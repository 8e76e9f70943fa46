// SPDX-License-Identifier: BSL-1.0
//
// Lower bounds on the time of one rank where micro-batches flow in both directions, and whose
// memory may be limited. The windows are those of memory_floors.hpp; which direction a window is
// of is open, so each bound is the least of both. docs/schedules/floors.md has the proofs.
#pragma once

#include <pipe/schedule/memory_floors.hpp>

namespace pp::detail {

/// Lower bounds of a rank.
struct two_way_bounds {
  floor_bound span;        ///< from its first F to the end of its last W
  floor_bound own_end;     ///< the end of its last W, from the first F of all
  floor_bound makespan{};  ///< the end of a W that waits for the rank, from the first F of all
};

/// The bounds of one rank.
///
/// needs: replicas(where) == 2
template <pipeline_problem Problem>
class two_way_floor {
 public:
  constexpr two_way_floor(Problem const& problem, placement where)
      : problem_(problem), where_(where), even_(problem, where, 0), odd_(problem, where, 1) {}

  constexpr two_way_bounds of(int rank) const {
    // Without a second micro-batch there is one direction.
    int const copies = problem_.micro_batches > 1 ? 2 : 1;
    passing all[2]{};
    for (int k = 0; k < copies; ++k) all[k] = passing_on(rank, k);
    long const room =
        rank_room(problem_, rank, copies, [&](int i) -> chunk_cost const& { return all[i].cost; });
    bool const is_limited = room < any_amount;

    long work = 0, b_and_w = 0, memory = 0;  // of all micro-batches
    long first_f = any_amount, to_b = any_amount, at_b = any_amount, more = any_amount;
    held_work pieces[4]{};
    for (int k = 0; k < copies; ++k) {
      passing const& x = all[k];
      work += x.count * x.work();
      b_and_w += x.count * x.later();
      memory += x.count * x.cost.memory.forward;
      long const window = x.turn - x.cost.backward_input;
      lower(first_f, x.down);
      lower(to_b, window);
      lower(at_b, x.down + window);
      lower(more, x.cost.memory.backward_input > 0 ? x.cost.memory.backward_input : 0);
      pieces[k] = {x.cost.memory.forward, least_forward(x.cost), x.count};
    }

    // Before the first B there are only Fs. `idle` counts from the rank's first F, `lead` from the
    // first F of all.
    long const before = most_work(is_limited ? room - more : room, pieces, copies);
    long const idle = to_b > before ? to_b - before : 0;
    long lead = first_f + idle;
    raise(lead, at_b - before);
    auto const why = idle > 0 || lead > first_f ? floor_reason::warm_up : floor_reason::work;
    auto bounds = two_way_bounds{{work + idle, rank, why}, {lead + work, rank, why}};

    // The end of the rank's last B, and of the last W above it: all F and B, or what the memory
    // beside the last F holds.
    long above = any_amount;
    for (int k = 0; k < copies; ++k) lower(above, all[k].tail);
    bounds.makespan = bounds.own_end;
    long w = 0;
    for (int k = 0; k < copies; ++k) w += all[k].count * all[k].cost.backward_weight;
    raise(bounds.makespan, lead + work - w + above, rank,
          lead > first_f ? floor_reason::warm_up : floor_reason::ways);
    bool const apart = is_limited && memory > room;
    long span = any_amount, own_end = any_amount, makespan = any_amount;
    for (int k = 0; k < copies; ++k) {
      passing const& x = all[k];
      for (int i = 0; i < copies; ++i) {
        chunk_cost const& c = all[i].cost;
        long const others = all[i].count - (i == k);
        pieces[2 * i] = {c.memory.forward, c.backward_input + c.backward_weight, others};
        pieces[2 * i + 1] = {after_b(c), c.backward_weight, others};
      }
      long beside = most_work(is_limited ? room - x.cost.memory.forward : room, pieces, 2 * copies);
      lower(beside, b_and_w - x.later());
      long const last_b = work - x.work() - beside + x.turn;
      lower(span, last_b + (apart ? idle : 0) + x.cost.backward_weight);
      lower(own_end, last_b + (apart ? lead : first_f) + x.cost.backward_weight);
      lower(makespan, last_b + (apart ? lead : first_f) + x.tail);
    }
    raise(bounds.span, span, rank, floor_reason::last_forward);
    raise(bounds.own_end, own_end, rank, floor_reason::last_forward);
    raise(bounds.makespan, makespan, rank, floor_reason::last_forward);

    if (is_limited && room > 0) {
      auto area = lives{};
      for (int k = 0; k < copies; ++k) area.add(all[k].cost, all[k].turn, all[k].count);
      long const least = area.least_time(room);
      raise(bounds.span, least, rank, floor_reason::area);
      raise(bounds.own_end, first_f + least, rank, floor_reason::area);
    }
    raise(bounds.makespan, bounds.own_end.time, rank, bounds.own_end.why);
    return bounds;
  }

 private:
  /// The micro-batches of one direction on a rank.
  struct passing {
    chunk_cost cost{};
    long count = 0;
    long down = 0;  ///< from the start of F of chunk 0 to the start of F here
    long turn = 0;  ///< from the start of F here to the end of B here
    long tail = 0;  ///< from the end of B here to the end of the last W here or above

    constexpr long later() const { return cost.backward_input + cost.backward_weight; }
    constexpr long work() const { return least_forward(cost) + later(); }
  };
  constexpr passing passing_on(int rank, int copy) const {
    int const chunk = chunk_on(where_, problem_.ranks, rank, copy), m = problem_.micro_batches;
    flush_ways const& ways = copy == 0 ? even_ : odd_;
    auto result = passing{problem_.cost(chunk), (m + 1 - copy) / 2, ways.down.item[chunk],
                          ways.way(chunk, chunk)};
    for (int c = 0; c <= chunk; ++c)
      raise(result.tail,
            ways.back.item[chunk] - ways.back.item[c] + problem_.cost(c).backward_weight);
    return result;
  }
  static constexpr void lower(long& least, long to) { least = to < least ? to : least; }

  Problem const& problem_;
  placement where_;
  flush_ways even_, odd_;  // of the micro-batches with these numbers
};

}  // namespace pp::detail
