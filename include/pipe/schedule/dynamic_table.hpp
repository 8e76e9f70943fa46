// SPDX-License-Identifier: BSL-1.0
//
// The table for run time: any number of ranks and actions. Not in table.hpp, so that a program
// whose schedule is fixed at compile time does not include <vector>.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <pipe/base/checked_index.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/required.hpp>

namespace pp {

namespace schedules {

/// One growing list of `T` per rank.
///
/// throws: pp::error for a rank or a position that does not exist
template <class T>
struct dynamic_rows {
  std::vector<std::vector<T>> items;

  /// Throws pp::error for count < 0.
  explicit dynamic_rows(int count) : items(static_cast<std::size_t>(count < 0 ? 0 : count)) {
    if (count < 0)
      detail::throw_error<error>({"a schedule's table: expected 0 or more ranks, got ", count});
  }

  /// Empty rows of another type, with `Times` times the room of these.
  template <class Other, int Times = 1>
  auto like() const {
    auto others = dynamic_rows<Other>(ranks());
    for (std::size_t rank = 0; rank < items.size(); ++rank)
      others.items[rank].reserve(Times * items[rank].capacity());
    return others;
  }

  int ranks() const { return static_cast<int>(items.size()); }
  int size(int rank) const { return static_cast<int>(row(rank).size()); }
  T const& at(int rank, int position) const {
    return row(rank)[checked("position", position, size(rank))];
  }
  T& at(int rank, int position) { return row(rank)[checked("position", position, size(rank))]; }
  void push(int rank, T const& item) { row(rank).push_back(item); }

  std::vector<T> const& row(int rank) const { return items[checked("rank", rank, ranks())]; }
  std::vector<T>& row(int rank) { return items[checked("rank", rank, ranks())]; }

 private:
  static std::size_t checked(char const* what, int index, int end) {
    return static_cast<std::size_t>(detail::checked_index<error>(what, index, end));
  }
};

}  // namespace schedules

namespace detail {

/// A table of any size, for run time, on a placement of type Where.
template <class Where>
struct dynamic_table_on : dynamic_rows<action> {
  Where where{};
  bool trains = true;
  int mini_batch = 0;
  int drift = 0;
  detail::unplaced_action unplaced{};

  explicit dynamic_table_on(int count, Where const& placed = {}, bool is_training = true)
      : dynamic_rows<action>(count), where(placed), trains(is_training) {}

  /// Appends an action to a rank's list. An action of a rank that does not exist makes the table
  /// invalid: check_complete reports the action.
  void push(int rank, action const& item) {
    if (rank >= 0 && rank < ranks())
      dynamic_rows<action>::push(rank, item);
    else if (!unplaced.any)
      unplaced = detail::unplaced_action{true, false, rank, item};
  }
};

/// throws: pp::error if a table of these lists would have more than most_actions
inline void require_countable(std::string_view name, int ranks, long actions_of_a_rank) {
  if (ranks > most_actions / (actions_of_a_rank > 0 ? actions_of_a_rank : 1))
    throw_error<error>({"schedule ", name, ": a table of ", ranks, " ranks with ",
                        actions_of_a_rank, " actions each exceeds the limit of ", most_actions,
                        " actions"});
}

}  // namespace detail

namespace schedules {

/// A table of any size, for run time.
using dynamic_table = detail::dynamic_table_on<placement>;

/// The table of a policy for a problem known only at run time, on the policy's placement or, if the
/// policy's `fill` reads the table's placement, on another placement.
///
/// throws: pp::error if the table would have more than most_actions, the policy refuses the numbers
///         of ranks and micro-batches, or the problem's chunks and costs do not fit the policy
template <schedule_policy Policy, pipeline_problem Problem, detail::chunk_placement Where>
auto make_dynamic_table(Problem const& problem, Where const& where) {
  long const expected = detail::actions_per_rank<Policy>(problem.micro_batches);
  detail::require_countable(Policy::name, problem.ranks, expected);
  detail::require_chunks(problem, where, Policy::chunks_per_rank);
  if (char const* const why = why_refused<Policy>(problem.ranks, problem.micro_batches);
      why != nullptr)
    detail::throw_refused(Policy::name, why, problem);
  auto table = detail::dynamic_table_on<Where>(problem.ranks, where, Policy::trains);
  for (int rank = 0; rank < problem.ranks; ++rank)
    table.row(rank).reserve(static_cast<std::size_t>(expected));
  Policy::fill(problem, table);
  return table;
}
template <schedule_policy Policy, pipeline_problem Problem>
dynamic_table make_dynamic_table(Problem const& problem) {
  return make_dynamic_table<Policy>(problem, Policy::where);
}

}  // namespace schedules

}  // namespace pp
