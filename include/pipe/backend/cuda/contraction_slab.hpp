// SPDX-License-Identifier: BSL-1.0
//
// What a block of a matrix product holds of an operand: a slab of its tile, in shared memory. It is copied row by row as the operand lies
// in global memory, and read as tensor cores want it. Rows are longer than what they hold, so that neither way two threads of a warp meet
// in a bank: eight rows begin at eight different sixteenths of 128 bytes, or, where single floats are read, four rows at four quarters.
#pragma once

#include <pipe/backend/cuda/copy.hpp>
#include <pipe/backend/cuda/load_matrix.hpp>
#include <pipe/backend/cuda/matrix.hpp>
#include <pipe/backend/cuda/vectors.hpp>

namespace pp::cuda {

/// `Extent` rows of a or columns of b, times `Depth` k. Turned: a row in memory is one k, as in b, or in an a that is read transposed.
template <class T, int Extent, int Depth, bool Turned>
struct alignas(16) operand_slab {
  static constexpr int rows = Turned ? Depth : Extent, columns = Turned ? Extent : Depth;
  static constexpr int sixteenth = 16 / int(sizeof(T)), stride = columns + (Turned ? 8 : sixteenth);
  T element[rows * stride];

  /// Starts to copy what begins at (row, column) of a matrix [Rows, Columns]; beyond its end there are zeros. Called in a phase.
  template <extent Rows, int Columns, int Threads, class Block>
  PIPE_HD PIPE_INLINE void copy(Block& block, int thread, T const* matrix, extent row, extent column) {
    constexpr int each = access_width<T>(Columns), pieces = columns / each, passes = rows * pieces / Threads;
    static_assert(columns % each == 0 && rows * pieces % Threads == 0);
    constexpr bool whole = Rows % rows == 0 && Columns % columns == 0;
    PIPE_UNROLL
    for (int pass = 0; pass < passes; ++pass) {
      int const piece = thread + pass * Threads, r = piece / pieces, c = piece % pieces * each;
      bool const present = whole || (row + r < Rows && column + c < Columns);
      T const* const from = present ? matrix + (row + r) * Columns + column + c : matrix;
      T* const to = element + r * stride + c;
      if constexpr (each * sizeof(T) >= 4)
        copy_async<each* int(sizeof(T))>(block, to, from, present);
      else
        *to = present ? *from : T(0.0f);
    }
  }

  /// Four registers of the left operand: 16 rows from row(thread) on, one multiplication deep from `depth` on.
  template <operand_format F, class Block, class Row, class Access>
  PIPE_HD PIPE_INLINE void load_left(Block& block, int depth, Row row, Access access) const {
    if constexpr (!Turned)
      load_matrices<false>(
          block,
          [&](int thread) {
            int const lane = thread % warp_size;
            return element + (row(thread) + lane % 16) * stride + depth + lane / 16 * sixteenth;
          },
          access);
    else if constexpr (sizeof(T) == 2)
      load_matrices<true>(
          block,
          [&](int thread) {
            int const lane = thread % warp_size;
            return element + (depth + lane % 8 + lane / 16 * 8) * stride + row(thread) + lane / 8 % 2 * 8;
          },
          access);
    else
      block.part([&](int thread, auto& mine) {
        unsigned* const to = access(mine);
        PIPE_UNROLL
        for (int i = 0; i < 4; ++i) {
          tile_place const p = place_in_a<F>(thread % warp_size, i);
          to[i] = math::bits(element[(depth + p.column) * stride + row(thread) + p.row]);
        }
      });
  }

  /// Two registers of the right operand for each of two neighbouring tiles: 16 columns from column(thread) on.
  template <operand_format F, class Block, class Column, class Access>
  PIPE_HD PIPE_INLINE void load_right(Block& block, int depth, Column column, Access access) const {
    static_assert(Turned);
    if constexpr (sizeof(T) == 2)
      load_matrices<true>(
          block,
          [&](int thread) {
            int const lane = thread % warp_size;
            return element + (depth + lane % 16) * stride + column(thread) + lane / 16 * 8;
          },
          access);
    else
      block.part([&](int thread, auto& mine) {
        unsigned* const to = access(mine);
        PIPE_UNROLL
        for (int i = 0; i < 4; ++i) {
          tile_place const p = place_in_b<F>(thread % warp_size, i % 2);
          to[i] = math::bits(element[(depth + p.row) * stride + column(thread) + i / 2 * 8 + p.column]);
        }
      });
  }
};

}  // namespace pp::cuda
