// SPDX-License-Identifier: BSL-1.0
//
// The recompute option (activation checkpointing): a policy of passes/recompute_policy.hpp, or a
// user-defined one.
#pragma once

#include <type_traits>

#include <pipe/passes/recompute_policy.hpp>
#include <pipe/plan/options/constants.hpp>
#include <pipe/plan/options/family.hpp>

namespace pp {

namespace option_family {
/// The family of recompute policies: every recompute_policy.
struct recompute : detail::any_family {
  using fallback = NoRecompute;
  template <class O>
  static constexpr bool holds() {
    return detail::recompute_policy<O>;
  }

  template <class O>
  static constexpr auto diagnose_type() {
    using enum wrong::member;
    constexpr wrong::member lacks = detail::missing_of_recompute<O>();
    if constexpr (lacks != none)
      return detail::diagnosis_of<wrong::recompute_is_incomplete, O, wrong::Missing<lacks>>();
    else if constexpr (detail::has_facts_of_recompute<O>)
      return detail::diagnose_facts<O, drops, keeps_last, recomputes>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<recompute>;
    if constexpr (std::is_same_v<option, Recompute<>>)
      return detail::diagnosis_of<wrong::recompute_needs_kinds_of_op, option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};
}  // namespace option_family

}  // namespace pp
