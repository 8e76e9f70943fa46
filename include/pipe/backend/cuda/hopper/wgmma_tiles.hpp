// SPDX-License-Identifier: BSL-1.0
//
// Matrix products for Hopper by persistent blocks, which go from tile to tile: one thread copies
// slabs ahead (TMA), and two warpgroups multiply them (wgmma), each for half of a tile. The copies
// for the next tile overlap with the epilogue of the present one.
#pragma once

#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/hopper/roles.hpp>
#include <pipe/backend/cuda/hopper/wgmma_slab.hpp>
#include <pipe/backend/cuda/matmul/contraction.hpp>
#include <pipe/backend/cuda/rows/row_sources.hpp>

namespace pp::cuda {

/// Tiles of 128 x `columns`; `stages` slabs are in shared memory or being copied.
struct wgmma_plan {
  static constexpr int rows = 128, depth = 64;
  int columns, stages;
  friend constexpr bool operator==(wgmma_plan const&, wgmma_plan const&) = default;
  constexpr extent tiles(product_shape const& s) const {
    return (s.rows + rows - 1) / rows * ((s.columns + columns - 1) / columns);
  }
};
inline constexpr long wgmma_shared_bytes = 227 * 1024;
inline constexpr extent wgmma_blocks = 132;  // multiprocessors of an H100 or H200

/// The plan whose busiest block has the fewest columns to multiply; 16 more columns stand for the
/// other work of a tile.
constexpr wgmma_plan wgmma_plan_for(product_shape const& s) {
  wgmma_plan best{};
  extent least = -1;
  for (wgmma_plan const p : {wgmma_plan{256, 3}, wgmma_plan{128, 4}}) {
    extent const busiest = (p.tiles(s) + wgmma_blocks - 1) / wgmma_blocks,
                 needed = busiest * (p.columns + 16);
    if (least < 0 || needed < least) least = needed, best = p;
  }
  return best;
}

/// Whether TMA and wgmma can compute a product: 16-bit numbers, in rows of a multiple of 16 bytes.
template <class P, int G>
constexpr bool fits_wgmma() {
  using product = contraction<P, G>;
  constexpr product_shape s = product::shape;
  constexpr extent left = product::makes_weight ? s.rows : s.inner,
                   right = product::transposes_right ? s.inner : s.columns;
  return (product::format == product_format::bf16 || product::format == product_format::fp16) &&
         left % 8 == 0 && right % 8 == 0;
}
/// Whether a product should run by wgmma: it fits, fills at least half of the multiprocessors, and
/// is not of a narrow layer. There are no splits, so contraction_tiles computes gradients of small
/// weights.
template <class P, int G>
constexpr bool suits_wgmma() {
  constexpr product_shape s = contraction<P, G>::shape;
  return fits_wgmma<P, G>() && !is_narrow(s) && s.columns >= 128 &&
         2 * wgmma_plan_for(s).tiles(s) >= wgmma_blocks;
}

/// The tiles of c = a b.
///
/// shape: a (M, K), b (K, N) -> c (M, N), without the gradient of a bias
/// law:   an element is the sum over ascending k, in tiles of the tensor core's depth: the order
///        depends on K alone. Bits differ from contraction_tiles, since wgmma truncates sums of 16
///        products, and mma.sync sums of 8 or 16
/// work:  a block has every 132nd tile, less the multiprocessors that P reserves; a consumer has 64
///        rows, in registers
/// cost:  as contraction_tiles
template <class P, int G, wgmma_plan Plan>
struct wgmma_tiles {
  using T = typename P::element;
  using launch_arguments = arguments;
  using product = contraction<P, G>;
  static constexpr product_shape shape = product::shape;
  static constexpr product_format format = product::format;
  static constexpr operand_format operands = operands_of(format);
  static constexpr int consumers = 2, threads = threads_of_roles(consumers), stages = Plan.stages,
                       columns = Plan.columns;
  static constexpr extent tile_rows = (shape.rows + Plan.rows - 1) / Plan.rows,
                          tile_columns = (shape.columns + columns - 1) / columns,
                          tiles = tile_rows * tile_columns,
                          slabs = (shape.inner + Plan.depth - 1) / Plan.depth;
  static constexpr extent most_blocks = wgmma_blocks - detail::reserved_multiprocessors<P>();
  static constexpr extent resident_blocks = tiles < most_blocks ? tiles : most_blocks;
  static constexpr long workspace_bytes = product::left_bytes;
  static_assert(shape.rows < 0x7fffff00 && shape.columns < 0x7fffff00);

