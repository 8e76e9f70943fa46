// SPDX-License-Identifier: BSL-1.0
//
// The dispatch from the kind of op that anchors a kernel group to the kernel that computes it, one
// for both backends. A backend declares a template `kernel_of<op_kind>` and specialises it beside
// each kernel. The enumeration of kinds is the list, so a kind that has no kernel cannot be passed
// over: its specialisation is an incomplete type, and the error names the backend and the kind.
#pragma once

#include <utility>

#include <pipe/graph/op_traits.hpp>

namespace pp::detail {

/// Whether groups have anchors of this kind. Pointwise ops are steps of a group; one that consists
/// of nothing else has the anchor op_kind::pointwise.
constexpr bool is_anchor(op_kind k) { return k != op_kind::none && !is_pointwise(k); }

/// Whether a backend has a kernel for this kind, or needs none. Never false: it does not compile.
template <template <op_kind> class KernelOf, op_kind Kind>
constexpr bool has_kernel() {
  if constexpr (is_anchor(Kind))
    static_assert(sizeof(KernelOf<Kind>) > 0, "a kind of op is without a kernel in this backend");
  return true;
}
template <template <op_kind> class KernelOf, int... Kind>
constexpr bool has_kernels(std::integer_sequence<int, Kind...>) {
  return (has_kernel<KernelOf, op_kind(Kind)>() && ...);
}
/// The same for every kind.
template <template <op_kind> class KernelOf>
constexpr bool has_kernels() {
  return has_kernels<KernelOf>(std::make_integer_sequence<int, op_kinds>{});
}

template <template <op_kind> class KernelOf, op_kind Kind, class Result, class F>
constexpr bool ask_kernel(op_kind anchor, Result& answer, F const& f) {
  if constexpr (is_anchor(Kind)) {
    if (anchor != Kind) return false;
    answer = f(KernelOf<Kind>{});
    return true;
  }
  return false;
}
template <template <op_kind> class KernelOf, class Result, class F, int... Kind>
constexpr Result ask_kernel(op_kind anchor, Result otherwise, F const& f,
                            std::integer_sequence<int, Kind...>) {
  (void)(ask_kernel<KernelOf, op_kind(Kind)>(anchor, otherwise, f) || ...);
  return otherwise;
}
/// f(KernelOf<anchor>{}) for a kind that is a run-time value; `otherwise` if it is no anchor.
template <template <op_kind> class KernelOf, class Result, class F>
constexpr Result ask_kernel(op_kind anchor, Result otherwise, F const& f) {
  return ask_kernel<KernelOf>(anchor, otherwise, f, std::make_integer_sequence<int, op_kinds>{});
}

}  // namespace pp::detail
