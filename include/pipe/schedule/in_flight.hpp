// SPDX-License-Identifier: BSL-1.0
//
// Micro-batches in flight. A micro-batch is in flight in a chunk from the start of its F to the end
// of its BW or W. The count at any moment follows from the order of the rank's actions alone, so
// these peaks hold for any times.
#pragma once

#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/required.hpp>
#include <pipe/schedule/scratch.hpp>
#include <pipe/schedule/table.hpp>

namespace pp {

namespace detail {

/// In place of a chunk: all chunks of the rank.
inline constexpr int all_chunks = -1;

}  // namespace detail

namespace schedules {

/// The maximum number of micro-batches in flight at once in one chunk of a rank. The chunk needs
/// this number of stash records: the n-th micro-batch of a replica is in record n % peak. For
/// `all_chunks`: the maximum over all chunks of the rank together. Forward-only: 1.
///
/// throws: pp::error if there is no such rank
template <detail::action_table Table>
constexpr int peak_in_flight(Table const& table, int rank, int chunk = detail::all_chunks) {
  detail::require_rank(table, rank);
  int live = 0, peak = 0;
  for (int i = 0; i < table.size(rank); ++i) {
    action const a = table.at(rank, i);
    if (chunk != detail::all_chunks && a.chunk != chunk) continue;
    if (a.kind == action_kind::forward && ++live > peak) peak = live;
    if (!table.trains || detail::makes_weight_gradient(a.kind)) --live;
  }
  return peak;
}

}  // namespace schedules

namespace detail {

/// The maximum number of micro-batches in flight at once in a chunk on one of its ranks.
template <action_table Table>
constexpr int peak_in_chunk(Table const& table, int chunk) {
  int most = 0;
  for (int replica = 0; replica < replicas(table.where, chunk); ++replica) {
    int const peak =
        peak_in_flight(table, rank_of(table.where, table.ranks(), chunk, replica), chunk);
    if (peak > most) most = peak;
  }
  return most;
}

/// Whether a chunk has R in a table.
template <action_table Table>
constexpr bool is_recomputed(Table const& table, int chunk) {
  bool found = false;
  for_each_of_chunk(table, chunk, [&](int, int, action const& a) {
    found = found || a.kind == action_kind::recompute;
  });
  return found;
}

/// The maximum number of micro-batches of a chunk that are at once between their B (their R, if the
/// chunk has R) and their W.
template <action_table Table>
constexpr int peak_pending(Table const& table, int chunk) {
  bool const recomputed = is_recomputed(table, chunk);
  int live = 0, peak = 0;
  for_each_of_chunk(table, chunk, [&](int, int, action const& a) {
    bool const begins =
        recomputed ? a.kind == action_kind::recompute : makes_input_gradient(a.kind);
    if (begins && ++live > peak) peak = live;
    if (makes_weight_gradient(a.kind)) --live;
  });
  return peak;
}

/// Whether a rank runs each backward of a chunk directly after its forward, with no other action
/// between the two. Then work may move from forward to backward without delaying any rank. kinds:
/// bits of the actions that count as backward
template <action_table Table>
constexpr bool is_backward_next(Table const& table, int rank, int chunk,
                                unsigned kinds = bit(action_kind::backward)) {
  for (int i = 0; i < table.size(rank); ++i) {
    action const a = table.at(rank, i);
    if (a.kind != action_kind::forward || a.chunk != chunk) continue;
    if (i + 1 == table.size(rank)) return false;
    action const next = table.at(rank, i + 1);
    if (!(bit(next.kind) & kinds) || next.chunk != chunk || next.micro_batch != a.micro_batch)
      return false;
  }
  return true;
}
/// Whether is_backward_next holds on all ranks that hold the chunk.
template <action_table Table>
constexpr bool is_backward_next_everywhere(Table const& table, int chunk,
                                           unsigned kinds = bit(action_kind::backward)) {
  for (int replica = 0; replica < replicas(table.where, chunk); ++replica)
    if (!is_backward_next(table, rank_of(table.where, table.ranks(), chunk, replica), chunk, kinds))
      return false;
  return true;
}

/// The maximum number of versions of its weights that a rank with one chunk keeps at once: the
/// newest version, and each older version until its last reader is done.
///
/// throws: pp::error if there is no such rank
template <action_table Table>
constexpr int peak_versions(Table const& table, int rank) {
  require_rank(table, rank);
  int const size = table.size(rank);
  auto last_read = scratch<int>(size + 2, -1);  // by version
  int newest = 0, most = 1;
  for (int i = 0; i < size; ++i) last_read.item[table.at(rank, i).version] = i;
  for (int i = 0, oldest = 0; i < size; ++i) {
    if (action const a = table.at(rank, i); a.kind == action_kind::update) newest = a.version;
    while (oldest < newest && last_read.item[oldest] < i) ++oldest;
    if (newest - oldest + 1 > most) most = newest - oldest + 1;
  }
  return most;
}

/// Calls use(position, live, after) for every action of a rank, with the memory in use while it
/// runs and after its end, in the unit of the problem's memory_change. Forward only: an action's
/// memory is freed at its end.
///
/// needs:  check_complete, but for missing actions
/// throws: pp::error if there is no such rank
template <pipeline_problem Problem, action_table Table, class Use>
constexpr void for_each_memory(Problem const& problem, Table const& table, int rank, Use use) {
  require_rank(table, rank);
  long live = 0;
  auto recomputed = scratch<int>(problem.chunks);  // by chunk: micro-batches from R to their W
  for (int i = 0; i < table.size(rank); ++i) {
    action const a = table.at(rank, i);
    memory_change const memory = problem.cost(a.chunk).memory;
    long const before = live;
    if (table.trains) live += memory.of(a.kind);
    if (memory.recompute != 0) {
      int& mine = recomputed.item[a.chunk];
      if (a.kind == action_kind::recompute) ++mine;
      if (mine > 0 && makes_weight_gradient(a.kind)) --mine, live -= memory.recompute;
    }
    use(i, before + memory.at_most(a.kind), live);
  }
}

}  // namespace detail

namespace schedules {

/// The peak memory of a rank's activations, in the unit of the problem's memory_change.
///
/// throws: pp::error if there is no such rank
template <pipeline_problem Problem, detail::action_table Table>
constexpr long peak_memory(Problem const& problem, Table const& table, int rank) {
  long peak = 0;
  detail::for_each_memory(problem, table, rank,
                          [&](int, long live, long) { peak = live > peak ? live : peak; });
  return peak;
}

}  // namespace schedules

}  // namespace pp
