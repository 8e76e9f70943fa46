// SPDX-License-Identifier: BSL-1.0
//
// Tables to draw that have everything a drawing can show.
#pragma once

#include <pipe/report/drawing.hpp>
#include <pipe/schedule.hpp>
#include <pipe/schedule/dynamic_table.hpp>

namespace tables {

/// All forwards, then input gradients with recomputation before, then weight gradients and an
/// update: any placement.
inline pp::schedules::dynamic_table split(pp::schedules::problem<> const& question,
                                          pp::schedules::placement where) {
  using enum pp::schedules::action_kind;
  auto table = pp::schedules::dynamic_table(question.ranks, where);
  int const per_rank = question.chunks / question.ranks;
  for (int rank = 0; rank < question.ranks; ++rank) {
    auto const chunk = [&](int index) {
      return pp::schedules::chunk_on(where, question.ranks, rank, index);
    };
    auto const all = [&](int index, pp::schedules::action_kind kind) {
      for (int mb = 0; mb < question.micro_batches; ++mb)
        table.push(rank, {kind, chunk(index), mb});
    };
    for (int i = 0; i < per_rank; ++i) all(i, forward);
    for (int i = per_rank; i-- > 0;) {
      for (int mb = 0; mb < question.micro_batches; ++mb) {
        if (mb == 0) table.push(rank, {recompute, chunk(i), mb});
        table.push(rank, {backward_input, chunk(i), mb});
      }
      all(i, backward_weight);
      table.push(rank, {update, chunk(i), question.micro_batches - 1});
    }
  }
  return table;
}

/// Costs that differ by kind, in bytes and nanoseconds.
inline constexpr pp::schedules::chunk_cost costs{300, 400, 200, {4096, -1024, -3072}, 0};
inline constexpr pp::schedules::problem<> looped = pp::schedules::equal_times(3, 4, costs, 50, 2);
inline pp::drawings::drawing draw(pp::schedules::placement where,
                                  pp::detail::drawing_words const& words = {"split", "ns", "B"}) {
  auto const table = split(looped, where);
  return pp::drawings::of_table(looped, table, pp::schedules::simulate(looped, table), words);
}

inline std::size_t actions(pp::drawings::drawing const& d) {
  std::size_t sum = 0;
  for (pp::detail::drawn_rank const& r : d.ranks) sum += r.actions.size();
  return sum;
}

}  // namespace tables
