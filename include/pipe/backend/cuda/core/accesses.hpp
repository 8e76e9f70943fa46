// SPDX-License-Identifier: BSL-1.0
//
// The base of kernels over rows whose elements do not depend on each other: each thread has one
// access.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/launch_rows.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>

namespace pp::cuda {

/// Base of kernels in which a thread has one access, of Each neighbouring elements of a row.
///
/// shape: rows (Rows, Columns)
/// needs: Columns is a multiple of Each
template <extent Rows, int Columns, int Each>
struct accesses {
  static_assert(Columns % Each == 0);
  static constexpr extent elements = Rows * Columns;
  static constexpr int threads = 256, each = Each;
  static constexpr extent blocks = (elements + threads * each - 1) / (threads * each);
  using state = nothing;
  using shared = nothing;
  /// The offset of an element: in 32 bits if possible, where a division takes about five
  /// instructions, not forty.
  using offset = std::conditional_t<(elements < (extent(1) << 31)), unsigned, std::size_t>;

  /// Calls f(row, column) for each thread's access.
  template <class Block, class F>
  PIPE_HD PIPE_INLINE static void for_access(Block& block, F f) {
    block.part([&](int thread, nothing&) {
      offset const at =
          (offset(block.position()) * offset(threads) + offset(thread)) * offset(each);
      if (at < offset(elements)) f(extent(at / offset(Columns)), int(at % offset(Columns)));
    });
  }
};

/// The accesses for all rows of group G of P, of `Columns` elements each; an access divides Columns
/// and Aligned.
template <class P, int G, int Columns, int Aligned = Columns>
struct row_accesses : accesses<launch_rows<P, G>::planned, Columns,
                               access_width<typename P::element>(Columns | Aligned)> {
  using all = accesses<launch_rows<P, G>::planned, Columns,
                       access_width<typename P::element>(Columns | Aligned)>;
  using all::for_access;
  /// Calls f(row, column) for each thread's access of a row that is there.
  template <class Block, class F>
  PIPE_HD PIPE_INLINE static void for_access(Block& block, [[maybe_unused]] arguments const& a,
                                             F f) {
    if constexpr (launch_rows<P, G>::vary)
      for_access(block, [&, end = launch_rows<P, G>::end(a)](extent row, int column) {
        if (row < end) f(row, column);
      });
    else
      for_access(block, f);
  }
};

}  // namespace pp::cuda
