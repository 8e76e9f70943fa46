// SPDX-License-Identifier: BSL-1.0
//
// A slab of an operand's tile in the shared memory of a block. It is copied row by row in the
// layout of global memory, and read in the layout of tensor cores, both without bank conflicts in a
// warp. If the slab is not transposed, its rows have 64 bytes: two rows take 128 bytes, and the
// pieces of 16 bytes of each pair of rows are permuted, so that a column of eight rows has eight
// different banks. Rows of a transposed slab are padded: eight rows begin at eight different
// sixteenths of 128 bytes, or, where single floats are read, four rows at four quarters.
#pragma once

#include <pipe/backend/cuda/core/cp_async.hpp>
#include <pipe/backend/cuda/matmul/load_matrix.hpp>
#include <pipe/backend/cuda/matmul/matrix.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>

namespace pp::cuda {

/// One slab of an operand in shared memory: `Extent` rows of a or columns of b, `Depth` deep in k.
///
/// layout: rows of `columns` elements, `stride` apart, in the order of place(). Transposed: a row
/// of
///         the slab is one k, as for b, or for an a that is read transposed. Otherwise it is a row
///         of a, or a column of a b that is read transposed, and has 64 bytes.
template <class T, int Extent, int Depth, bool Transposed>
struct alignas(16) operand_slab {
  static constexpr int rows = Transposed ? Depth : Extent, columns = Transposed ? Extent : Depth;
  static constexpr int sixteenth = 16 / int(sizeof(T)), stride = columns + (Transposed ? 8 : 0);
  static_assert(Transposed || columns == 4 * sixteenth);
  T element[rows * stride];

  /// The index of an element.
  PIPE_HD static PIPE_INLINE int place(int row, int column) {
    if constexpr (Transposed)
      return row * stride + column;
    else
      return row * stride + (column / sixteenth ^ (row >> 1 & 3)) * sixteenth + column % sixteenth;
  }

  /// The source of an access: neighbouring elements of a row, or zeros if they are not present.
  struct piece {
    T const* at;
    bool is_present;
  };

  /// The division of the copy of a slab among threads, for a matrix with rows of `Columns`
  /// elements: `beside` threads copy `each` elements of a row side by side, at least 32 bytes
  /// together, then continue to the right; `down` rows are copied at once. So the addresses of a
  /// thread's pieces lie close together.
  template <int Columns, int Threads>
  struct copy_plan {
    static constexpr int each = access_width<T>(Columns), pieces = columns / each,
                         sector = 32 / (each * int(sizeof(T))),
                         most = Threads / rows > sector ? Threads / rows : sector,
                         beside = most < pieces ? most : pieces, down = Threads / beside,
                         right = beside * each;
    static_assert(columns % right == 0 && Threads % beside == 0 && rows % down == 0);
    static_assert(down % 8 == 0);  // rows at a distance of `down` have the same order

    /// The row and column of a thread's first piece. Eight threads with 16 bytes each write to
    /// different banks: if they have two rows of a transposed slab, these are four rows apart; if
    /// they have four rows of a slab that is not transposed, these are rows 0, 1, 4 and 5.
    PIPE_HD static PIPE_INLINE int row(int thread) {
      int const r = thread / beside, low = r % 8;
      return Transposed ? (beside == 4 ? r - low + low % 2 * 4 + low / 2 : r)
                        : (beside == 2 ? r - low + low % 2 + low / 2 % 2 * 4 + low / 4 * 2 : r);
    }
    PIPE_HD static PIPE_INLINE int column(int thread) { return thread % beside * each; }
  };

  /// A thread's first piece of the slab at (row, column) of a matrix (.., Columns). For the next
  /// slab down it is Columns * rows elements further, for the next slab along a row `columns`
  /// elements.
  template <int Columns, int Threads>
  PIPE_HD PIPE_INLINE static T const* first_of(int thread, T const* matrix, extent row,
                                               extent column) {
    using plan = copy_plan<Columns, Threads>;
    return matrix + (row + plan::row(thread)) * Columns + column + plan::column(thread);
  }

