// SPDX-License-Identifier: BSL-1.0
//
// Families whose order is searched, under a memory limit and for any times: see schedule_search.hpp
// for the methods.
#pragma once

#include <pipe/schedule/certificate.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/search/schedule_search.hpp>
#include <pipe/schedule/search/search_period.hpp>
#include <pipe/schedule/simulate.hpp>

namespace pp {

namespace schedules {

/// The memory of 1F1B on equal ranks: P times what one micro-batch takes on the rank where it takes
/// the most.
///
/// throws: pp::error if the problem does not fit the placement
template <pipeline_problem Problem>
constexpr long memory_of_1f1b(Problem const& problem, placement where) {
  detail::require_placement(problem, where);
  int const p = problem.ranks;
  long most = 0;
  for (int rank = 0; rank < p; ++rank) {
    long added = 0;
    for (int index = 0; index < problem.chunks / p; ++index)
      added += problem.cost(chunk_on(where, p, rank, index)).memory.forward;
    most = added > most ? added : most;
  }
  return p * most;
}

}  // namespace schedules

/// The best order found within Numerator/Denominator of the memory of 1F1B, and within the
/// problem's own limits. Numerator 0: no limit but the problem's. In a Pipeline with MemoryLimit,
/// the problem's limit of a rank is what the rank has left for values of micro-batches.
///
/// note: the default objective is the stage-local span, the papers' measure. For steps with a
///       barrier take objective::makespan. Where steps overlap, Steady<Searched<...>> takes
///       objective::period, whatever Want is
template <int Numerator = 0, int Denominator = 1,
          schedules::placement Where = schedules::placement::straight,
          schedules::objective Want = schedules::objective::stage_local_span,
          long Effort = detail::search_options::usual_effort>
struct Searched {
  static_assert(Numerator >= 0 && Denominator > 0,
                "the memory limit of a search is a quotient of at least 0");
  static_assert(replicas(Where) == 1, "a search is for placements that hold every chunk once");

  static constexpr char const* name = "searched";
  static constexpr schedules::placement where = Where;
  static constexpr int chunks_per_rank = Where == schedules::placement::straight ? 1 : 2;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;
  static constexpr bool limits_memory = true;

  template <schedules::pipeline_problem Problem>
  static constexpr detail::search_options options(Problem const& problem) {
    long const limit = Numerator > 0
                           ? schedules::memory_of_1f1b(problem, where) * Numerator / Denominator
                           : detail::search_options::no_limit;
    return detail::search_options{Want, limit, Effort};
  }

  /// Whether a constant evaluation has room for the few plans of a search; larger problems are
  /// searched at run time.
  static constexpr bool fits_a_constant(int ranks, int micro_batches) {
    return ranks * micro_batches <= 8 * 32;
  }

  /// The reason why a problem has no solution, or null.
  template <schedules::pipeline_problem Problem>
  static constexpr char const* refuses(Problem const& problem) {
    detail::search_problem const question(problem, where, Want, options(problem).limit);
    return detail::planner(question).possible()
               ? nullptr
               : "not even one micro-batch fits into the memory limit";
  }

  template <schedules::objective Minimised = Want, schedules::pipeline_problem Problem,
            detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    detail::search_options minimising = options(problem);
    minimising.want = Minimised;
    if constexpr (Minimised == schedules::objective::period)
      detail::search_by_period(problem, table, minimising);
    else
      detail::search(problem, table, minimising);
  }
};

/// ZB-1p: searched within the memory of 1F1B.
///
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 3
struct ZeroBubble1P : Searched<1> {
  static constexpr char const* name = "zb-1p";
};

/// ZB-2p: searched within twice the memory of 1F1B.
///
/// law: TF = TB = TW without hops and M >= 2P: no bubble in the stage-local span
struct ZeroBubble2P : Searched<2> {
  static constexpr char const* name = "zb-2p";
};

}  // namespace pp
