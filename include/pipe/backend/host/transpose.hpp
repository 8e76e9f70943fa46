// SPDX-License-Identifier: BSL-1.0
//
// The transpose of a matrix: the transposed copy of a weight is made once per optimizer update, so
// that every backward contraction reads its right factor row-major. Squares are transposed in
// registers (per_isa/transpose.inl).
#pragma once

#include <pipe/backend/host/isa.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// The transpose of one square of `lanes` x `lanes` elements, in registers.
template <class T, class To = T>
using square_transposer = void (*)(T const* in, extent in_stride, To* out, extent out_stride);

/// The transpose of a matrix: out[c * out_stride + r] = in[r * in_stride + c], converted to To.
///
/// shape: in (rows, columns), row stride in_stride -> out (columns, rows), row stride out_stride
/// cost:  a copy, bound by bytes. Blocks are as wide and high as a cache line, so that lines are
///        read and written whole: at large power-of-two strides a line would otherwise be evicted
///        before its next element is read or written.
template <class T, class To = T>
PIPE_ONE_COPY void transpose_squares(square_transposer<T, To> square, extent lanes, T const* in,
                                     extent rows, extent columns, extent in_stride, To* out,
                                     extent out_stride) {
  constexpr extent side = widest_vector_bytes / sizeof(T);
  for (extent line_r = 0; line_r < rows; line_r += side)
    for (extent line_c = 0; line_c < columns; line_c += side)
      for (extent c0 = line_c; c0 < columns && c0 < line_c + side; c0 += lanes)
        for (extent r0 = line_r; r0 < rows && r0 < line_r + side; r0 += lanes) {
          T const* const from = in + r0 * in_stride + c0;
          To* const to = out + c0 * out_stride + r0;
          if (rows - r0 >= lanes && columns - c0 >= lanes) {
            square(from, in_stride, to, out_stride);
          } else {
            for (extent c = 0; c < columns - c0 && c < lanes; ++c)
              for (extent r = 0; r < rows - r0 && r < lanes; ++r)
                to[c * out_stride + r] = To(from[r * in_stride + c]);
          }
        }
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
