// SPDX-License-Identifier: BSL-1.0
//
// The tiling of a matrix product c[M, N] = a[M, K] b[K, N], with a block of threads for each tile.
// Large tiles reuse operands most, but a small product has too few large tiles to fill the GPU.
// Then tiles are smaller, or the sum over k is cut into splits, whose sums are added afterwards.
// The tiling is a constant of the shape, and so is the order in which an element of c is summed.
#pragma once

#include <initializer_list>
#include <type_traits>

#include <pipe/backend/cuda/core/arguments.hpp>
#include <pipe/backend/cuda/core/mma_formats.hpp>
#include <pipe/backend/product_shape.hpp>

namespace pp::cuda {

/// The format in which a product is computed. Sums are always fp32.
enum class product_format : unsigned char {
  fp32,  ///< each number is the sum of two tf32 numbers, and the smallest of the four products is
         ///< omitted: as exact as fp32
  tf32,  ///< fp32 numbers in memory, rounded to tf32
  bf16,
  fp16
};

/// tf32 if P::product is tf32; else the format of P's numbers in memory.
template <class P>
constexpr product_format product_of() {
  if constexpr (std::is_same_v<typename P::element, bf16>)
    return product_format::bf16;
  else if constexpr (std::is_same_v<typename P::element, fp16>)
    return product_format::fp16;
  else if constexpr (requires { P::product; })
    return P::product == dtype::tf32 ? product_format::tf32 : product_format::fp32;
  else
    return product_format::fp32;
}

/// The format of the operands of the tensor core instruction for products of this format.
constexpr operand_format operands_of(product_format p) {
  return p == product_format::bf16   ? operand_format::bf16
         : p == product_format::fp16 ? operand_format::fp16
                                     : operand_format::tf32;
}

using detail::product_shape;

/// A block for each tile of c, of `rows` x `columns`, and a piece of warp_rows x warp_columns for
/// each warp. The sum over k runs in slabs of `depth`, of which `stages` are in shared memory or
/// being copied, and is cut into `splits`, which take slabs in turn, `together` at a time.
struct tile_plan {
  int rows, columns, depth, warp_rows, warp_columns, stages, splits, together = 1;
  friend constexpr bool operator==(tile_plan const&, tile_plan const&) = default;

