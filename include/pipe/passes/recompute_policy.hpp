// SPDX-License-Identifier: BSL-1.0
//
// Recomputation policies: the values that forward stores for backward, and those that are computed
// a second time.
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

/// P::drops for each kind of op, as a call that is perhaps not constant.
template <class P>
struct drops_call {
  static constexpr int call() {
    int n = 0;
    for (int kind = 0; kind < op_kinds; ++kind) n += P::drops(op_kind(kind)) ? 1 : 0;
    return n;
  }
};

/// A recompute policy: its members are constants.
template <class P>
concept recompute_policy = has_facts_of_recompute<P> && is_constant<drops_call<P>> && requires {
  typename constants<is_read(P::keeps_last), is_read(P::recomputes)>;
};

/// The first member that a type lacks to be a recompute policy; `none` if it has no member of one.
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
/// The same for all micro-batches but the last, whose backward follows soon after its forward.
/// Source: Kim et al., torchgpipe, 2020.
struct RecomputeAllButLast {
  static constexpr bool recomputes = true, keeps_last = true;
  static constexpr bool drops(op_kind) { return true; }
};
/// Recomputes the results of these kinds of op: cheap ones that take much memory. Source:
/// Korthikanti et al., "Reducing activation recomputation in large transformer models", 2022.
template <op_kind... Kinds>
struct Recompute {
  /// Without kinds it is NoRecompute.
  static constexpr bool recomputes = sizeof...(Kinds) > 0, keeps_last = false;
  static constexpr bool drops(op_kind kind) { return ((kind == Kinds) || ...); }
};

}  // namespace pp
