// SPDX-License-Identifier: BSL-1.0
//
// The choice between the library's own kernels and cuBLASLt for each matrix product of a pipeline.
//
// contraction_tiles multiplies by mma.sync, at about 60 % of the rate of Hopper's tensor cores with
// wgmma, and runs any chain of pointwise ops on finished rows. cuBLASLt is at 80 % for large
// products, and needs a pass over memory for ops that it cannot take.
//
// law: the choice depends on a product's shape and format alone, not on the ops around it, which
//      differ with cuts and recomputation: so cuts and recomputation change no bit
#pragma once

#include <initializer_list>

#include <pipe/backend/cuda/matmul/contraction_group.hpp>
#include <pipe/backend/cuda/matmul/matmul_option.hpp>

namespace pp::cuda {

/// An estimate of the clocks of cuBLASLt on an H200, for comparison with `clocks` of tile_plans.
/// The estimate assumes that cuBLASLt chooses among tiles and splits as plan_for does; the tiles
/// are some of those in cublasLt.h. A quarter of a pass over c is added: of a Transformer's
/// products that are not gradients of weights, one in four is followed by ops that a call cannot
/// take, of an activation.
///
/// needs: the format is not fp32
constexpr extent blas_clocks(product_shape const& s, product_format format, bool makes_weight) {
  constexpr extent multiprocessors = 132, fill = 2500, launch = 3500, bytes_per_clock = 2000;
  extent const multiplied = format == product_format::tf32 ? 750 : 1500;
  // Efficiency: in percent of the largest tiles, which read each operand least often. A product of
  // few tiles takes as long as the tiles of the busiest multiprocessor: with 768 columns and 8192
  // rows, 192 tiles of 128 x 256 take two rounds, as 256 tiles of 128 x 192 do.
  struct tile {
    extent rows, columns, efficiency;
  };
  extent least = -1;
  for (tile const t : {tile{128, 256, 100}, tile{256, 128, 100}, tile{192, 192, 100},
                       tile{128, 192, 97}, tile{192, 128, 97}, tile{128, 160, 94},
                       tile{160, 128, 94}, tile{128, 128, 90}, tile{64, 64, 45}}) {
    extent const tiles = (s.rows + t.rows - 1) / t.rows * ((s.columns + t.columns - 1) / t.columns);
    for (extent splits = 1; splits <= 32 && (splits == 1 || s.inner / splits >= 128); splits *= 2) {
      extent const busiest = (tiles * splits + multiprocessors - 1) / multiprocessors;
      extent const sums = t.rows * t.columns * ((s.inner + splits - 1) / splits);
      extent const adding =
          splits > 1 ? launch + splits * s.rows * s.columns * 8 / bytes_per_clock : 0;
      extent const needed = busiest * (fill + sums * 100 / (multiplied * t.efficiency)) + adding;
      if (least < 0 || needed < least) least = needed;
    }
  }
  if (makes_weight) return least;
  return least + (launch + 2 * s.rows * s.columns * bytes_of(format) / bytes_per_clock) / 4;
}

/// Whether cuBLASLt is expected to be faster than the library's own kernels at a product, by an
/// eighth, since estimates are no better than that; makes_weight: for the gradient of a weight. In
/// fp32 cuBLASLt does not use tensor cores, and is not faster. The library's own kernels also take
/// products whose rows are not whole accesses of 16 bytes, and narrow layers, which may run in one
/// kernel: see narrow_mlp/narrow_mlp.hpp.
constexpr bool is_for_cublaslt(product_shape const& s, product_format format, bool makes_weight) {
  if (format == product_format::fp32) return false;
  if (s.columns <= narrow_width && (makes_weight ? s.rows : s.inner) <= narrow_width) return false;
  int const bytes = bytes_of(format);
  if (s.columns * bytes % 16 != 0 || (makes_weight ? s.rows : s.inner) * bytes % 16 != 0)
    return false;
  extent const blas = blas_clocks(s, format, makes_weight);
  return blas + blas / 8 < clocks(s, plan_for(s, format), format);
}

/// The implementation of group G of P where cuBLASLt is installed: `own`, `cublaslt`, `wgmma`, or
/// `timed`, the faster of the first two.
template <class P, int G, detail::product_policy Policy>
constexpr detail::product_policy policy_of() {
  if constexpr (!detail::is_contraction(group_of<P, G>::value.anchor)) {
    return detail::product_policy::own;
  } else if constexpr (Policy == detail::product_policy::planned) {
    using product = contraction<P, G>;
    return is_for_cublaslt(product::shape, product::format, product::makes_weight)
               ? detail::product_policy::cublaslt
               : detail::product_policy::own;
  } else {
    return Policy;
  }
}

}  // namespace pp::cuda
