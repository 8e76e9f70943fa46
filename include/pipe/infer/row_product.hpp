// SPDX-License-Identifier: BSL-1.0
//
// The products of a decoder's new rows, which find their matrix in memory: as the trainer has it,
// transposed as the table of a tied Embedding is, or narrow.
#pragma once

#include <pipe/backend/host/contraction_loops.hpp>
#include <pipe/backend/host/narrow_matrix.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/backend/host/row_kernels.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/base/config.hpp>

namespace pp::detail {

/// y = x w, or y = x w' for a table.
///
/// shape: x (rows, inner), w (inner, columns) or (columns, inner) -> y (rows, columns)
/// law:   the bits of the kernels of training with the same numbers in w, for any rows and parts
template <class T>
struct row_product {
  using extent = host::extent;

  host::row_kernels<T> const& kernels;
  host::narrow_matrix const& narrow;  ///< without data: w is in `weights`
  T const* weights;
  bool is_table;
  extent inner, columns;

  /// The alignment of parts of columns for this number of rows.
  extent unit(extent rows) const {
    return (is_narrow() ? host::narrow_columns : host::column_alignment<T>)*(rows == 1 ? 1 : 3);
  }
  /// Numbers of workspace for up to this number of rows.
  [[gnu::cold]] long workspace(extent rows) const {
    bool const transposes = is_table && !is_narrow();
    extent const n = transposes ? transposed_columns : columns;
    long most = 0;
    for (extent r = rows; r > 0; r = r >= packing_rows ? packing_rows - 1 : 0) {
      host::blocking const cut = blocking_of({r, n, inner});
      if (long const bytes = long(host::contraction_workspace<T>(n, inner, cut)); bytes > most)
        most = bytes;
    }
    return padded<T>(most / long(sizeof(T)) + 1) + (transposes ? transposed_columns * inner : 0);
  }

  /// The columns `own` of y. Training transposes a table once per step: here 64 rows of it at a
  /// time.
  [[gnu::cold]] void multiply(extent rows, host::part_range own, T const* x, T* y,
                              T* workspace) const {
    if (is_narrow()) return multiply_narrow(rows, own, x, y, workspace);
    if (!is_table)
      return multiply({rows, own.size(), inner}, x, weights + own.begin, columns, y + own.begin,
                      workspace);
    for (extent j = own.begin; j < own.end; j += transposed_columns) {
      extent const count = own.end - j < transposed_columns ? own.end - j : transposed_columns;
      kernels.attention.transpose(weights + j * inner, count, inner, inner, workspace,
                                  transposed_columns);
      multiply({rows, count, inner}, x, workspace, transposed_columns, y + j,
               workspace + transposed_columns * inner);
    }
  }

 private:
  /// The columns of a table that are transposed at a time.
  static constexpr extent transposed_columns = 64;
  /// Below this number of rows a matrix of T is read in place.
  static constexpr extent packing_rows = 4;

  bool is_narrow() const { return narrow.data != nullptr; }
  /// The blocking of a product: a panel of w is read once, into L2, for all rows, with the sums of
  /// about half a MiB beside it if the sum is cut.
  host::blocking blocking_of(product_shape const& shape) const {
    constexpr extent deepest = 768, panels = 8;
    extent const n = shape.columns, k = shape.inner, tile = kernels.attention.tiles.columns();
    if (!is_narrow() && shape.rows < packing_rows)
      return {shape.rows, n, host::even_depth(k, 256), false};
    return {shape.rows, k > deepest ? panels * tile : tile, host::even_depth(k, deepest), true};
  }
  /// One row is a matrix-vector product, limited by memory bandwidth, with a kernel of its own;
  /// more rows are the tiled product of training.
  ///
  /// shape: x (rows, k), w (k, n) with rows ldw apart -> y (rows, n)
  [[gnu::cold]] PIPE_ONE_COPY void multiply(product_shape const& shape, T const* x, T const* w,
                                            extent ldw, T* y, T* workspace) const {
    if (shape.rows == 1) return kernels.multiply(shape.columns, shape.inner, x, w, ldw, y);
    host::contraction_ends<T> to;
    to.c = y;
    to.ldc = columns;
    host::contract_tiles<T>(kernels.attention.tiles, shape, {x, inner, 1}, w, ldw, to, workspace,
                            blocking_of(shape));
  }
  /// The same for a narrow matrix, whose panels are widened for more than one row.
  [[gnu::cold]] void multiply_narrow(extent rows, host::part_range own, T const* x, T* y,
                                     T* workspace) const {
    host::narrow_kernels<T> const& of = kernels.narrow[int(narrow.format.type)];
    if (rows == 1) return of.multiply(narrow, own, x, y);
    product_shape const shape{rows, own.size(), inner};
    host::narrow_factor<T> factor{of, narrow, own.begin};
    host::contraction_ends<T> to;
    to.c = y + own.begin;
    to.ldc = columns;
    to.right = &factor;
    to.make_right = &host::narrow_factor<T>::right;
    host::contract_tiles<T>(kernels.attention.tiles, shape, {x, inner, 1}, nullptr, 0, to,
                            workspace, blocking_of(shape));
  }
};

}  // namespace pp::detail
