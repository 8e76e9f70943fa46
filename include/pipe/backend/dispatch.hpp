// SPDX-License-Identifier: BSL-1.0
//
// The dispatch from the kind of op that anchors a kernel group to the group's kernel, for both
// backends. A backend declares a template `kernel_of<op_kind>` and specialises the template beside
// each kernel. The list of kernels is the enumeration of kinds, so no kind is forgotten: a kind
// without a kernel is an incomplete type, and the error names the backend and the kind.
#pragma once

#include <utility>

#include <pipe/graph/op_traits.hpp>

namespace pp::detail {

/// Whether groups have anchors of this kind. Pointwise ops are in the chains of a group; a group of
/// pointwise ops alone has the anchor op_kind::pointwise.
constexpr bool is_anchor(op_kind k) {
  return k != op_kind::none && !is_pointwise(k) && !is_of_planes(k);
}

/// The kinds that anchor groups, in the order of op_kind.
struct anchor_list {
  op_kind kinds[op_kinds]{};
  int count = 0;
  constexpr anchor_list() {
    for (int k = 0; k < op_kinds; ++k)
      if (is_anchor(op_kind(k))) kinds[count++] = op_kind(k);
  }
};
inline constexpr anchor_list anchors{};
/// The numbers of all anchors, for packs that make tables of kernels.
using anchor_numbers = std::make_integer_sequence<int, anchors.count>;

/// True if a backend has a kernel for every kind of anchor; otherwise a compile error.
template <template <op_kind> class KernelOf, int... Number>
constexpr bool has_kernels(std::integer_sequence<int, Number...>) {
  return ((sizeof(KernelOf<anchors.kinds[Number]>) > 0) && ...);
}
template <template <op_kind> class KernelOf>
constexpr bool has_kernels() {
  return has_kernels<KernelOf>(anchor_numbers{});
}

}  // namespace pp::detail
