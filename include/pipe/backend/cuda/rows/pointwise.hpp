// SPDX-License-Identifier: BSL-1.0
//
// A chain of pointwise ops on its own: reads an element, runs the chain, writes what others read.
#pragma once

#include <pipe/backend/cuda/block/block.hpp>
#include <pipe/backend/cuda/block/kernel_list.hpp>
#include <pipe/backend/cuda/chain.hpp>

namespace pp::cuda {

/// The pointwise steps of group G, element by element.
///
/// shape: x (R, C), second operands (R, C), (C) or (T, C) -> every stored step (R, C)
/// work:  a thread has one access of a row
/// cost:  one pass over operands and results, bound by bytes
template <class P, int G>
struct pointwise_kernel {
  using T = typename P::element;
  using steps = chain<P, G, true>;
  static constexpr extent elements = extent(group_of<P, G>::value.rows) * P::samples * steps::width;
  static constexpr int threads = 256, each = access_width<T>(steps::width);
  static constexpr extent blocks = (elements + threads * each - 1) / (threads * each);
  using state = nothing;
  using shared = nothing;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    block.part([&](int thread, state&) {
      extent const at = (block.index() * threads + thread) * each;
      if (at >= elements) return;
      float v[each];
      load<each>(a.at<T const>(g.in[0]) + at, v);
      steps::template run<each>(a, at / steps::width, int(at % steps::width), v);
    });
  }
};

template <>
struct kernel_of<op_kind::pointwise> : one_kernel<pointwise_kernel> {};

}  // namespace pp::cuda