  /// With Lengths, the rows of c that are there, and the k that are summed, which lie densely in
  /// the order of their planned numbers.
  using of_rows = launch_rows<P, G>;
  PIPE_HD PIPE_INLINE static extent end_row([[maybe_unused]] arguments const& a) {
    if constexpr (of_rows::vary && !product::makes_weight) return of_rows::end(a);
    return shape.rows;
  }
  static constexpr bool sums_vary = of_rows::vary && product::makes_weight;
  static_assert(!sums_vary || detail::block_rows<P>() % wgmma::inner == 0);
  PIPE_HD PIPE_INLINE static int end_of_sum([[maybe_unused]] arguments const& a) {
    if constexpr (sums_vary) return int(of_rows::end(a));
    return int(slabs) * Plan.depth;
  }

  /// The contiguous index of each operand: TMA copies operands as they are, and wgmma reads both
  /// layouts.
  static constexpr major left_along = product::makes_weight ? major::mn : major::k,
                         right_along = product::transposes_right ? major::k : major::mn;
  using left_slab = wgmma_slab<Plan.rows, left_along>;
  using right_slab = wgmma_slab<columns, right_along>;

  /// The layout of a row of sums in shared memory, 64 columns at a time. Where a thread takes eight
  /// sums, the halves of all eights lie apart: see contraction_tiles.
  static constexpr int piece = 64, stride = piece + 8, apart = piece / 2 + 4;
  PIPE_HD static PIPE_INLINE int place_of_sum(int column) {
    return product::each == 8 ? column / 8 * 4 + column / 4 % 2 * apart + column % 4 : column;
  }
  /// A consumer's thread has columns / 2 sums of its 64 rows, spread by place_in_wgmma.
  struct state {
    float sums[columns / 2];
  };
  struct shared {
    left_slab left[stages];
    right_slab right[stages];
    float sums[consumers][64 * stride];
    mbarrier full[stages], empty[stages];
  };

  /// A block for each multiprocessor, or for each tile if there are fewer tiles.
  static extent blocks(arguments const&) { return resident_blocks; }
  /// The maps of the matrices that the producer copies: a, and b by its columns.
  static operand_maps<tensor_map> maps(arguments const& a) {
    return {left_slab::map_of(product::left(a), format, shape.rows, shape.inner),
            right_slab::map_of(product::right(a), format, shape.columns, shape.inner)};
  }

  /// The first row and column of a tile.
  struct place {
    int row, column;
  };
  /// Consecutive tiles go down bands of eight rows of tiles: see contraction_tiles.
  PIPE_HD PIPE_INLINE static place place_of(unsigned index) {
    constexpr unsigned band = 8, band_tiles = band * unsigned(tile_columns);
    unsigned const first = index / band_tiles * band, rest = unsigned(tile_rows) - first,
                   high = rest < band ? rest : band;
    return {int(first + index % band_tiles % high) * Plan.rows,
            int(index % band_tiles / high) * columns};
  }

  /// Begins the barriers, and splits the block into roles: one thread of the first warpgroup
  /// copies, and two warpgroups multiply.
  template <class Block, class Maps>
  PIPE_HD static void run(Block& block, arguments const& a, Maps const& maps) {
    shared& s = block.shared();
    block.phase([&](int thread, state&) {
      if (thread != 0) return;
      PIPE_UNROLL
      for (int i = 0; i < stages; ++i) {
        begin_barrier(block, &s.full[i], 1);
        begin_barrier(block, &s.empty[i], consumers * warpgroup_size / warp_size);
      }
      barriers_are_ready(block);
    });
    split_roles(
        block, [&](auto& producer) { produce(producer, a, s, maps); },
        [&](auto& consumer) { consume(consumer, a, s); });
  }

  /// Copies the slabs of all of the block's tiles, one stage after the other. A stage is
  /// overwritten after both consumers have released it; in the first round of the ring, await_phase
  /// returns at once, since a new barrier counts as past the phase of parity 1.
  template <class Producer, class Maps>
  PIPE_HD PIPE_INLINE static void produce(Producer& producer, arguments const& a, shared& s,
                                          Maps const& maps) {
    ring_place ring;
    int const end = end_of_sum(a);
    for (extent tile = producer.position(); tile < tiles; tile += resident_blocks) {
      place const at = place_of(unsigned(tile));
      if (of_rows::vary && at.row >= end_row(a)) continue;
      for (int slab = 0; slab * Plan.depth < end; ++slab, ring.template advance<stages>()) {
        mbarrier* const full = &s.full[ring.stage];
        await_phase(producer, &s.empty[ring.stage], ring.parity ^ 1);
        arrive_expecting(producer, full, left_slab::bytes + right_slab::bytes);
        s.left[ring.stage].start(producer, maps.left, at.row, slab * Plan.depth, full);
        s.right[ring.stage].start(producer, maps.right, at.column, slab * Plan.depth, full);
      }
    }
  }

