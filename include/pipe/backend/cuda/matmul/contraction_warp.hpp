// SPDX-License-Identifier: BSL-1.0
//
// The register level of a matrix product, in a warp: one multiplication deep, for all small tiles
// of the warp's piece of a product. An element is summed in the same order for every size of the
// piece, so products that are cut differently give the same bits.
#pragma once

#include <pipe/backend/cuda/matmul/contraction_plan.hpp>
#include <pipe/backend/cuda/matmul/matrix.hpp>

namespace pp::cuda {

/// operands_of(F) as a constant, for device code.
template <product_format F>
inline constexpr operand_format operands_in = operands_of(F);

/// A thread's part of the operands of a multiplication: of `Rows` times 16 rows of the left
/// operand, and of `Across` tiles of 8 columns of the right operand, two registers for each tile,
/// side by side, because two tiles are loaded at once.
template <int Across, int Rows = 1>
struct warp_operands {
  unsigned left[Rows][4], right[2 * Across];
  unsigned left_rest[4], right_rest[2 * Across];  // fp32: the rest of each number
  float product[4][4];                            // fp32: the sums of one multiplication
};

/// x = tf32(x) and, in fp32, rest = tf32(x - tf32(x)), for `Count` registers.
template <product_format F, int Count>
PIPE_HD PIPE_INLINE void round_operand(unsigned* x, unsigned* rest) {
  PIPE_UNROLL
  for (int i = 0; i < Count; ++i) {
    float const exact = math::from_bits(x[i]);
    x[i] = to_tf32(exact);
    if constexpr (F == product_format::fp32) rest[i] = to_tf32(exact - math::from_bits(x[i]));
  }
}

/// A row of small tiles in fp32, from operands split in two: sums += (left_rest right + left
/// right_rest) + left right. The product of the two rests, at most 2^-22 of the whole, is omitted.
///
/// shape:  left (16, 8), right (8, 8 * Across) -> sums (16, 8 * Across)
/// law:    small products first. Tensor cores truncate when they add, which over thousands of k
///         gives a bias, so each multiplication starts from zero, and its sums are then added with
///         rounding
/// source: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while
///         surpassing the FP32 theoretical peak performance", 2022
template <int Across, class Block, class Operands, class Sums>
PIPE_HD PIPE_INLINE void multiply_exactly(Block& block, int row, Operands of, Sums sums) {
  using state = typename Block::state;
  constexpr int some = Across % 4 == 0 ? 4 : 2;  // enough to hide the latency of one multiplication
  PIPE_UNROLL
  for (int first = 0; first < Across; first += some) {
    block.part([=](int, state& mine) {
      PIPE_UNROLL
      for (int j = 0; j < some; ++j) {
        PIPE_UNROLL
        for (int c = 0; c < 4; ++c) of(mine).product[j][c] = 0;
      }
    });
    PIPE_UNROLL
    for (int product = 0; product < 3; ++product) {
      PIPE_UNROLL
      for (int j = 0; j < some; ++j)
        multiply_add<operand_format::tf32>(block, [=](state& mine) {
          auto& o = of(mine);
          return tile_operands{o.product[j], product == 0 ? o.left_rest : o.left[row],
                               (product == 1 ? o.right_rest : o.right) + 2 * (first + j)};
        });
    }
    block.part([=](int, state& mine) {
      PIPE_UNROLL
      for (int j = 0; j < some; ++j) {
        PIPE_UNROLL
        for (int c = 0; c < 4; ++c) sums(mine, first + j)[c] += of(mine).product[j][c];
      }
    });
  }
}

/// Rounds the right operands to the format of the multiplication, once for all rows.
template <product_format F, int Across, class Block, class Operands>
PIPE_HD PIPE_INLINE void round_right(Block& block, Operands of) {
  using state = typename Block::state;
  if constexpr (operands_in<F> == operand_format::tf32)
    block.part([=](int, state& mine) {
      round_operand<F, 2 * Across>(of(mine).right, of(mine).right_rest);
    });
}

/// A row of small tiles: sums += left[row] right, one multiplication deep. of(state): the thread's
/// warp_operands.
///
/// shape: left (16, K), right (K, 8 * Across), K = tile<F>::inner -> sums(state, j): the thread's 4
///        sums of a small tile
template <product_format F, int Across, class Block, class Operands, class Sums>
PIPE_HD PIPE_INLINE void multiply_row(Block& block, int row, Operands of, Sums sums) {
  using state = typename Block::state;
  if constexpr (operands_in<F> == operand_format::tf32)
    block.part(
        [=](int, state& mine) { round_operand<F, 4>(of(mine).left[row], of(mine).left_rest); });
  if constexpr (F == product_format::fp32) {
    multiply_exactly<Across>(block, row, of, sums);
  } else {
    PIPE_UNROLL
    for (int j = 0; j < Across; ++j)
      multiply_add<operands_in<F>>(block, [=](state& mine) {
        return tile_operands{sums(mine, j), of(mine).left[row], of(mine).right + 2 * j};
      });
  }
}

/// A part of a warp's product: sums += left right, one multiplication deep.
///
/// shape: left (16 * Down, K), right (K, 8 * Across), K = tile<F>::inner -> sums(state, i, j)
/// work:  the right operands are in registers for all rows of left, which are loaded 16 at a time
///
/// load_left(i, access) and load_right(j, access) load a row of small tiles of a, and two columns
/// of tiles of b. seen() is called when b is loaded and not yet rounded.
template <product_format F, int Down, int Across, class Block, class Operands, class Sums,
          class Left, class Right, class Seen>
PIPE_HD PIPE_INLINE void multiply_once(Block& block, Operands of, Sums sums, Left load_left,
                                       Right load_right, Seen seen) {
  using state = typename Block::state;
  static_assert(Across % 2 == 0);
  PIPE_UNROLL
  for (int j = 0; j < Across; j += 2)
    load_right(j, [&](state& mine) { return of(mine).right + 2 * j; });
  seen();
  round_right<F, Across>(block, of);
  PIPE_UNROLL
  for (int i = 0; i < Down; ++i) {
    load_left(i, [&](state& mine) { return of(mine).left[0]; });
    multiply_row<F, Across>(block, 0, of, [&](state& mine, int j) { return sums(mine, i, j); });
  }
}

/// columns[j] += the elements of b that this thread holds of tile j, for the gradient of a bias.
template <product_format F, class T, int Across, int Most, int Rows>
PIPE_HD PIPE_INLINE void add_columns(float* columns, warp_operands<Most, Rows> const& of) {
  PIPE_UNROLL
  for (int j = 0; j < Across; ++j) {
    PIPE_UNROLL
    for (int i = 0; i < 2; ++i)
      if constexpr (sizeof(T) == 4)
        columns[j] += math::from_bits(of.right[2 * j + i]);
      else
        columns[j] += operand_value<operands_in<F>>(of.right[2 * j + i], 0),
            columns[j] += operand_value<operands_in<F>>(of.right[2 * j + i], 1);
  }
}

}  // namespace pp::cuda