  /// Starts the asynchronous copy of the slab at (row, column) of a matrix; `from`: the thread's
  /// first piece. Elements beyond the end of the matrix are zeros, which add nothing; so are all
  /// elements if the slab is not `present`. Called in a phase.
  ///
  /// shape: matrix (Rows, Columns) -> element (rows, columns)
  template <extent Rows, int Columns, int Threads, class Block>
  PIPE_HD PIPE_INLINE void copy(Block& block, int thread, T const* from, extent row, extent column,
                                bool present) {
    using plan = copy_plan<Columns, Threads>;
    constexpr bool whole = Rows % rows == 0 && Columns % columns == 0;
    row += plan::row(thread), column += plan::column(thread);
    copy_pieces<plan, Threads>(block, thread, [&](int r, int c) {
      bool const inside = present && (whole || (row + r < Rows && column + c < Columns));
      return piece{from + extent(r) * Columns + c, inside};
    });
  }

  /// The same for a matrix that is in memory in pieces: find(r, c) is the piece r rows below the
  /// thread's first piece and c columns to the right.
  ///
  /// needs: Plan is a copy_plan; pieces are aligned
  template <class Plan, int Threads, class Block, class Find>
  PIPE_HD PIPE_INLINE void copy_pieces(Block& block, int thread, Find find) {
    int const first = place(Plan::row(thread), Plan::column(thread));
    auto const copy_piece = [&](int r, int c) {
      T* const to = element + (Transposed ? first + c : first ^ c) + r * stride;
      piece const from = find(r, c);
      if constexpr (Plan::each * sizeof(T) >= 4)
        copy_async<Plan::each* int(sizeof(T))>(block, to, from.at, from.is_present);
      else
        *to = from.is_present ? *from.at : T(0.0f);
    };
    if constexpr (rows * Plan::pieces <= 16 * Threads) {
      PIPE_UNROLL
      for (int r = 0; r < rows; r += Plan::down) {
        PIPE_UNROLL
        for (int c = 0; c < columns; c += Plan::right) copy_piece(r, c);
      }
    } else {  // no wide access fits these rows, and unrolled loops would take many registers
      for (int r = 0; r < rows; r += Plan::down)
        for (int c = 0; c < columns; c += Plan::right) copy_piece(r, c);
    }
  }

  /// Loads the left operand of one multiplication, in the layout of place_in_a: 16 rows from
  /// row(thread) on, tile<F>::inner deep from `depth` on.
  ///
  /// shape: element -> four registers per thread
  template <operand_format F, class Block, class Row, class Access>
  PIPE_HD PIPE_INLINE void load_left(Block& block, int depth, Row row, Access access) const {
    if constexpr (!Transposed)
      load_rows(block, depth, row, access);
    else if constexpr (sizeof(T) == 2)
      load_matrices<true>(
          block,
          [&](int thread) {
            int const lane = thread % warp_size;
            return element + (depth + lane % 8 + lane / 16 * 8) * stride + row(thread) +
                   lane / 8 % 2 * 8;
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

  /// The same if rows of the slab are rows of the left operand.
  template <class Block, class Row, class Access>
  PIPE_HD PIPE_INLINE void load_rows(Block& block, int depth, Row row, Access access) const {
    load_matrices<false>(
        block,
        [&](int thread) {
          int const lane = thread % warp_size, first = place(lane % 16, lane / 16 * sixteenth);
          return element + (Transposed ? first + depth : first ^ depth) + row(thread) * stride;
        },
        access);
  }

  /// Loads the right operands of two neighbouring multiplications, in the layout of place_in_b: 16
  /// columns from column(thread) on.
  ///
  /// shape: element -> four registers per thread, two for each multiplication
  template <operand_format F, class Block, class Column, class Access>
  PIPE_HD PIPE_INLINE void load_right(Block& block, int depth, Column column, Access access) const {
    if constexpr (!Transposed)
      load_columns(block, depth, column, access);
    else if constexpr (sizeof(T) == 2)
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
          to[i] =
              math::bits(element[(depth + p.row) * stride + column(thread) + i / 2 * 8 + p.column]);
        }
      });
  }

  /// The same if rows of the slab are columns of the right operands.
  template <class Block, class Column, class Access>
  PIPE_HD PIPE_INLINE void load_columns(Block& block, int depth, Column column,
                                        Access access) const {
    load_matrices<false>(
        block,
        [&](int thread) {
          int const lane = thread % warp_size,
                    first = place(lane % 8 + lane / 16 * 8, lane / 8 % 2 * sixteenth);
          return element + (Transposed ? first + depth : first ^ depth) + column(thread) * stride;
        },
        access);
  }
};

}  // namespace pp::cuda
