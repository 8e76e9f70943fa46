// SPDX-License-Identifier: BSL-1.0
//
// Matrix products: a matmul, and the gradients of its input and of its weight. All three are c = a
// b with b[K, N] by rows; the a of a weight's gradient is read transposed, and so is a b that is
// the transpose of a parameter.
//
// The prologue of a matmul runs as a kernel of its own that writes the rows of a: each row is read
// by as many blocks as c has tiles in a row, and none of them should repeat the prologue.
//
// law: an element of c is summed in an order that depends on M, N, K and the product's format only
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/matmul/contraction_tile.hpp>

namespace pp::cuda {

/// The rows of a matmul's left factor, by its prologue.
///
/// shape: x (M, K) -> a (M, K), in the workspace, or in the memory of the last op if it is stored
/// work:  a thread has one access of a row
/// cost:  one pass over x and a, bound by bytes
template <class P, int G>
struct left_rows_kernel : row_accesses<P, G, chain<P, G, false>::width> {
  using T = typename P::element;
  using product = contraction<P, G>;
  using ops = chain<P, G, false>;
  using base = row_accesses<P, G, ops::width>;
  using base::each;
  static constexpr long workspace_bytes = product::left_bytes;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    base::for_access(block, a, [&](extent row, int column) {
      extent const at = row * ops::width + column;
      float v[each];
      load<each>(a.at<T const>(g.in[0]) + at, v);
      ops::template run<each>(a, row, column, v);
      if constexpr (product::stored < 0) save<each>(product::made_left(a) + at, v);
    });
  }
};

/// Elements of an access to c in split_sums_kernel: fewer than the widest access if that would
/// leave multiprocessors without a block.
template <class Tiles>
constexpr int access_for_sums() {
  constexpr extent elements = Tiles::partial_rows * Tiles::columns;
  int each = Tiles::product::each;
  while (each > 1 && elements < extent(132) * 256 * each) each /= 2;
  return each;
}

/// The end of a product whose splits are too many for a block of contraction_tiles to add: c =
/// epilogue(sum over s of sums[s]).
///
/// shape: sums (splits, M, N), in the workspace -> c (M, N)
/// law:   the order of contraction_tiles
/// work:  a thread has one access of a row of c
/// cost:  reads splits * M * N floats, bound by bytes; by latency if c is small
template <class Tiles>
struct split_sums_kernel
    : accesses<Tiles::partial_rows, int(Tiles::columns), access_for_sums<Tiles>()> {
  using tiles = Tiles;
  using base = accesses<tiles::partial_rows, int(tiles::columns), access_for_sums<tiles>()>;
  using base::each;
  static constexpr long workspace_bytes = tiles::workspace_bytes;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    base::for_access(block, [&](extent row, int column) {
      if (!tiles::rows_vary || row < tiles::end_row(a))
        tiles::template add_splits<each>(a, row, column);
    });
  }
};

/// The kernels of a product by `Plan`: the rows of a prologue if there is one, the tiles, and the
/// sum of the splits unless the tiles add them.
template <class P, int G,
          tile_plan Plan = plan_for(contraction<P, G>::shape, contraction<P, G>::format)>
constexpr auto lower_contraction() {
  using tiles = contraction_tiles<P, G, Plan>;
  using sums = split_sums_kernel<tiles>;
  constexpr bool makes_left = contraction<P, G>::makes_left,
                 needs_sums = tiles::split && !tiles::adds_splits;
  if constexpr (makes_left && needs_sums)
    return kernel_list<left_rows_kernel<P, G>, tiles, sums>{};
  else if constexpr (makes_left)
    return kernel_list<left_rows_kernel<P, G>, tiles>{};
  else if constexpr (needs_sums)
    return kernel_list<tiles, sums>{};
  else
    return kernel_list<tiles>{};
}

template <>
struct kernel_of<op_kind::matmul> {
  template <class P, int G>
  using list = decltype(lower_contraction<P, G>());
};
template <>
struct kernel_of<op_kind::matmul_input_gradient> : kernel_of<op_kind::matmul> {};
template <>
struct kernel_of<op_kind::matmul_weight_gradient> : kernel_of<op_kind::matmul> {};

}  // namespace pp::cuda
