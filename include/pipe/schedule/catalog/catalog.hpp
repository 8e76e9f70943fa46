// SPDX-License-Identifier: BSL-1.0
//
// All families by name, for problems that are only known at run time.
#pragma once

#include <concepts>
#include <string_view>
#include <vector>

#include <pipe/schedule/catalog/families.hpp>
#include <pipe/schedule/dynamic_table.hpp>

namespace pp {

namespace schedules {

/// A problem of any size with any costs and memory limits. The number of chunks per rank is chunks
/// / ranks, times the replicas.
using run_time_problem = problem<std::vector<chunk_cost>, std::vector<long>>;

/// A policy as a value.
struct family {
  std::string_view name;
  placement where = placement::straight;
  int chunks_per_rank = 1;  ///< 0: any number
  bool splits_backward = false, trains = true;
  bool searches = false;  ///< its fill is a search, and takes as long as a search
  char const* (*refuses)(run_time_problem const&) = nullptr;
  /// The most actions of a rank.
  long (*actions_per_rank)(run_time_problem const&) = nullptr;
  void (*fill)(run_time_problem const&, dynamic_table&) = nullptr;
};

}  // namespace schedules

namespace detail {

/// A policy that searches for its order, with options that depend on the problem.
template <class Policy>
concept searching_policy = requires(run_time_problem const& problem) { Policy::options(problem); };

}  // namespace detail

namespace schedules {

/// A policy as a value. any_chunks_per_rank: Policy is an instance of a template, and the problem
/// gives the number of chunks per rank.
template <schedule_policy Policy>
constexpr family family_of(bool any_chunks_per_rank = false) {
  return family{
      Policy::name,
      Policy::where,
      any_chunks_per_rank ? 0 : Policy::chunks_per_rank,
      Policy::splits_backward,
      Policy::trains,
      detail::searching_policy<Policy>,
      [](run_time_problem const& problem) { return why_refused<Policy>(problem); },
      [](run_time_problem const& problem) {
        long const chunks = long(problem.chunks) * replicas(Policy::where) / problem.ranks;
        return detail::actions_per_rank<Policy>(problem.micro_batches) / Policy::chunks_per_rank *
               chunks;
      },
      [](run_time_problem const& problem, dynamic_table& table) { Policy::fill(problem, table); }};
}

/// The families of this folder, each under its name.
inline constexpr family catalog[] = {
    family_of<GPipe>(),
    family_of<OneFOneB>(),
    family_of<EagerOneFOneB>(),
    family_of<AdaptedOneFOneB>(),
    family_of<Interleaved<2>>(true),
    family_of<GroupedInterleaved<2>>(true),
    family_of<InterleavedZeroBubble<2>>(true),
    family_of<LoopedBFS<2>>(true),
    family_of<ZeroBubbleH1>(),
    family_of<ZeroBubbleH2>(),
    family_of<ZeroBubble1P>(),
    family_of<ZeroBubble2P>(),
    family_of<Searched<>>(),
    family_of<ZeroBubbleV>(),
    family_of<VHalf>(),
    family_of<VMin>(),
    family_of<Hanayo<>>(true),
    family_of<Chimera>(),
    family_of<ChimeraDoubled>(),
    family_of<DualPipe>(),
    family_of<DualPipeV>(),
    family_of<Paired<EagerOneFOneB>>(),
    family_of<Paired<DualPipe>>(),
    family_of<Paired<DualPipeV>>(),
    family_of<ForwardOnly>(),
    family_of<PipeDream<>>(),
    family_of<PipeDream2BW<>>(),
    family_of<PACI<>>(),
};

/// The family of a name, or null.
constexpr family const* find_family(std::string_view name) {
  for (family const& f : catalog)
    if (f.name == name) return &f;
  return nullptr;
}

/// The table of a family for a problem.
///
/// law:    the same table as make_dynamic_table of the policy
/// throws: pp::error if f.refuses(problem) gives a reason, the problem's chunks and costs do not
///         fit the family, or the table would have more than most_actions
inline dynamic_table make_dynamic_table(family const& f, run_time_problem const& problem) {
  detail::require_chunks(problem, f.where, f.chunks_per_rank);
  if (char const* const why = f.refuses(problem); why != nullptr)
    detail::throw_refused(f.name, why, problem);
  long const expected = f.actions_per_rank(problem);
  detail::require_countable(f.name, problem.ranks, expected);
  auto table = dynamic_table(problem.ranks, f.where, f.trains);
  for (int rank = 0; rank < problem.ranks; ++rank)
    table.row(rank).reserve(static_cast<std::size_t>(expected));
  f.fill(problem, table);
  return table;
}

}  // namespace schedules

}  // namespace pp
