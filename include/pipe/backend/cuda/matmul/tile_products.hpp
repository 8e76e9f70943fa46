// SPDX-License-Identifier: BSL-1.0
//
// Products of matrices in shared memory on tensor cores. Each warp computes 16 or 32 rows of a
// result, which stays in registers: the products of the rows of two matrices, then the product of
// this result with a third matrix, so that the result in between is never in memory. With 32 rows
// (Tall = 2) each load of the right operand is used twice, since loads of shared memory limit the
// speed as much as tensor cores do.
//
// A float is multiplied as two tf32 numbers, x = high + rest, in three products: the error is 2^-21
// of a factor. In the registers of sums, a thread has two neighbouring columns; as a left operand
// it needs two columns that are 4 apart. The sum over columns may run in any order, so the
// neighbouring columns take the place of these two, and the rows of the right operand are loaded in
// the same order.
#pragma once

#include <pipe/backend/cuda/core/vectors.hpp>
#include <pipe/backend/cuda/matmul/matrix.hpp>
#include <pipe/backend/cuda/matmul/load_matrix.hpp>
#include <pipe/base/half.hpp>

namespace pp::cuda {

template <class T>
inline constexpr operand_format format_of = operand_format::tf32;
template <>
inline constexpr operand_format format_of<bf16> = operand_format::bf16;
template <>
inline constexpr operand_format format_of<fp16> = operand_format::fp16;

/// Elements from a row to the next of a matrix in shared memory; columns are a multiple of 16. The
/// pitch is an odd multiple of 16 bytes, so that eight rows lie in different banks.
template <class T>
PIPE_HD constexpr int pitch_of(int columns) {
  return columns + 16 / int(sizeof(T));
}

/// A thread's operands of a multiplication: of 16 * Tall rows of the left operand, and of 16
/// columns of the right operand. The state of a body that multiplies has them as a member
/// `operands`, and sums as float[Tall * columns / 8][4].
template <class T, int Tall>
struct operand_registers {
  static constexpr int parts = format_of<T> == operand_format::tf32 ? 2 : 1;
  unsigned left[Tall][parts][4], right[parts][4];
};

/// The row, in a block, of a thread's sums 2 * (r % 2) and 2 * (r % 2) + 1 in tiles number r / 2
/// from above.
template <int Tall>
PIPE_HD PIPE_INLINE int row_of_sums(int thread, int r) {
  return (thread / warp_size * Tall + r / 2) * 16 + place_in_c(thread % warp_size, r % 2 * 2).row;
}

/// x as a sum of two numbers, high + rest. Tensor cores read all of `high`, and of `rest` all but
/// the lowest bits. NaN and infinity give NaN.
PIPE_HD PIPE_INLINE void split(float x, unsigned& high, unsigned& rest) {
  high = (math::bits(x) + 0x1000u) & 0xffffe000u;
  rest = math::bits(x - math::from_bits(high));
}

/// Loads columns [k, k + depth of a tile) of a warp's rows, from row 16 * Tall * warp on, as the
/// left operand.
template <int Tall, int Pitch, class T, class Block>
PIPE_HD PIPE_INLINE void load_left(Block& block, T const* from, int k) {
  using state = typename Block::state;
  PIPE_UNROLL
  for (int m = 0; m < Tall; ++m)
    if constexpr (format_of<T> == operand_format::tf32)
      block.part([&](int thread, state& mine) {
        PIPE_UNROLL
        for (int i = 0; i < 4; ++i) {
          tile_place const p = place_in_a<operand_format::tf32>(thread % warp_size, i);
          int const row = (thread / warp_size * Tall + m) * 16 + p.row;
          split(from[row * Pitch + k + p.column], mine.operands.left[m][0][i],
                mine.operands.left[m][1][i]);
        }
      });
    else
      load_matrices<false>(
          block,
          [&](int thread) {
            int const row = (thread / warp_size * Tall + m) * 16 + thread % 16;
            return from + row * Pitch + k + thread % warp_size / 16 * 8;
          },
          [&](state& mine) { return mine.operands.left[m][0]; });
}

/// right[k, n] = from[n, k]: the depth of a tile, in columns from k on, of 16 rows from n on.
template <int Pitch, class T, class Block>
PIPE_HD PIPE_INLINE void load_right_transposed(Block& block, T const* from, int k, int n) {
  using state = typename Block::state;
  if constexpr (format_of<T> == operand_format::tf32)
    block.part([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int i = 0; i < 4; ++i) {
        tile_place const p = place_in_b<operand_format::tf32>(thread % warp_size, i % 2);
        split(from[(n + i / 2 * 8 + p.column) * Pitch + k + p.row], mine.operands.right[0][i],
              mine.operands.right[1][i]);
      }
    });
  else
    load_matrices<false>(
        block,
        [&](int thread) {
          int const lane = thread % warp_size;
          return from + (n + lane % 8 + lane / 16 * 8) * Pitch + k + lane / 8 % 2 * 8;
        },
        [](state& mine) { return mine.operands.right[0]; });
}

