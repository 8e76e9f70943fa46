// SPDX-License-Identifier: BSL-1.0
//
// Matrix products: a matmul, and the gradients of its input and of its weight. All three are c = a
// b with b[K, N] in rows; a of a weight's gradient is read transposed, and so is b where it is the
// transpose of a parameter.
//
// Chains before a matmul run as a kernel of their own that writes the rows of a: each row is read
// by as many blocks as c has tiles in a row, and none of them should compute it again.
//
// law: an element of c is summed in an order that depends on M, N, K and the product's format only
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/matmul/contraction_tile.hpp>

namespace pp::cuda {

/// The rows of a matmul's left factor, made by its prologue before the product.
///
/// shape: x (M, K) -> a (M, K), in the workspace or where the chain's end is stored
/// work:  a thread has one access of a row
/// cost:  one pass over x and a, bound by bytes; saves the tiles of a row from repeating the chain
template <class P, int G>
struct left_rows_kernel : row_accesses<P, G, chain<P, G, false>::width> {
  using T = typename P::element;
  using product = contraction<P, G>;
  using steps = chain<P, G, false>;
  using base = row_accesses<P, G, steps::width>;
  using base::each;
  static constexpr long workspace_bytes = product::left_bytes;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    base::for_access(block, [&](extent row, int column) {
      extent const at = row * steps::width + column;
      float v[each];
      load<each>(a.at<T const>(g.in[0]) + at, v);
      steps::template run<each>(a, row, column, v);
      if constexpr (product::stored < 0) save<each>(product::made_left(a) + at, v);
    });
  }
};

/// Elements of an access to c where splits are added: fewer than the widest while that leaves
/// multiprocessors without a block.
template <class Tiles>
constexpr int access_for_sums() {
  constexpr extent elements = Tiles::partial_rows * Tiles::columns;
  int each = Tiles::product::each;
  while (each > 1 && elements < extent(132) * 256 * each) each /= 2;
  return each;
}

/// The end of a product whose sum over k was split into more parts than a block of
/// contraction_tiles adds: c = epilogue(sum over s of sums[s]).
///
/// shape: sums (splits, M, N), in the workspace -> c (M, N)
/// law:   as contraction_tiles adds them
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
    base::for_access(
        block, [&](extent row, int column) { tiles::template add_splits<each>(a, row, column); });
  }
};

/// The kernels of a product cut as planned: the prologue's rows if it has any, the tiles, and the
/// sum of the splits where the tiles do not add them.
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
