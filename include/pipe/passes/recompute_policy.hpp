// SPDX-License-Identifier: BSL-1.0
//
// Recomputation policies: the values that forward stores for backward, and the values that are
// computed a second time.
#pragma once

#include <concepts>

#include <pipe/base/constant.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/op.hpp>

namespace pp {

namespace detail {

/// The members of a policy, whether or not they are constants: whether the results of a kind of op
/// are dropped, whether the last micro-batch keeps everything, and whether anything is dropped.
template <class P>
concept has_facts_of_recompute = requires(op_kind kind) {
  { P::drops(kind) } -> std::convertible_to<bool>;
  { P::keeps_last } -> std::convertible_to<bool>;
  { P::recomputes } -> std::convertible_to<bool>;
};

/// A call of P::drops for each kind of op, to find out whether the call is a constant.
template <class P>
struct drops_call {
  static constexpr int call() {
    int n = 0;
    for (int kind = 0; kind < op_kinds; ++kind) n += P::drops(op_kind(kind)) ? 1 : 0;
    return n;
  }
};

/// A recompute policy: a type whose members are these constants.
template <class P>
concept recompute_policy = has_facts_of_recompute<P> && is_constant<drops_call<P>> && requires {
  typename constants<is_read(P::keeps_last), is_read(P::recomputes)>;
};

/// The first member of a recompute policy that a type lacks; `none` if the type lacks none, or all.
template <class P>
constexpr wrong::member missing_of_recompute() {
  using enum wrong::member;
  constexpr bool has_drops = requires(op_kind kind) {
    { P::drops(kind) } -> std::convertible_to<bool>;
  };
  constexpr bool has_recomputes = requires {
    { P::recomputes } -> std::convertible_to<bool>;
  };
  constexpr bool has_keeps_last = requires {
    { P::keeps_last } -> std::convertible_to<bool>;
  };
  if constexpr (!has_drops) return has_recomputes || has_keeps_last ? drops : none;
  if constexpr (!has_recomputes) return recomputes;
  if constexpr (!has_keeps_last) return keeps_last;
  return none;
}

}  // namespace detail

/// Stores everything that backward reads (default).
struct NoRecompute {
  static constexpr bool recomputes = false, keeps_last = false;
  static constexpr bool drops(op_kind) { return false; }
};
/// Stores only the inputs of a stage; backward runs forward again. Source: Huang et al., GPipe,
/// 2019, section 2.3.
struct RecomputeAll {
  static constexpr bool recomputes = true, keeps_last = false;
  static constexpr bool drops(op_kind) { return true; }
};
/// As RecomputeAll for all micro-batches but the last, whose backward follows soon after its
/// forward. Source: Kim et al., torchgpipe, 2020.
struct RecomputeAllButLast {
  static constexpr bool recomputes = true, keeps_last = true;
  static constexpr bool drops(op_kind) { return true; }
};
/// Recomputes the results of these kinds of op, for ops that are cheap but whose results take much
/// memory. Source: Korthikanti et al., "Reducing activation recomputation in large transformer
/// models", 2022.
template <op_kind... Kinds>
struct Recompute {
  /// Without kinds the policy is NoRecompute.
  static constexpr bool recomputes = sizeof...(Kinds) > 0, keeps_last = false;
  static constexpr bool drops(op_kind kind) { return ((kind == Kinds) || ...); }
};

}  // namespace pp
