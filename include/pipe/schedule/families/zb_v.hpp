// SPDX-License-Identifier: BSL-1.0
//
// ZB-V: two chunks per rank, down the ranks and back up, so that the first rank also holds the end
// of the model. The first backward starts where the last forward ended, all ranks need the same
// memory, and Ws fill idle time.
#pragma once

#include <pipe/schedule/families/v_choice.hpp>
#include <pipe/schedule/families/v_greedy.hpp>
#include <pipe/schedule/policy.hpp>

namespace pp {

namespace detail {

/// Appends the order of ZB-V that is made for equal times.
template <pipeline_problem Problem, class Table>
constexpr void push_zb_v(Problem const& problem, Table& table) {
  using enum action_kind;
  int const p = problem.ranks, m = problem.micro_batches, padded = m < 2 * p - 1 ? 2 * p - 1 : m;
  for (int rank = 0; rank < p; ++rank) {
    int const chunk[2] = {rank, 2 * p - 1 - rank};  // on the way down and on the way up
    int done[2][3]{};                               // by chunk: F, B, W
    auto const run = [&](action_kind kind, int which) {
      int const column = kind == forward ? 0 : kind == backward_input ? 1 : 2;
      int const mb = done[which][column]++;
      if (mb < m) table.push(rank, {kind, chunk[which], mb});
    };
    for (int i = 0; i < 2 * (p - rank) - 1; ++i) run(forward, 0);
    for (int i = 0; i < rank; ++i) run(forward, 1), run(forward, 0);
    for (int i = 0; i < p - rank; ++i)
      run(forward, 1), run(backward_input, 1), run(backward_weight, 1);
    while (done[1][0] < done[0][0] || done[0][0] < padded) {
      if (done[0][0] < padded) run(forward, 0);
      run(backward_input, 0), run(backward_weight, 0);
      run(forward, 1), run(backward_input, 1), run(backward_weight, 1);
    }
    for (int i = 0; i < rank; ++i) run(backward_input, 0), run(backward_input, 1);
    for (int i = 0; i < p - rank; ++i) run(backward_input, 0), run(backward_weight, 0);
    while (done[1][2] < done[1][1]) run(backward_weight, 1);
    while (done[0][2] < done[0][1]) run(backward_weight, 0);
  }
}

}  // namespace detail

/// Zero bubble on a V: two chunks on each rank, in the memory of 1F1B.
///
/// law:    no longer a span than the authors' greedy orders, for any times; in a constant
///         evaluation up to 32 ranks x micro-batches (see v_effort)
/// law:    the peak of every rank is at most 2P chunks, where B adds no memory
/// law:    equal times TF = TB = TW without hops, M >= 2P-1: no bubble in the stage-local span
/// note:   the fixed order of fewer than 2P-1 micro-batches is that of 2P-1, without the missing
///         micro-batches
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 6
///
/// P = 4, M = 7, equal times; 0 1 2: F of a micro-batch, a b c: B, A B C: W:
///   rank 0  01234560aA1bB2cC3dDaA4eEbB5fFcC6gGdDeEfFgG...
///   rank 1  .01234051aA2bB3cC6aA4dDbB5eEcC6fFdgeDfEgFGG..
///   rank 2  ..01203142aA3bB5aA4cC6bB5dDcC6eEdfegfDgEFGFG.
///   rank 3  ...00112233aA4aA4bB5bB5cC6cC6dDdeeffggDEFGEFG
struct ZeroBubbleV {
  static constexpr char const* name = "zb-v";
  static constexpr schedules::placement where = schedules::placement::vee;
  static constexpr int chunks_per_rank = 2;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const p = problem.ranks, m = problem.micro_batches;
    detail::v_effort const effort = detail::v_effort_for(p, m);
    if (effort <= detail::v_effort::two) return detail::push_zb_v(problem, table);
    auto const room = detail::room_of_stages(problem, p);
    auto choice = detail::v_choice(problem, room);
    auto order = detail::v_order(p, m);
    detail::push_zb_v(problem, order);
    choice.offer(order);
    for (bool before_forward : {false, true})
      for (bool before_backward : {false, true})
        if (!choice.at_floor() &&
            detail::fill_greedily(problem, choice.blank(), {before_forward, before_backward}, room))
          choice.offer();
    if (effort == detail::v_effort::all) {
      choice.offer_woven(order);
      choice.offer_played(order, effort);
      choice.offer_played(choice.best(), effort);
    }
    choice.fill(table);
  }
};

}  // namespace pp
