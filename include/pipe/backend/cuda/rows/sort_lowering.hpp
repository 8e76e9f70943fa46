// SPDX-License-Identifier: BSL-1.0
//
// The gradient of a table, with the sort of rows by their ids as a call of a library: kernels
// before the call list the ids and the rows, and kernels after the call add up the rows.
//
// law: the call writes the same lists as radix_sort_rows, at the same places of the workspace, so
//      no bit of the gradient depends on the choice of a sort
#pragma once

#include <cstddef>
#include <type_traits>

#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/rows/lookup.hpp>

namespace pp::cuda {

/// A stable sort of `rows` pairs by the lowest `bits` bits of their keys, which are not negative.
/// All lists are in device memory, and disjoint.
struct sort_call {
  int rows = 0, bits = 0;
  int const *keys = nullptr, *values = nullptr;
  int *sorted_keys = nullptr, *sorted_values = nullptr;
  void* temporary = nullptr;  ///< at a multiple of 256
  std::size_t temporary_bytes = 0;
};

/// Bytes of temporary memory that the plan has for a library's sort of pairs of 4-byte numbers:
/// both lists once more, for passes that cannot work in place, a byte for each row (CUB: 1 KiB for
/// each tile of thousands of rows), and tables of digits. If a library asks for more bytes, kernels
/// of this library sort.
constexpr long sort_bytes(int rows) { return 9l * rows + (16 << 10); }

/// Writes the lists that a call sorts: ids, where padding becomes the bound, which follows all ids,
/// and rows.
///
/// shape: ids (R) -> keys (R), rows (R)
/// cost:  12 bytes for each row
template <class P, int G>
struct list_rows_kernel {
  using common = lookup_gradient<P, G>;
  static constexpr int threads = 256;
  static constexpr extent blocks = (common::rows + threads - 1) / threads;
  using state = nothing;
  using shared = nothing;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    using order = typename common::order;
    block.part([&](int thread, state&) {
      extent const i = block.position() * threads + thread;
      if (i >= common::rows) return;
      order::keys(a.workspace, order::passes)[i] =
          sort_key<common::bound, common::padding>(a.ids(common::ids_index)[i]);
      order::rows(a.workspace, order::passes)[i] = int(i);
    });
  }
};

/// The launches of group G, a table's gradient, around a library's call.
template <class P, int G>
struct sort_lowering {
  using common = lookup_gradient<P, G>;
  using order = typename common::order;
  using before = kernel_list<list_rows_kernel<P, G>>;
  using after = decltype(lower_sums_of_rows<P, G>());
  static constexpr int rows = common::rows, bits = order::bits;
  static constexpr long alignment = 256, temporary_bytes = sort_bytes(rows);
  /// The call's memory follows the lists; the sums of parts of runs, which are written later,
  /// overwrite this memory.
  static constexpr long call_bytes = order::bytes + alignment + temporary_bytes;
  static constexpr long workspace_bytes =
      call_bytes > common::workspace_bytes ? call_bytes : common::workspace_bytes;

  static sort_call call(arguments const& a) {
    sort_call c;
    c.rows = rows, c.bits = bits;
    c.keys = order::keys(a.workspace, order::passes);
    c.values = order::rows(a.workspace, order::passes);
    c.sorted_keys = order::keys(a.workspace);
    c.sorted_values = order::rows(a.workspace);
    c.temporary = a.workspace_from(order::bytes, alignment);
    c.temporary_bytes = std::size_t(temporary_bytes);
    return c;
  }
};

/// Whether a library sorts the rows of group G of P. Sort: void, or an option's row_sort.
template <class P, int G, class Sort>
constexpr bool is_for_library_sort() {
  return !std::is_void_v<Sort> && (group_of<P, G>::value.anchor == op_kind::lookup_gradient ||
                                   group_of<P, G>::value.anchor == op_kind::bag_gradient);
}
/// Bytes of workspace of group G for the sort of a library; 0 if no library sorts.
template <class P, int G, class Sort>
constexpr long sort_workspace_of() {
  if constexpr (is_for_library_sort<P, G, Sort>())
    return sort_lowering<P, G>::workspace_bytes;
  else
    return 0;
}

}  // namespace pp::cuda
