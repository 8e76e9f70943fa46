// SPDX-License-Identifier: BSL-1.0
//
// Schedules as building blocks: the four F and B of a micro-batch on a rank have fixed places in time, and every next micro-batch
// comes six slots later. How long activations live, and so the memory that is needed, can be read off the block; the slots that it
// leaves free are for Ws. Squeezed together, because actions start as soon as they can, such an order is a schedule.
#pragma once

#include <pipe/schedule/weave.hpp>

namespace pp {

/// When a rank's F and B of micro-batch 0 come, in slots, on its two chunks (placement::vee). law: all differ modulo 6
struct building_block {
  int forward_down, forward_up, backward_up, backward_down;
};

/// block(rank) for every rank; Ws where they fit, the memory of `stages` stages at most.
template <pipeline_problem Problem, action_table Table, class Block>
constexpr void fill_with_blocks(Problem const& problem, Table& table, int stages, Block block) {
  using enum action_kind;
  constexpr int period = 6;
  int const p = problem.ranks;
  auto fixed = table.template like<action>();
  for (int rank = 0; rank < p; ++rank) {
    building_block const b = block(rank);
    int const down = rank, up = 2 * p - 1 - rank;
    struct place {
      action what;
      int slot = 0;
    };
    place places[] = {{{forward, down, 0}, b.forward_down},
                      {{forward, up, 0}, b.forward_up},
                      {{backward_input, up, 0}, b.backward_up},
                      {{backward_input, down, 0}, b.backward_down}};
    for (int left = 4 * problem.micro_batches; left > 0; --left) {
      place* first = nullptr;
      for (place& x : places)
        if (x.what.micro_batch < problem.micro_batches && (first == nullptr || x.slot < first->slot)) first = &x;
      fixed.push(rank, first->what);
      ++first->what.micro_batch;
      first->slot += period;
    }
  }
  weave(
      problem, fixed, table,
      [&](int rank) {
        return stages * (problem.cost(rank).memory.forward + problem.cost(2 * p - 1 - rank).memory.forward);
      },
      gap_rule::any);
}

/// About half the activations of 1F1B, on all ranks alike.
///
/// law:    TF = TB = TW: the peak of every rank is (P+2) div 2 stages, of two chunks each
/// source: Qi et al., Pipeline Parallelism with Controllable Memory, 2024
struct VHalf {
  static constexpr char const* name = "v-half";
  static constexpr placement where = placement::vee;
  static constexpr int chunks_per_rank = 2;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  template <pipeline_problem Problem, action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const p = problem.ranks, k = p % 2 == 0 ? 3 : 0;
    fill_with_blocks(problem, table, (p + 2) / 2, [=](int i) {
      return building_block{2 * i, 3 * p - i - 2, 3 * p + k + 2 * i - 1, 6 * p + k - i - 2};
    });
  }
};

/// About a third of the activations of 1F1B, on all ranks alike.
///
/// law:    TF = TB = TW: the peak of every rank is (P+4) div 3 stages, of two chunks each
/// source: Qi et al., Pipeline Parallelism with Controllable Memory, 2024
struct VMin {
  static constexpr char const* name = "v-min";
  static constexpr placement where = placement::vee;
  static constexpr int chunks_per_rank = 2;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  template <pipeline_problem Problem, action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const p = problem.ranks, k = p % 3 == 0 ? 2 : 0;
    fill_with_blocks(problem, table, (p + 4) / 3,
                     [=](int i) { return building_block{i, 2 * p - i - 1, 2 * p + k + i, 4 * p + k - i - 1}; });
  }
};

}  // namespace pp
