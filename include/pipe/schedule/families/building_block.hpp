// SPDX-License-Identifier: BSL-1.0
//
// V-Half and V-Min: schedules that repeat a building block, in about half and a third of the memory
// of 1F1B. The block is made for equal times. For other times its order is also played in other
// ways, and the fastest that fits into the same memory is taken.
#pragma once

#include <pipe/schedule/families/block_ticks.hpp>
#include <pipe/schedule/families/published_block.hpp>
#include <pipe/schedule/families/v_choice.hpp>

namespace pp {

namespace detail {

/// Fills `table` with the best order that block(rank) gives within the memory of `stages` stages:
/// the block brought forward at both ends, the block as its authors reorder it, and both with Ws in
/// other places.
template <pipeline_problem Problem, action_table Table, class Block>
constexpr void fill_with_blocks(Problem const& problem, Table& table, int stages, Block block) {
  int const p = problem.ranks, m = problem.micro_batches;
  v_effort const effort = v_effort_for(p, m);
  auto const room = room_of_stages(problem, stages);
  if (effort == v_effort::one) {
    auto fixed = table.template like<action>();
    push_blocks(p, m, fixed, stages, block);
    weave(problem, fixed, table, room, gap_rule::long_enough);
    return;
  }
  auto choice = v_choice(problem, room);
  auto own = v_order(p, m);
  push_blocks(p, m, own, stages, block);
  choice.offer_woven(own);
  if (effort == v_effort::two) return choice.fill(table);
  auto published = v_order(p, m);
  fill_as_published(problem, published, block);
  choice.offer(published);
  if (effort == v_effort::all) choice.offer_woven(published);
  choice.offer_played(own, effort);
  if (effort == v_effort::all) choice.offer_played(published, effort);
  choice.fill(table);
}

}  // namespace detail

/// V-Half: about half the activations of 1F1B, the same on all ranks.
///
/// law:    no longer a span than the authors' order, for any times; in a constant evaluation up to
///         32 ranks x micro-batches (see v_effort)
/// law:    the peak of every rank is at most (P+2) div 2 stages, of two chunks each, where B adds
///         no memory
/// law:    TF = TB = TW without hops and with M >= P > 2: it is idle for at most 3P-7 chunk actions
///         if P is even, else 3P-4
/// source: Qi et al., Pipeline Parallelism with Controllable Memory, 2024
struct VHalf {
  static constexpr char const* name = "v-half";
  static constexpr schedules::placement where = schedules::placement::vee;
  static constexpr int chunks_per_rank = 2;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  /// The block of each rank.
  static constexpr auto block(int ranks) {
    return [p = ranks, k = ranks % 2 == 0 ? 3 : 0](int i) {
      return detail::building_block{2 * i, 3 * p - i - 2, 3 * p + k + 2 * i - 1, 6 * p + k - i - 2};
    };
  }
  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    detail::fill_with_blocks(problem, table, (problem.ranks + 2) / 2, block(problem.ranks));
  }
};

/// V-Min: about a third of the activations of 1F1B, the same on all ranks.
///
/// law:    no longer a span than the authors' order, for any times; in a constant evaluation up to
///         32 ranks x micro-batches (see v_effort)
/// law:    the peak of every rank is at most (P+4) div 3 stages, of two chunks each, where B adds
///         no memory
/// law:    TF = TB = TW without hops and with M >= 2P > 2: it is idle for at most 4P-7 chunk
///         actions if P is a multiple of 3, else 4P-5
/// source: Qi et al., Pipeline Parallelism with Controllable Memory, 2024
struct VMin {
  static constexpr char const* name = "v-min";
  static constexpr schedules::placement where = schedules::placement::vee;
  static constexpr int chunks_per_rank = 2;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  /// The block of each rank.
  static constexpr auto block(int ranks) {
    return [p = ranks, k = ranks % 3 == 0 ? 2 : 0](int i) {
      return detail::building_block{i, 2 * p - i - 1, 2 * p + k + i, 4 * p + k - i - 1};
    };
  }
  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    detail::fill_with_blocks(problem, table, (problem.ranks + 4) / 3, block(problem.ranks));
  }
};

}  // namespace pp
