// SPDX-License-Identifier: BSL-1.0
//
// Rotary positions: queries and keys are rotated by the angles of their positions before a kernel
// of attention, which would otherwise rotate keys again for every block of queries; gradients are
// rotated back here if the gradient's kernel cannot rotate them in registers.
#pragma once

#include <pipe/backend/cuda/attention/geometry.hpp>
#include <pipe/backend/cuda/core/accesses.hpp>

namespace pp::cuda {

/// Rotary position embedding: each pair (x1, x2) of a head's halves becomes (x1 cos - x2 sin, x2
/// cos + x1 sin), by the angles of its position; if Back by the negative angles, which is the
/// gradient.
///
/// shape:  x (B, T, (H + 2 KV) * d), rotation (T, d): d / 2 cosines, d / 2 sines -> workspace (B,
///         T, (H + KV) * d); Back: in place in the matrix of gradients
/// work:   a thread has one access of each of the two halves
/// cost:   one pass over queries and keys, bound by bytes
/// source: Su et al., RoFormer, 2021; the pairs (c, c + d / 2) as in Hugging Face's Llama
template <class P, int G, bool Back>
struct attention_rope
    : accesses<launch_rows<P, G>::planned,
               (attention_geometry<P, G>::heads + attention_geometry<P, G>::key_heads) *
                   (attention_geometry<P, G>::head_size / 2),
               access_width<typename P::element>(attention_geometry<P, G>::head_size / 2)> {
  using shape = attention_geometry<P, G>;
  using T = typename P::element;
  static constexpr int half = shape::head_size / 2, each = access_width<T>(half);
  static constexpr long workspace_bytes = shape::workspace_bytes;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    extent const end = launch_rows<P, G>::end(a);
    attention_rope::for_access(block, [&](extent row, int at) {
      if (launch_rows<P, G>::vary && row >= end) return;
      int const column = at % half, head = at / half;
      float const* const table = a.at<float const>(shape::rotation_index) +
                                 launch_rows<P, G>::place_of(a, row).position * shape::head_size +
                                 column;
      T const* from = nullptr;
      T* to = nullptr;
      if constexpr (Back) {
        from = to = a.at<T>(g.out[0]) + row * shape::fused + head * shape::head_size + column;
      } else {
        from = a.at<T const>(g.in[shape::is_gradient ? 1 : 0]) + row * shape::fused +
               head * shape::head_size + column;
        to = shape::rotated(a) + row * shape::rotated_width + head * shape::head_size + column;
      }
      float low[each], high[each], cosine[each], sine[each];
      load<each>(from, low);
      load<each>(from + half, high);
      load<each>(table, cosine);
      load<each>(table + half, sine);
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) {
        float const s = Back ? -sine[i] : sine[i], x = low[i] * cosine[i] - high[i] * s;
        high[i] = high[i] * cosine[i] + low[i] * s;
        low[i] = x;
      }
      save<each>(to, low);
      save<each>(to + half, high);
    });
  }
};

}  // namespace pp::cuda
