// SPDX-License-Identifier: BSL-1.0
//
// The tiling of a matrix product c[M, N] = a[M, K] b[K, N], a block of threads per tile. Large
// tiles reuse operands most, but a small product then has too few tiles to fill the GPU. Then tiles
// are smaller, or the sum over k is cut into splits, whose sums are added up by a second kernel.
// All of it is a constant of the shape, and so is the order in which an element of c is summed.
#pragma once

#include <initializer_list>
#include <type_traits>

#include <pipe/backend/cuda/core/arguments.hpp>
#include <pipe/backend/cuda/core/mma_formats.hpp>

namespace pp::cuda {

/// What a product is computed in. Sums are always fp32.
enum class product_format : unsigned char {
  fp32,  ///< each number as the sum of two tf32 numbers, of whose four products the least is left
         ///< out: as exact as fp32
  tf32,  ///< of fp32 numbers in memory
  bf16,
  fp16
};

/// tf32 if P::product says so; else what loses nothing of P's numbers in memory.
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

/// The operands of the tensor core instruction that products of this format are made of.
constexpr operand_format operands_of(product_format p) {
  return p == product_format::bf16   ? operand_format::bf16
         : p == product_format::fp16 ? operand_format::fp16
                                     : operand_format::tf32;
}

/// The extents M (rows), N (columns) and K (inner) of c (M, N) = a (M, K) b (K, N).
struct product_shape {
  extent rows, columns, inner;
};

/// One block per tile of c: `rows` x `columns` of it, each warp a piece of warp_rows x
/// warp_columns, slab by slab of `depth` k; `stages` slabs are in shared memory or on their way
/// there, and the sum over k is cut into `splits`.
struct tile_plan {
  int rows, columns, depth, warp_rows, warp_columns, stages, splits;
  friend constexpr bool operator==(tile_plan const&, tile_plan const&) = default;

  constexpr int threads() const { return rows / warp_rows * (columns / warp_columns) * 32; }
  /// Blocks that a multiprocessor can work on: more for smaller tiles, which wait longer for what
  /// they multiply.
  constexpr int resident() const { return rows >= 128 ? 256 / threads() : rows >= 64 ? 3 : 6; }
  constexpr extent tiles(product_shape const& s) const {
    return ((s.rows + rows - 1) / rows) * ((s.columns + columns - 1) / columns);
  }
  constexpr extent slabs(product_shape const& s) const { return (s.inner + depth - 1) / depth; }
  /// Of a split; the last one may have fewer.
  constexpr extent slabs_each(product_shape const& s) const {
    return (slabs(s) + splits - 1) / splits;
  }
};

/// Of a number in memory.
constexpr int bytes_of(product_format p) {
  return p == product_format::fp32 || p == product_format::tf32 ? 4 : 2;
}

/// The plans to choose from: the larger the tile, the fewer blocks a multiprocessor holds. A row of
/// a slab of `a` is 64 bytes. A thread has registers for 128 sums, but not beside operands that
/// take twice as many.
constexpr tile_plan large_tiles(product_format p, int splits = 1) {
  return {128, 128, 64 / bytes_of(p), 64, p == product_format::fp32 ? 32 : 64, 4, splits};
}
constexpr tile_plan middle_tiles(product_format p, int splits = 1) {
  return {64, 64, 64 / bytes_of(p), 32, 32, 4, splits};
}
constexpr tile_plan small_tiles(product_format p, int splits = 1) {
  return {32, 32, 64 / bytes_of(p), 16, 16, 4, splits};
}

/// An estimate of a plan's clocks on an H200, to be compared with those of other plans only: the
/// largest of the multiplications of the busiest multiprocessor, the latency of its blocks and the
/// bytes that all tiles read through the L2 cache, plus the sum of the splits.
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

/// The most columns and channels of a narrow layer.
inline constexpr int narrow_width = 128;

/// The number of splits of a product of at most 128 x 128 sums, mostly the gradient of a narrow
/// layer's weight. It depends on K only, so that one kernel can add up the gradients of several
/// layers in one pass over their rows.
constexpr int narrow_splits(extent inner, int depth) {
  constexpr extent most_splits = 128, least_rows = 256;
  extent const slabs = (inner + depth - 1) / depth, wanted = slabs * depth / least_rows;
  extent splits = wanted < 1 ? 1 : wanted < most_splits ? wanted : most_splits;
  while ((splits - 1) * ((slabs + splits - 1) / splits) >= slabs)
    --splits;  // the last would have none
  return int(splits);
}
constexpr bool is_narrow(product_shape const& s) {
  return s.rows <= narrow_width && s.columns <= narrow_width;
}

/// The plan of the fewest estimated clocks; one with splits, which need workspace, only if it gains
/// 1/32.
///
/// law: a constant of the shape and the format, so the order of every sum is the same on every GPU
constexpr tile_plan plan_for(product_shape const& s, product_format format) {
  constexpr extent most_splits = 128, most_sums = 16 << 20;
  int const narrow = is_narrow(s) ? narrow_splits(s.inner, large_tiles(format).depth) : 0;
  tile_plan best = large_tiles(format, narrow > 0 ? narrow : 1);
  extent least = clocks(s, best, format);
  for (tile_plan plan : {large_tiles(format), middle_tiles(format), small_tiles(format)}) {
    extent const slabs = plan.slabs(s);
    for (int splits = 1; splits <= most_splits && splits <= slabs; ++splits) {
      plan.splits = splits;
      if (narrow > 0 && splits != narrow) continue;
      if (splits > 1 && splits * s.rows * s.columns > most_sums) break;
      if ((splits - 1) * plan.slabs_each(s) >= slabs) continue;  // the last would have none
      extent const needed = clocks(s, plan, format);
      if (needed < least - (splits > 1 && narrow == 0 ? least / 32 : 0))
        least = needed, best = plan;
    }
  }
  return best;
}

}  // namespace pp::cuda