  constexpr int threads() const { return rows / warp_rows * (columns / warp_columns) * 32; }
  /// Blocks for which a multiprocessor has registers: more for smaller tiles, which wait longer for
  /// their operands.
  constexpr int resident() const { return rows >= 128 ? 256 / threads() : rows >= 64 ? 3 : 6; }
  constexpr extent tiles(product_shape const& s) const {
    return ((s.rows + rows - 1) / rows) * ((s.columns + columns - 1) / columns);
  }
  constexpr extent slabs(product_shape const& s) const { return (s.inner + depth - 1) / depth; }
  /// The most slabs of a split, if splits take one at a time.
  constexpr extent slabs_each(product_shape const& s) const {
    return (slabs(s) + splits - 1) / splits;
  }
};

/// Bytes of a number in memory.
constexpr int bytes_of(product_format p) {
  return p == product_format::fp32 || p == product_format::tf32 ? 4 : 2;
}

/// The plans to choose from: the larger the tile, the fewer blocks a multiprocessor has. A row of a
/// slab of `a` is 64 bytes. A thread has registers for 128 sums, but in fp32, where operands take
/// twice as many registers, for 64.
constexpr tile_plan large_tiles(product_format p, int splits = 1) {
  return {128, 128, 64 / bytes_of(p), 64, p == product_format::fp32 ? 32 : 64, 4, splits};
}
constexpr tile_plan middle_tiles(product_format p, int splits = 1) {
  return {64, 64, 64 / bytes_of(p), 32, 32, 4, splits};
}
constexpr tile_plan small_tiles(product_format p, int splits = 1) {
  return {32, 32, 64 / bytes_of(p), 16, 16, 4, splits};
}

/// An estimate of a plan's clocks on an H200, for comparison with other plans only. It is the
/// maximum of three times, plus the time of adding splits: the multiplications of the busiest
/// multiprocessor, the latency of its blocks, and the bytes that all tiles read through the L2
/// cache.
constexpr extent clocks(product_shape const& s, tile_plan const& plan, product_format format) {
  constexpr extent multiprocessors = 132, fill = 1200, least_slab = 150, launch = 3500,
                   bytes_per_clock = 2000, cache_bytes_per_clock = 3100;
  extent const multiplied = format == product_format::fp32   ? 170
                            : format == product_format::tf32 ? 500
                                                             : 1000;
  extent const efficiency = plan.rows >= 128 ? 100 : plan.rows >= 64 ? 60 : 25;
  extent const busiest = (plan.tiles(s) * plan.splits + multiprocessors - 1) / multiprocessors,
               slabs = plan.slabs_each(s);
  extent const sums = extent(plan.rows) * plan.columns;
  extent const slab = sums * plan.depth * 100 / (multiplied * efficiency);
  extent const alone = slab * 3 / 2 > least_slab
                           ? slab * 3 / 2
                           : least_slab;  // with no other block to hide the latency
  extent const compute = busiest * slabs * slab;
  extent const latency =
      (busiest + plan.resident() - 1) / plan.resident() * (fill + slabs * alone + sums / 16);
  extent const read = plan.tiles(s) * (plan.rows + plan.columns) * s.inner * bytes_of(format) /
                      cache_bytes_per_clock;
  extent const adding =
      plan.splits > 1 ? launch + plan.splits * s.rows * s.columns * 8 / bytes_per_clock : 0;
  extent const tiles = compute > latency ? compute : latency;
  return (tiles > read ? tiles : read) + adding;
}

/// The maximum columns and channels of a narrow layer.
inline constexpr int narrow_width = 128;

/// The number of splits of a product of at most 128 x 128 sums, which is mostly the gradient of a
/// narrow layer's weight, and the rows that these splits take in turn: the most rows that a block
/// of narrow layers has in shared memory. Both depend on K only, so that one kernel can sum the
/// gradients of several layers in one pass over their rows.
inline constexpr int narrow_turn = 128;
constexpr int narrow_splits(extent inner) {
  constexpr extent most_splits = 128, least_rows = 2 * narrow_turn;
  extent const wanted = inner / least_rows;
  return int(wanted < 1 ? 1 : wanted < most_splits ? wanted : most_splits);
}
constexpr bool is_narrow(product_shape const& s) {
  return s.rows <= narrow_width && s.columns <= narrow_width;
}

/// The plan with the fewest estimated clocks; a plan with splits, which need workspace, only if it
/// saves at least 1/32.
///
/// law: a constant of the shape and the format, so the order of every sum is the same on every GPU
constexpr tile_plan plan_for(product_shape const& s, product_format format) {
  constexpr extent most_splits = 128, most_sums = 16 << 20;
  int const narrow = is_narrow(s) ? narrow_splits(s.inner) : 0;
  tile_plan best = large_tiles(format, narrow > 0 ? narrow : 1);
  extent least = clocks(s, best, format);
  for (tile_plan plan : {large_tiles(format), middle_tiles(format), small_tiles(format)}) {
    extent const slabs = plan.slabs(s);
    for (int splits = 1; splits <= most_splits && splits <= slabs; ++splits) {
      plan.splits = splits;
      if (narrow > 0 && splits != narrow) continue;
      if (splits > 1 && splits * s.rows * s.columns > most_sums) break;
      extent const needed = clocks(s, plan, format);
      if (needed < least - (splits > 1 && narrow == 0 ? least / 32 : 0))
        least = needed, best = plan;
    }
  }
  if (narrow > 0) best.together = narrow_turn / best.depth;
  return best;
}

}  // namespace pp::cuda
