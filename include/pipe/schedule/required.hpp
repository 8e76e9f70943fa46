// SPDX-License-Identifier: BSL-1.0
//
// Preconditions of the algorithms of this folder, checked before anything is indexed. In a constant
// evaluation an index out of range is a compile error at its line; at run time these checks throw
// pp::error instead of a read out of bounds.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <pipe/base/checked_index.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/schedule/pairs.hpp>
#include <pipe/schedule/placement.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/table.hpp>

namespace pp::detail {

/// Whether a range with a size() has at least `count` items; true for a range without a size, such
/// as same_cost.
template <class Items>
constexpr bool has_items(Items const& items, long count) {
  if constexpr (requires { items.size(); })
    return static_cast<long>(items.size()) >= count;
  else
    return true;
}

/// Whether a problem has a number of chunks that its placement can hold, and a cost for each.
template <pipeline_problem Problem, chunk_placement Where>
constexpr bool fits_placement(Problem const& problem, Where const& where) {
  if (problem.ranks < 1 || problem.chunks < 1 || problem.micro_batches < 1) return false;
  if constexpr (requires { problem.costs; })
    if (!has_items(problem.costs, problem.chunks)) return false;
  return fits(where, problem.ranks, problem.chunks);
}

/// throws: pp::error unless fits_placement
template <pipeline_problem Problem, chunk_placement Where>
constexpr void require_placement(Problem const& problem, Where const& where) {
  if (fits_placement(problem, where)) return;
  throw_error<error>({"the schedule's problem: expected ", what_fits(where),
                      ", a cost for each, and at least 1 micro-batch; got ", problem.ranks,
                      " ranks, ", problem.chunks, " chunks and ", problem.micro_batches,
                      " micro-batches"});
}

/// throws: pp::error unless fits_placement, and the problem has `chunks_per_rank` chunks per rank;
/// 0 accepts any number
template <pipeline_problem Problem, chunk_placement Where>
constexpr void require_chunks(Problem const& problem, Where const& where, int chunks_per_rank) {
  require_placement(problem, where);
  int const expected = chunks_for(where, problem.ranks, chunks_per_rank);
  if (chunks_per_rank > 0 && problem.chunks != expected)
    throw_error<error>({"a schedule of ", chunks_per_rank, " chunks per rank on ", problem.ranks,
                        " ranks: expected a problem of ", expected, " chunks, got ",
                        problem.chunks});
}

/// Throws pp::error: a schedule does not exist for the numbers of a problem. `why`: what the
/// schedule needs.
template <pipeline_problem Problem>
[[noreturn, gnu::cold]] void throw_refused(std::string_view name, std::string_view why,
                                           Problem const& problem) {
  throw_error<error>({"schedule ", name, ": ", why, "; got ", problem.ranks, " ranks, ",
                      problem.chunks, " chunks and ", problem.micro_batches, " micro-batches"});
}

/// throws: pp::error unless rows (a table, spans) exist for `rank`
template <class Rows>
constexpr void require_rank(Rows const& rows, int rank) {
  checked_index<error>("rank", rank, rows.ranks());
}

/// throws: pp::error unless table, placement and problem have the same sizes, every action's chunk,
///         micro-batch and kind exist, and every boundary has its slots. Skipped in a constant
///         evaluation, whose steps compilers count and whose indices they check themselves.
template <pipeline_problem Problem, action_table Table, class Slots>
constexpr void require_actions(Problem const& problem, Table const& table, Slots const& slots) {
  if (std::is_constant_evaluated()) return;
  require_placement(problem, table.where);
  if (table.ranks() != problem.ranks)
    throw_error<error>({"a schedule's table: expected ", problem.ranks,
                        " ranks, as its problem has, got ", table.ranks()});
  if (long(problem.chunks) * problem.micro_batches > most_actions)
    throw_error<error>({"a schedule of ", problem.chunks, " chunks and ", problem.micro_batches,
                        " micro-batches exceeds the limit of ", most_actions, " actions"});
  if (!has_items(slots, problem.chunks - 1L))
    throw_error<error>({"slots: expected a number for each of the ", problem.chunks - 1,
                        " boundaries between ", problem.chunks, " chunks"});
  for (int rank = 0; rank < problem.ranks; ++rank)
    for (int i = 0, n = table.size(rank); i < n; ++i) {
      action const& a = table.at(rank, i);
      if (a.chunk < 0 || a.chunk >= problem.chunks || a.micro_batch < 0 ||
          a.micro_batch >= problem.micro_batches || a.kind > action_kind::update)
        throw_error<error>({"action ", i, " of rank ", rank, ": chunk ", a.chunk,
                            " and micro-batch ", a.micro_batch, " are not of ", problem.chunks,
                            " chunks and ", problem.micro_batches, " micro-batches"});
      if (a.with_next && (i + 1 == n || !makes_pair(a, table.at(rank, i + 1))))
        throw_error<error>({"action ", i, " of rank ", rank, " runs together with ", i + 1,
                            ": expected a forward, and a backward of another micro-batch"});
    }
}

}  // namespace pp::detail
