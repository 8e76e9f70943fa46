// SPDX-License-Identifier: BSL-1.0
//
// Gated units: a formula of one half of a row times the other half. A thread has the same piece of
// both halves.
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/chain.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>

#ifdef __CUDACC__  // nvcc only warns of a user-defined formula that is for the host alone, and
                   // calls nothing
#pragma nv_diagnostic push
#pragma nv_diag_error 20011, 20013, 20014, 20015
#endif

namespace pp::cuda {

/// Base of the kernels of this file, for rows of two halves of `half` elements; each thread has the
/// same piece of both halves.
template <class P, int G, int Half>
struct half_rows : row_accesses<P, G, Half> {
  using T = typename P::element;
  using layer = detail::leaf_at<group_of<P, G>::value.leaf, typename P::leaves>;
  using formula = typename layer::formula;
  static constexpr int half = Half, activated = layer::activates_first ? 0 : half,
                       plain = half - activated;
  using base = row_accesses<P, G, half>;
  using base::each;

  /// Calls f(row, column, activated piece, plain piece) for the thread's pieces of x, which is in
  /// operand `index`.
  template <class Block, class F>
  PIPE_HD PIPE_INLINE static void for_piece(Block& block, arguments const& a, int index, F f) {
    base::for_access(block, a, [&](extent row, int column) {
      T const* const x = a.at<T const>(index) + row * 2 * half + column;
      float u[each], z[each];
      load<each>(x + activated, u);
      load<each>(x + plain, z);
      f(row, column, u, z);
    });
  }
};

/// y = f(activated half) * plain half.
///
/// shape:  x (R, 2 C) -> y (R, C)
/// cost:   one pass over x and y, bound by bytes
/// source: Shazeer, GLU Variants Improve Transformer, 2020
template <class P, int G>
struct gate_kernel : half_rows<P, G, group_of<P, G>::value.columns> {
  using base = half_rows<P, G, group_of<P, G>::value.columns>;
  using base::each;
  using typename base::formula;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr int x = group_of<P, G>::value.in[0];
    base::for_piece(block, a, x, [&](extent row, int column, float(&u)[each], float(&z)[each]) {
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) u[i] = formula::forward(u[i]) * z[i];
      finish<P, G, each>(a, row, column, u);
    });
  }
};

/// d activated = dy * plain * f'(activated), d plain = dy * f(activated); f is recomputed.
///
/// shape: dy (R, C), x (R, 2 C) -> dx (R, 2 C)
/// cost:  one pass over dy, x and dx, bound by bytes
template <class P, int G>
struct gate_gradient_kernel : half_rows<P, G, group_of<P, G>::value.columns / 2> {
  using base = half_rows<P, G, group_of<P, G>::value.columns / 2>;
  using base::each, base::half, base::activated, base::plain;
  using typename base::T, typename base::formula;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr int in = group_of<P, G>::value.in[0], x = group_of<P, G>::value.in[1];
    base::for_piece(block, a, x, [&](extent row, int column, float(&u)[each], float(&z)[each]) {
      float dy[each];
      load<each>(a.at<T const>(in) + row * half + column, dy);
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) {
        float const f = formula::forward(u[i]);
        u[i] = dy[i] * z[i] * formula::derivative(formula::derivative_reads_output ? f : u[i]);
        z[i] = dy[i] * f;
      }
      finish<P, G, each>(a, row, column + activated, u);
      finish<P, G, each>(a, row, column + plain, z);
    });
  }
};

template <>
struct kernel_of<op_kind::gate> : one_kernel<gate_kernel> {};

template <>
struct kernel_of<op_kind::gate_gradient> : one_kernel<gate_gradient_kernel> {};

}  // namespace pp::cuda

#ifdef __CUDACC__
#pragma nv_diagnostic pop
#endif
