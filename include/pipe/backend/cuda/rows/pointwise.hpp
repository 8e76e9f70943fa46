// SPDX-License-Identifier: BSL-1.0
//
// A chain of pointwise ops as a kernel of its own: reads an element, runs the chain, writes the
// stored ops.
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/chain.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>

namespace pp::cuda {

/// The pointwise ops of group G, element by element.
///
/// shape: x (R, C), second operands (R, C), (C) or (T, C) -> every stored op (R, C)
/// work:  a thread has one access of a row
/// cost:  one pass over operands and results, bound by bytes
template <class P, int G>
struct pointwise_kernel : row_accesses<P, G, chain<P, G, true>::width> {
  using T = typename P::element;
  using ops = chain<P, G, true>;
  using base = row_accesses<P, G, ops::width>;
  using base::each;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    base::for_access(block, a, [&](extent row, int column) {
      float v[each];
      load<each>(a.at<T const>(g.in[0]) + row * ops::width + column, v);
      ops::template run<each>(a, row, column, v);
    });
  }
};

template <>
struct kernel_of<op_kind::pointwise> : one_kernel<pointwise_kernel> {};

}  // namespace pp::cuda
