// SPDX-License-Identifier: BSL-1.0
//
// A schedule as a value: one list of actions per rank, and the placement of the chunks. The
// algorithms of this folder are templates over the table, so the same code proves a
// `schedules::static_table` in a static_assert and a `schedules::dynamic_table` (dynamic_table.hpp)
// of a thousand ranks at run time.
#pragma once

#include <concepts>
#include <type_traits>

#include <pipe/schedule/action.hpp>
#include <pipe/schedule/placement.hpp>

namespace pp {

namespace detail {

/// One list of `T` per rank, each with at most `Capacity` items.
///
/// law: a push beyond the capacity fails constant evaluation; static_table records such an action
///      instead
template <class T, int Ranks, int Capacity>
struct static_rows {
  T items[Ranks][Capacity > 0 ? Capacity : 1]{};
  int counts[Ranks]{};

  /// Empty rows of another type with `Times` times the capacity, for instance for the times of the
  /// actions.
  template <class Other, int Times = 1>
  constexpr auto like() const {
    return static_rows<Other, Ranks, Times * Capacity>{};
  }

  constexpr int ranks() const { return Ranks; }
  constexpr int size(int rank) const { return counts[rank]; }
  constexpr T const& at(int rank, int position) const { return items[rank][position]; }
  constexpr T& at(int rank, int position) { return items[rank][position]; }
  constexpr void push(int rank, T const& item) { items[rank][counts[rank]++] = item; }

  constexpr auto const& row(int rank) const { return items[rank]; }
};

/// The first action that had no place in a table, if any: its rank does not exist, or the rank's
/// list is full.
struct unplaced_action {
  bool any = false, rank_exists = false;
  int rank = 0;
  action which{};
};

}  // namespace detail

namespace schedules {

/// A table of compile-time capacity.
///
/// Where: `schedules::placement`, or another chunk_placement, such as stage_ranks
template <int Ranks, int Capacity, class Where = placement>
struct static_table : detail::static_rows<action, Ranks, Capacity> {
  Where where{};
  bool trains = true;  ///< false: forward only, for inference and evaluation
  /// Micro-batches from one update to the next; 0: one update after the table, not part of it.
  int mini_batch = 0;
  /// The most updates by which a backward may read newer weights than its forward.
  int drift = 0;
  detail::unplaced_action unplaced{};

  /// Appends an action to a rank's list. An action without a place makes the table invalid:
  /// check_complete reports the action.
  constexpr void push(int rank, action const& item) {
    bool const rank_exists = rank >= 0 && rank < Ranks;
    if (rank_exists && this->counts[rank] < Capacity)
      detail::static_rows<action, Ranks, Capacity>::push(rank, item);
    else if (!unplaced.any)
      unplaced = detail::unplaced_action{true, rank_exists, rank, item};
  }
};

/// The maximum number of actions of a table: every count of them fits an int.
inline constexpr long most_actions = 1L << 28;

}  // namespace schedules

namespace detail {

/// The interface of a table that the algorithms of this folder use.
template <class T>
concept action_table = requires(T& table, T const& fixed, int i, action a) {
  { fixed.ranks() } -> std::same_as<int>;
  { fixed.size(i) } -> std::same_as<int>;
  { fixed.at(i, i) } -> std::convertible_to<action>;
  requires chunk_placement<std::remove_cvref_t<decltype(fixed.where)>>;
  { fixed.trains } -> std::convertible_to<bool>;
  { fixed.mini_batch } -> std::convertible_to<int>;
  { fixed.drift } -> std::convertible_to<int>;
  table.push(i, a);
  fixed.template like<int>();
};

/// The number of actions of all ranks.
template <action_table Table>
constexpr long count_actions(Table const& table) {
  long count = 0;
  for (int rank = 0; rank < table.ranks(); ++rank) count += table.size(rank);
  return count;
}

/// Calls `use(rank, position, action)` for every action of a chunk, rank by rank, each rank's in
/// order.
template <action_table Table, class Use>
constexpr void for_each_of_chunk(Table const& table, int chunk, Use use) {
  for (int replica = 0; replica < replicas(table.where, chunk); ++replica) {
    int const rank = rank_of(table.where, table.ranks(), chunk, replica);
    for (int i = 0; i < table.size(rank); ++i)
      if (table.at(rank, i).chunk == chunk) use(rank, i, table.at(rank, i));
  }
}

}  // namespace detail

}  // namespace pp
