// SPDX-License-Identifier: BSL-1.0
//
// The choice between our own kernels and cuBLASLt for each matrix product of a pipeline.
//
// Our tiles multiply by mma.sync, which reaches some 60 % of what Hopper's tensor cores do for
// wgmma, but finish a row with any chain of steps. A library is at 80 % for large products and
// needs a pass over memory for steps that it cannot take.
//
// law: a plan depends on a product's shape and format alone, not on the steps around it, which
//      differ with cuts and recomputation: so these change no bit of any result
#pragma once

#include <initializer_list>

#include <pipe/backend/cuda/matmul/contraction_group.hpp>
#include <pipe/backend/cuda/matmul/matmul_option.hpp>

namespace pp::cuda {

/// About how many clocks cuBLASLt takes on an H200, to be compared with `clocks` of our own plans.
/// It is taken to choose among tiles and splits as we do; tiles are some of those that cublasLt.h
/// enumerates. A quarter of a pass over c is counted: of a Transformer's products that make values,
/// one in four is followed by steps that a call cannot take, those of an activation.
///
/// needs: the format is not fp32
constexpr extent blas_clocks(product_shape const& s, product_format format, bool makes_weight) {
  constexpr extent multiprocessors = 132, fill = 2500, launch = 3500, bytes_per_clock = 2000;
  extent const multiplied = format == product_format::tf32 ? 750 : 1500;
  // Efficiency: percent of what the largest tiles reach, which read each operand least often. A
  // product of few tiles is decided by how many the busiest multiprocessor has: with 768 columns
  // and 8192 rows, 192 of 128 x 256 are two turns as 256 of 128 x 192 are.
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

/// Whether cuBLASLt is expected to be faster than our own kernels at a product, by an eighth, as
/// estimates are no better; `makes_weight`: of a weight's gradient. It is not in fp32, which it
/// leaves to ordinary cores; rows that are not whole accesses of 16 bytes are left to our own, and
/// so are narrow layers, which may be a part of one kernel: see narrow_runs.hpp.
constexpr bool is_for_cublaslt(product_shape const& s, product_format format, bool makes_weight) {
  if (format == product_format::fp32) return false;
  if (s.columns <= narrow_width && (makes_weight ? s.rows : s.inner) <= narrow_width) return false;
  int const bytes = bytes_of(format);
  if (s.columns * bytes % 16 != 0 || (makes_weight ? s.rows : s.inner) * bytes % 16 != 0)
    return false;
  extent const blas = blas_clocks(s, format, makes_weight);
  return blas + blas / 8 < clocks(s, plan_for(s, format), format);
}

/// The implementation of group G of P, if cuBLASLt is there: `own`, `cublaslt`, or `timed`: the
/// faster one.
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
