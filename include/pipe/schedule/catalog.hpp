// SPDX-License-Identifier: BSL-1.0
//
// All families by name, for problems that are known only at run time.
#pragma once

#include <concepts>
#include <string_view>
#include <vector>

#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/families.hpp>

namespace pp {

/// A problem of any size and with any costs. The chunks per rank are chunks / ranks (times the
/// replicas).
using run_time_problem = problem<std::vector<chunk_cost>>;

/// A policy as a value.
struct family {
  std::string_view name;
  placement where = placement::straight;
  int chunks_per_rank = 1;  ///< 0: any number
  bool splits_backward = false, trains = true;
  bool searches = false;  ///< takes as long as a search does
  char const* (*refuses)(run_time_problem const&) = nullptr;
  void (*fill)(run_time_problem const&, dynamic_table&) = nullptr;
};

namespace detail {

/// A policy that looks for its order, with options that it reads off the problem.
template <class Policy>
concept searching_policy = requires(run_time_problem const& problem) { Policy::options(problem); };

}  // namespace detail

/// Policy, which may be a template whose number of chunks per rank is read off the problem.
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

/// The families of this folder, each under its name.
inline constexpr family catalog[] = {
    family_of<GPipe>(),
    family_of<OneFOneB>(),
    family_of<EagerOneFOneB>(),
    family_of<Interleaved<2>>(true),
    family_of<GroupedInterleaved<2>>(true),
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
    family_of<DualPipe>(),
    family_of<DualPipeV>(),
    family_of<ForwardOnly>(),
    family_of<PipeDream<>>(),
    family_of<PipeDream2BW<>>(),
};

/// The family of that name, or none.
constexpr family const* find_family(std::string_view name) {
  for (family const& f : catalog)
    if (f.name == name) return &f;
  return nullptr;
}

/// law:    the same table as make_dynamic_table of the policy
/// throws: pp::error if f.refuses(problem) gives a reason, or the problem has not as many chunks
///         and costs as the family is for
inline dynamic_table make_dynamic_table(family const& f, run_time_problem const& problem) {
  detail::require_chunks(problem, f.where, f.chunks_per_rank);
  if (char const* const why = f.refuses(problem); why != nullptr)
    complain<error>({"schedule ", f.name, ": ", why});
  auto table = dynamic_table(problem.ranks, f.where, f.trains);
  f.fill(problem, table);
  return table;
}

}  // namespace pp
