// SPDX-License-Identifier: BSL-1.0
//
// The transpose of a matrix: the transposed copy of a weight is made once per optimizer update, so
// that every backward contraction reads its right factor row-major. Squares are transposed in
// registers (per_isa/transpose.inl).
#pragma once

#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/backend/host/tiles.hpp>
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
///        before its next element is read or written. Rows of the output that have a few lines
///        are written one after the other.
template <class T, class To = T>
PIPE_ONE_COPY void transpose_squares(square_transposer<T, To> square, extent lanes, T const* in,
                                     extent rows, extent columns, extent in_stride, To* out,
                                     extent out_stride) {
  constexpr extent side = widest_vector_bytes / sizeof(T);
  bool const is_flat = rows <= 4 * side;
  extent const outer = is_flat ? columns : rows, inner = is_flat ? rows : columns;
  for (extent first = 0; first < outer; first += side)
    for (extent second = 0; second < inner; second += side) {
      extent const line_r = is_flat ? second : first, line_c = is_flat ? first : second;
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
}

/// The transpose of rows `own` of a matrix, in panels as a product's tiles read them: column r of
/// the transpose is in a panel (columns, a tile's columns), and panels follow each other.
///
/// shape: in (rows, columns) -> out (rows * columns)
/// needs: rows, and the bounds of `own`, are multiples of the widest vector
template <class T>
PIPE_ONE_COPY void transpose_to_panels(square_transposer<T> square, tile_set<T> const& tiles,
                                       T const* in, part_range own, extent rows, extent columns,
                                       T* out) {
  for (extent j = 0, width = 0; j < own.end; j += width) {
    width = tiles.next_vectors(tiles.vectors_in(rows - j)) * tiles.lanes;
    extent const begin = j > own.begin ? j : own.begin,
                 end = j + width < own.end ? j + width : own.end;
    if (begin < end)
      transpose_squares<T>(square, tiles.lanes, in + begin * columns, end - begin, columns, columns,
                           out + j * columns + (begin - j), width);
  }
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
