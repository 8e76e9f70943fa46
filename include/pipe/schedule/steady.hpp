// SPDX-License-Identifier: BSL-1.0
//
// Steps without a barrier between them: a rank begins the next step as soon as it has updated its
// own weights, so the drain of one step is filled with the warm-up of the next.
#pragma once

#include <pipe/schedule/one_f_one_b.hpp>
#include <pipe/schedule/policy.hpp>

namespace pp {

namespace detail {

inline constexpr char steady_prefix[] = "steady ";

}  // namespace detail

/// The steps of family S, one after the other without a barrier: see Pipeline::train. Each rank
/// updates its weights when their gradients are complete, before it knows the global norm and
/// whether all numbers are finite. It knows when its first backward of the next step begins, as
/// that has been in all stages: then the update is confirmed, or taken back and made again.
///
/// law:    losses, norms, parameters and states have the bits of S with a barrier
/// cost:   memory for a second copy of weights and optimizer state
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 4 (post-validation)
template <schedule_policy S = OneFOneB>
struct Steady : S {
  static constexpr char const* name = detail::prefixed_name<detail::steady_prefix, S>.characters;
  using flushed = S;
  static constexpr detail::step_overlap overlap = detail::step_overlap::confirmed;
};

}  // namespace pp
