// SPDX-License-Identifier: BSL-1.0
//
// All building blocks of a V whose ranks are alike. V-Half and V-Min are two such blocks; between
// their memory and that of 1F1B, other blocks are the best known for almost any number of chunks.
#pragma once

#include <bit>

#include <pipe/schedule/families/building_block.hpp>
#include <pipe/schedule/search/search_plan.hpp>

namespace pp::detail {

/// A block in which micro-batches come down the ranks slowly and go up at once. From a rank to the
/// next, F on the way down is `steep` ticks later on the first `bend` ranks and `flat` ticks on the
/// others, and so is B on the way up. An action on the way back is one tick after that of the next
/// rank.
///
/// needs: 0 < bend <= ranks
struct sloped_block {
  int ranks, steep, flat, bend;
  /// The ticks on rank 0 of F up, B up and B down, modulo 6; the tick of F down is 0.
  int due[3];

  /// The tick of F down on a rank.
  constexpr int down(int rank) const {
    return rank < bend ? steep * rank : steep * (bend - 1) + flat * (rank - bend + 1);
  }
  /// The time of a micro-batch of rank 0 in both of its chunks, but for the waits at both bends.
  constexpr int lifetime() const { return 2 * (down(ranks - 1) + ranks - 1); }
  /// Whether no two actions of a rank have the same tick modulo 6.
  constexpr bool is_possible() const {
    for (int rank = 0; rank < ranks; ++rank) {
      int taken = 0;
      for (int tick : {down(rank), due[0] + 5 * rank, due[1] + down(rank), due[2] + 5 * rank})
        taken |= 1 << tick % block_ticks::period;
      if (std::popcount(static_cast<unsigned>(taken)) < block_ticks::kinds) return false;
    }
    return true;
  }
  /// The block as a plan, in ticks: each action as early as its residue allows.
  constexpr void plan_into(plan& x) const {
    constexpr auto from = [](int earliest, int residue) {
      constexpr int n = block_ticks::period;
      return earliest + ((residue - earliest) % n + n) % n;
    };
    int const up = ranks - 1, forward_up = from(down(up) + 1 + up, due[0]),
              backward_up = from(forward_up + 1, due[1]),
              backward_down = from(backward_up + down(up) + 1 + up, due[2]);
    x.period = block_ticks::period;
    for (int rank = 0; rank < ranks; ++rank) {
      int const later = down(rank) - down(rank > 0 ? rank - 1 : 0), back = ranks - 1 - rank;
      x.gap.item[rank > 0 ? rank - 1 : 4 * ranks - 1] = later;
      x.gap.item[ranks + back] = 1;
      x.gap.item[2 * ranks + (rank > 0 ? rank - 1 : ranks - 1)] = later;
      x.gap.item[3 * ranks + back] = 1;
    }
    x.gap.item[ranks - 1] = forward_up - up - down(up);
    x.gap.item[2 * ranks - 1] = backward_up - forward_up;
    x.gap.item[3 * ranks - 1] = backward_down - up - (backward_up + down(up));
  }
};

/// Calls use(block) for every possible block of P ranks that may need `chunks` chunks of memory,
/// blocks with the longest lifetime first, until use returns false.
///
/// source: Qi et al., Pipeline Parallelism with Controllable Memory, 2024: the blocks that the
///         authors' program tries
template <class Use>
constexpr void for_each_sloped_block(int ranks, int chunks, Use use) {
  constexpr int period = block_ticks::period;
  // Waits at the bends, and W, take two to five chunks more than the lifetime says.
  for (int lifetime = period * (chunks - 2); lifetime >= period * (chunks - 5); lifetime -= 2)
    for (int steep = 1; steep < period; ++steep)
      for (int flat = 1; flat <= steep; ++flat)
        for (int bend = steep == flat ? ranks : 1; bend < ranks + (steep == flat); ++bend) {
          auto block = sloped_block{ranks, steep, flat, bend, {}};
          if (block.lifetime() != lifetime) continue;
          for (int a = 1; a < period; ++a)
            for (int b = 1; b < period; ++b)
              for (int c = 1; c < period; ++c) {
                block.due[0] = a, block.due[1] = b, block.due[2] = c;
                if (block.is_possible() && !use(block)) return;
              }
        }
}

}  // namespace pp::detail