/// right[k, n] = from[k, n]: the depth of a tile, in rows from k on, and 16 columns from n on.
/// Floats are in the order of left_of_sums.
template <int Pitch, class T, class Block>
PIPE_HD PIPE_INLINE void load_right(Block& block, T const* from, int k, int n) {
  using state = typename Block::state;
  if constexpr (format_of<T> == operand_format::tf32)
    block.part([&](int thread, state& mine) {
      int const lane = thread % warp_size;
      PIPE_UNROLL
      for (int i = 0; i < 4; ++i)
        split(from[(k + lane % 4 * 2 + i % 2) * Pitch + n + i / 2 * 8 + lane / 4],
              mine.operands.right[0][i], mine.operands.right[1][i]);
    });
  else
    load_matrices<true>(
        block,
        [&](int thread) {
          return from + (k + thread % 16) * Pitch + n + thread % warp_size / 16 * 8;
        },
        [](state& mine) { return mine.operands.right[0]; });
}

/// The sums of a column of tiles (of two columns if a register holds two elements) as the left
/// operand of one multiplication.
template <int Tall, int Columns, class T, class Block, class Sums>
PIPE_HD PIPE_INLINE void left_of_sums(Block& block, Sums sums) {
  block.part([&](int, typename Block::state& mine) {
    PIPE_UNROLL
    for (int m = 0; m < Tall; ++m) {
      float(*const c)[4] = sums(mine) + m * (Columns / 8);
      PIPE_UNROLL
      for (int i = 0; i < 4; ++i)
        if constexpr (format_of<T> == operand_format::tf32)
          split(c[0][i % 2 * 2 + i / 2], mine.operands.left[m][0][i], mine.operands.left[m][1][i]);
        else
          mine.operands.left[m][0][i] = pack<T>(c[i / 2][i % 2 * 2], c[i / 2][i % 2 * 2 + 1]);
    }
  });
}

/// In each row of tiles, two tiles of sums += left operand * right operand.
template <int Tall, int Columns, class T, class Block, class Sums>
PIPE_HD PIPE_INLINE void multiply_operands(Block& block, Sums sums) {
  constexpr int products = operand_registers<T, Tall>::parts == 2 ? 3 : 1;
  PIPE_UNROLL
  for (int product = products - 1; product >= 0; --product)  // small products first
    PIPE_UNROLL
  for (int j = 0; j < 2 * Tall; ++j)
    multiply_add<format_of<T>>(block, [&](typename Block::state& mine) {
      return tile_operands{sums(mine)[j / 2 * (Columns / 8) + j % 2],
                           mine.operands.left[j / 2][product == 2],
                           mine.operands.right[product == 1] + 2 * (j % 2)};
    });
}

/// sums = left right^T of two matrices in shared memory, each warp with 16 * Tall rows of `left`.
///
/// shape: left (16 * Tall * warps, Depth), right (Columns, Depth), row pitch pitch_of(Depth) ->
///        sums(state): float[Tall * Columns / 8][4], spread by place_in_c, upper tiles first
/// law:   products are added over ascending Depth
/// needs: called between phases; Depth and Columns are multiples of 16
template <int Tall, int Depth, int Columns, class T, class Block, class Sums>
PIPE_HD PIPE_INLINE void multiply_rows(Block& block, T const* left, T const* right, Sums sums) {
  static_assert(Depth % 16 == 0 && Columns % 16 == 0);
  constexpr int pitch = pitch_of<T>(Depth), inner = tile<format_of<T>>::inner;
  block.part([&](int, typename Block::state& mine) {
    PIPE_UNROLL
    for (int j = 0; j < Tall * Columns / 8; ++j) {
      PIPE_UNROLL
      for (int i = 0; i < 4; ++i) sums(mine)[j][i] = 0;
    }
  });
  PIPE_UNROLL
  for (int k = 0; k < Depth; k += inner) {
    load_left<Tall, pitch>(block, left, k);
    PIPE_UNROLL
    for (int n = 0; n < Columns; n += 16) {
      load_right_transposed<pitch>(block, right, k, n);
      multiply_operands<Tall, Columns, T>(
          block, [&](typename Block::state& mine) { return sums(mine) + n / 8; });
    }
  }
}

/// sums += left right, where `left` are the sums of another product, still in registers.
///
/// shape: left (16 * Tall rows per warp, Depth), right (Depth, Columns) in shared memory, row pitch
///        pitch_of(Columns) -> sums as in multiply_rows
/// needs: called between phases; Depth and Columns are multiples of 16
template <int Tall, int Depth, int Columns, class T, class Block, class Left, class Sums>
PIPE_HD PIPE_INLINE void multiply_sums(Block& block, Left left, T const* right, Sums sums) {
  static_assert(Depth % 16 == 0 && Columns % 16 == 0);
  constexpr int pitch = pitch_of<T>(Columns), inner = tile<format_of<T>>::inner;
  PIPE_UNROLL
  for (int k = 0; k < Depth; k += inner) {
    left_of_sums<Tall, Depth, T>(block,
                                 [&](typename Block::state& mine) { return left(mine) + k / 8; });
    PIPE_UNROLL
    for (int n = 0; n < Columns; n += 16) {
      load_right<pitch>(block, right, k, n);
      multiply_operands<Tall, Columns, T>(
          block, [&](typename Block::state& mine) { return sums(mine) + n / 8; });
    }
  }
}

}  // namespace pp::cuda
