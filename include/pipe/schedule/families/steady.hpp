// SPDX-License-Identifier: BSL-1.0
//
// Steps without a barrier between them: a rank begins the next step as soon as it has updated its
// own weights, so the drain of one step is filled with the warm-up of the next.
#pragma once

#include <type_traits>

#include <pipe/base/composed_name.hpp>
#include <pipe/schedule/families/one_f_one_b.hpp>
#include <pipe/schedule/objective.hpp>
#include <pipe/schedule/policy.hpp>

namespace pp {

namespace detail {

inline constexpr char steady_prefix[] = "steady ";

/// Family S with the order that is best for steps that overlap.
template <class S>
struct ordered_by_period : S {
  template <pipeline_problem Problem, action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    S::template fill<objective::period>(problem, table);
  }
};
/// Whether the family's `fill` takes the objective that its order is to minimise.
template <class S>
concept takes_objective = requires(problem<> const& question, static_table<1, 8>& answer) {
  S::template fill<objective::period>(question, answer);
};

}  // namespace detail

/// The steps of family S, one after the other without a barrier: see Pipeline::train. Each rank
/// updates its weights when their gradients are complete, before the rank knows the global norm and
/// whether all numbers are finite. It knows both when its first backward of the next step begins,
/// as the micro-batch of that backward has been in all stages. Then the update is confirmed, or
/// taken back and made again.
///
/// note:   a searched order is searched for the shortest period
/// law:    losses, norms, parameters and states have the bits of S with a barrier
/// cost:   memory for a second copy of weights and optimizer state
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 4 (post-validation)
template <schedules::schedule_policy S = OneFOneB>
struct Steady : S {
  static constexpr char const* name = detail::name_composed_of<detail::steady_prefix, S>.text;
  using flushed = std::conditional_t<detail::takes_objective<S>, detail::ordered_by_period<S>, S>;
  static constexpr detail::step_overlap overlap = detail::step_overlap::confirmed;
};

}  // namespace pp