  /// Multiplies 64 rows of each tile. A slab is released after the multiplications of the next one
  /// have been started, so that the tensor core never waits for the release.
  template <class Consumer>
  PIPE_HD PIPE_INLINE static void consume(Consumer& consumer, arguments const& a, shared& s) {
    ring_place ring;
    auto const release = [&](int stage) {
      consumer.part([&](int thread, state&) {
        if (thread % warp_size == 0) arrive(consumer, &s.empty[stage]);
      });
    };
    // The ring continues from tile to tile: the producer copies slabs of the next tile while the
    // sums of this tile are stored.
    int const end = end_of_sum(a);
    for (extent tile = consumer.position(); tile < tiles; tile += resident_blocks) {
      place const at = place_of(unsigned(tile));
      if (of_rows::vary && at.row >= end_row(a)) continue;
      int before = 0;
      for (int slab = 0; slab * Plan.depth < end; ++slab, ring.template advance<stages>()) {
        await_phase(consumer, &s.full[ring.stage], ring.parity);
        std::uint64_t const left = s.left[ring.stage].descriptor(consumer, consumer.number() * 64),
                            right = s.right[ring.stage].descriptor(consumer, 0);
        begin_multiplications(consumer);
        PIPE_UNROLL
        for (int k = 0; k < Plan.depth / wgmma::inner; ++k) {
          if (sums_vary && slab * Plan.depth + k * wgmma::inner >= end) break;
          multiply_async<operands, left_along, right_along, columns / 2>(
              consumer, [](state& mine) -> auto& { return mine.sums; },
              advance(left, k * left_slab::k_stride_bytes),
              advance(right, k * right_slab::k_stride_bytes), slab > 0 || k > 0);
        }
        commit_multiplications(consumer);
        // Now the previous slab has been multiplied.
        await_multiplications<1>(consumer);
        if (slab > 0) release(before);
        before = ring.stage;
      }
      await_multiplications<0>(consumer);
      consumer.part([](int, state& mine) { hold_sums(mine.sums); });
      release(before);
      take_tile(consumer, a, s, at);
    }
  }

  /// Takes the sums of the consumer's 64 rows through shared memory, 64 columns at a time, so that
  /// a thread has neighbouring elements of a row for the epilogue. Operands of several pieces are
  /// fetched before the first piece is stored.
  template <class Consumer>
  PIPE_HD PIPE_INLINE static void take_tile(Consumer& consumer, arguments const& a, shared& s,
                                            place const& at) {
    constexpr int each = product::each, pieces = piece / each, all = 64 * pieces, together = 4;
    static_assert(all % (together * warpgroup_size) == 0);
    float* const staged = s.sums[consumer.number()];
    int const row = at.row + consumer.number() * 64;
    extent const end = end_row(a);
    PIPE_UNROLL
    for (int first = 0; first < columns; first += piece) {
      consumer.phase([&](int thread, state& mine) {
        PIPE_UNROLL
        for (int i = 0; i < piece / 2; i += 2) {
          tile_place const p = place_in_wgmma(thread, i);
          float const two[2] = {mine.sums[first / 2 + i], mine.sums[first / 2 + i + 1]};
          save<2, memory_space::shared>(staged + p.row * stride + place_of_sum(p.column), two);
        }
      });
      consumer.phase([&](int thread, state&) {
        for (int begin = thread; begin < all; begin += together * warpgroup_size) {
          auto const each_piece = [&](auto f) {
            PIPE_UNROLL
            for (int i = 0; i < together; ++i) {
              int const n = begin + i * warpgroup_size, r = n / pieces, c = n % pieces * each;
              if (row + r < end && at.column + first + c < shape.columns) f(i, r, c);
            }
          };
          typename product::template before<each> z[together];
          each_piece([&](int i, int r, int c) {
            product::template fetch<each>(a, row + r, at.column + first + c, z[i]);
          });
          each_piece([&](int i, int r, int c) {
            float v[each];
            float const* const from = staged + r * stride + place_of_sum(c);
            if constexpr (each == 8) {
              float half[2][4];
              load<4>(from, half[0]), load<4>(from + apart, half[1]);
              PIPE_UNROLL
              for (int k = 0; k < 8; ++k) v[k] = half[k / 4][k % 4];
            } else {
              load<each>(from, v);
            }
            product::template take<each>(a, row + r, at.column + first + c, v, z[i]);
          });
        }
      });
    }
  }
};

/// The kernels of a product by wgmma_tiles: before it the rows of a prologue, after it the gradient
/// of a bias.
///
/// needs: fits_wgmma
template <class P, int G, wgmma_plan Plan = wgmma_plan_for(contraction<P, G>::shape)>
constexpr auto lower_wgmma() {
  using product = contraction<P, G>;
  using tiles = wgmma_tiles<P, G, Plan>;
  constexpr detail::group g = group_of<P, G>::value;
  if constexpr (product::makes_left)
    return kernel_list<left_rows_kernel<P, G>, tiles>{};
  else if constexpr (product::sums_bias)
    return kernel_list<tiles, column_sums_kernel<bias_source<P, G, g.in[1], product::stored>>>{};
  else
    return kernel_list<tiles>{};
}

}  // namespace pp::cuda
