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

/// A problem of any size with any costs. The number of chunks per rank is chunks / ranks, times the
/// replicas.
using run_time_problem = problem<std::vector<chunk_cost>>;

}  // namespace schedules

/// A policy as a value.
struct family {
  std::string_view name;
  schedules::placement where = schedules::placement::straight;
  int chunks_per_rank = 1;  ///< 0: any number
  bool splits_backward = false, trains = true;
  bool searches = false;  ///< its fill is a search, and takes as long as a search
  char const* (*refuses)(schedules::run_time_problem const&) = nullptr;
  void (*fill)(schedules::run_time_problem const&, schedules::dynamic_table&) = nullptr;
};

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
      [](run_time_problem const& problem, dynamic_table& table) { Policy::fill(problem, table); }};
}

}  // namespace schedules

/// The families of this folder, each under its name.
inline constexpr family catalog[] = {
    schedules::family_of<GPipe>(),
    schedules::family_of<OneFOneB>(),
    schedules::family_of<EagerOneFOneB>(),
    schedules::family_of<Interleaved<2>>(true),
    schedules::family_of<GroupedInterleaved<2>>(true),
    schedules::family_of<LoopedBFS<2>>(true),
    schedules::family_of<ZeroBubbleH1>(),
    schedules::family_of<ZeroBubbleH2>(),
    schedules::family_of<ZeroBubble1P>(),
    schedules::family_of<ZeroBubble2P>(),
    schedules::family_of<Searched<>>(),
    schedules::family_of<ZeroBubbleV>(),
    schedules::family_of<VHalf>(),
    schedules::family_of<VMin>(),
    schedules::family_of<Hanayo<>>(true),
    schedules::family_of<Chimera>(),
    schedules::family_of<ChimeraDoubled>(),
    schedules::family_of<DualPipe>(),
    schedules::family_of<DualPipeV>(),
    schedules::family_of<Paired<EagerOneFOneB>>(),
    schedules::family_of<Paired<DualPipe>>(),
    schedules::family_of<Paired<DualPipeV>>(),
    schedules::family_of<ForwardOnly>(),
    schedules::family_of<PipeDream<>>(),
    schedules::family_of<PipeDream2BW<>>(),
    schedules::family_of<PACI<>>(),
};

/// The family of a name, or null.
constexpr family const* find_family(std::string_view name) {
  for (family const& f : catalog)
    if (f.name == name) return &f;
  return nullptr;
}

namespace schedules {

/// The table of a family for a problem.
///
/// law:    the same table as make_dynamic_table of the policy
/// throws: pp::error if f.refuses(problem) gives a reason, or the problem's chunks and costs do not
///         fit the family
inline dynamic_table make_dynamic_table(family const& f, run_time_problem const& problem) {
  detail::require_chunks(problem, f.where, f.chunks_per_rank);
  if (char const* const why = f.refuses(problem); why != nullptr)
    detail::throw_refused(f.name, why, problem);
  auto table = dynamic_table(problem.ranks, f.where, f.trains);
  f.fill(problem, table);
  return table;
}

}  // namespace schedules

}  // namespace pp
