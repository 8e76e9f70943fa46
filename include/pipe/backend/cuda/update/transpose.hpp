// SPDX-License-Identifier: BSL-1.0
//
// Transposed copies of matrices, one launch for all of a rank's. A block takes a square of 64 x 64
// elements through shared memory: it reads along rows and writes along columns of the matrix, 32
// neighbouring elements at a time either way. A row of the square in shared memory is an odd number
// of words, so that the 32 threads of a warp, going down a column, read from 32 banks.
#pragma once

#include <pipe/backend/cuda/block/block.hpp>

namespace pp::cuda {

inline constexpr int transposed_side = 64;

/// The square of a matrix from (row, column) on; the matrix is dense and [rows, columns] at from.
struct transposed_square {
  extent from = 0, to = 0;  ///< where matrix and copy begin, in elements
  int rows = 0, columns = 0;
  int row = 0, column = 0;
};

/// append(square) for all of a matrix.
template <class Append>
void cut_into_squares(extent from, extent to, int rows, int columns, Append append) {
  for (int row = 0; row < rows; row += transposed_side)
    for (int column = 0; column < columns; column += transposed_side)
      append(transposed_square{from, to, rows, columns, row, column});
}

/// Transposed copies: to[c * rows + r] = from[r * columns + c].
///
/// shape: from (rows, columns) -> to (columns, rows), for each matrix of the list; a block per
///        square of 64 x 64
/// cost:  a copy, bound by bytes: both sides are accessed along rows, by way of shared memory
template <class T>
struct transpose_kernel {
  struct arguments {
    T const* from = nullptr;
    T* to = nullptr;
    transposed_square const* list = nullptr;  ///< in the device's memory
    extent size = 0;
  };
  static constexpr int threads = 256, side = transposed_side;
  static extent blocks(arguments const& a) { return a.size; }
  using state = nothing;
  struct shared {
    T square[side][side + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    transposed_square const s = a.list[block.index()];
    block.phase([&](int thread, state&) {
      PIPE_UNROLL
      for (int i = thread; i < side * side; i += threads) {
        int const r = i / side, c = i % side;
        if (s.row + r < s.rows && s.column + c < s.columns)
          block.shared().square[r][c] =
              a.from[s.from + extent(s.row + r) * s.columns + s.column + c];
      }
    });
    block.part([&](int thread, state&) {
      PIPE_UNROLL
      for (int i = thread; i < side * side; i += threads) {
        int const c = i / side, r = i % side;
        if (s.row + r < s.rows && s.column + c < s.columns)
          a.to[s.to + extent(s.column + c) * s.rows + s.row + r] = block.shared().square[r][c];
      }
    });
  }
};

}  // namespace pp::cuda
