// SPDX-License-Identifier: BSL-1.0
//
// Matrix multiplication around blocks of tiles of slices (sliced_products.hpp): cuts C into blocks,
// makes tiles of the factors, and passes finished sums to the sink, as contraction_loops.hpp does
// around register tiles.
#pragma once

#include <pipe/backend/host/amx.hpp>
#include <pipe/backend/host/contraction_loops.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// Factors that are made block by block, from row `row` and column `column` of C on.
template <class T>
struct shifted_factors {
  contraction_ends<T> const& of;
  extent row, column;
  static void left(void* self, extent i, extent rows, extent p, extent depth) {
    auto const& f = *static_cast<shifted_factors const*>(self);
    f.of.make_left(f.of.left, f.row + i, rows, p, depth);
  }
  static void right(void* self, extent p, extent depth, extent j, int columns, int padded,
                    T* panel) {
    auto const& f = *static_cast<shifted_factors const*>(self);
    f.of.make_right(f.of.right, p, depth, f.column + j, columns, padded, panel);
  }
};

/// Finished sums of C from row `row` and column `column` on, with row stride panel_columns.
template <class T>
struct finished_block {
  extent row, column, rows, columns;
  T* sums;
  bool is_finite() const {
    T all(0);  // a sum of products with zero is zero, or NaN
    for (extent r = 0; r < rows; ++r)
      for (extent c = 0; c < columns; ++c) all += sums[r * panel_columns + c] * T(0);
    return all == T(0);
  }
};

/// Computes the sums of a finished block that are not finite again, as contract_tiles does: slices
/// of an infinity, and of factors of a product near the largest number, give NaN or infinity where
/// fp32 has a number.
///
/// needs: more than one slice, of numbers; cut.depth not above the depth of blocks that are made
template <class T>
[[gnu::cold]] PIPE_ONE_COPY void compute_again(tile_set<T> const& tiles,
                                               value_factors<T, T> const& of,
                                               contraction_ends<T> const& with,
                                               finished_block<T> const& block, T* again,
                                               void* workspace) {
  extent const rows = block.rows, columns = block.columns;
  shifted_factors<T> shifted{with, block.row, block.column};
  contraction_ends<T> ends;
  ends.c = again;
  ends.ldc = panel_columns;
  strided<T const> a = of.made.data != nullptr ? of.made : of.a;
  if (with.make_left != nullptr)
    ends.left = &shifted, ends.make_left = &shifted_factors<T>::left;
  else
    a = a.from(block.row, 0);
  if (with.make_right != nullptr)
    ends.right = &shifted, ends.make_right = &shifted_factors<T>::right;
  contract_tiles<T>(tiles, {rows, columns, of.shape.inner}, a,
                    with.make_right != nullptr ? nullptr : of.b + block.column, of.ldb, ends,
                    workspace, again_blocking(of.shape.inner));
  for (extent r = 0; r < rows; ++r)
    for (extent c = 0; c < columns; ++c)
      if (T& sum = block.sums[r * panel_columns + c]; !libm::isfinite(sum))
        sum = again[r * panel_columns + c];
}

/// The function by which a unit multiplies tiles. This thread's tiles are configured while the
/// object lives.
struct tile_multiplier {
  void (*multiply)(sliced_block const&);
#ifdef __x86_64__
  amx::tiles_of_thread configured;
  template <class T, class V>
  tile_multiplier(sliced_kernels<T, V> const& by, product_unit unit)
      : multiply(unit == product_unit::amx ? &amx::multiply_block : function_of(by, unit)),
        configured(unit == product_unit::amx) {}
#else
  template <class T, class V>
  tile_multiplier(sliced_kernels<T, V> const& by, product_unit unit)
      : multiply(function_of(by, unit)) {}
#endif

 private:
  template <class T, class V>
  static auto function_of(sliced_kernels<T, V> const& by, product_unit unit) {
    return unit == product_unit::avx512_bf16            ? by.multiply_pairs
           : unit == product_unit::emulated_avx512_bf16 ? by.emulate_pairs
                                                        : by.emulate_amx;
  }
};

/// Multiplies up to block_side rows of tiles of A, those of `block`, with the tiles of a panel of B
/// from `right` on. The sums of the panel's columns begin at block.sums.
inline void multiply_blocks(void (*multiply)(sliced_block const&), sliced_block block,
                            std::uint16_t const* right, extent columns) {
  for (extent c = 0; c < columns; c += block_side) {
    block.b = right + c / tile_side * block.pitch;
    block.wide = columns - c > tile_side ? 2 : 1;
    multiply(block);
    block.sums += block_side;
  }
}

/// Passes a finished block to the sink.
template <class T>
void deliver_block(tile_set<T> const& tiles, contraction_ends<T> const& with,
                   finished_block<T> const& done) {
  extent const width = tiles.columns();
  for (extent c = 0; c < done.columns; c += width)
    deliver<T>(tiles, with, done.row, done.column + c, int(done.rows),
               int(done.columns - c < width ? done.columns - c : width), done.sums + c,
               panel_columns);
}

/// C[m, n] = A[m, k] * B[k, n], of slices.
///
/// law:       by AMX, for each block of tile_depth terms, ascending, and each pair of slices in the
///            order of slice_pair_at: the chain of products of its even terms, plus the chain of
///            its odd ones, is added to the element. By AVX-512-BF16, the element is one chain: for
///            each two terms, ascending, the product of the odd one, then that of the even one. The
///            same bits for every blocking and m, and for an instruction and its emulation. With
///            more than one slice, an element that is not finite then has the bits of
///            contract_tiles.
/// workspace: sliced_product_workspace<T>(m, n, k, slices) bytes
/// needs:     B is made by panels of any number of columns up to panel_columns, if it is made
template <class T, class V>
PIPE_ONE_COPY void contract_sliced(value_products<T, V> const& set, product_unit unit,
                                   value_factors<T, V> const& of, contraction_ends<T> const& with,
                                   void* workspace) {
  sliced_kernels<T, V> const& by = *set.sliced;
  tile_set<T> const& tiles = set.tiles;
  extent const m = of.shape.rows, n = of.shape.columns, k = of.shape.inner;
  int const slices = by.slices;
  sliced_blocking const cut = blocking_of_slices(m, n, k, slices, of.made_depth);
  sliced_workspace const at(k, cut, slices);
  auto const space = [&](long begin) { return static_cast<char*>(workspace) + begin; };
  auto* const left = reinterpret_cast<std::uint16_t*>(space(at.left));
  auto* const right = reinterpret_cast<std::uint16_t*>(space(at.right));
  T* const finished = reinterpret_cast<T*>(space(at.finished));
  T* const panel = reinterpret_cast<T*>(space(at.panel));
  tile_multiplier const tiles_by(by, unit);
  for (extent i0 = 0; i0 < m; i0 += cut.rows) {
    extent const i1 = i0 + cut.rows < m ? i0 + cut.rows : m;
    if (with.prologue != nullptr) with.make_rows(with.prologue, i0, i1 - i0);
    for (extent j0 = 0; j0 < n; j0 += cut.columns) {
      extent const j1 = j0 + cut.columns < n ? j0 + cut.columns : n;
      for (extent p0 = 0; p0 < k; p0 += cut.depth) {
        extent const depth = p0 + cut.depth < k ? cut.depth : k - p0;
        bool const first = p0 == 0, last = p0 + depth == k;
        extent const steps = whole_tiles(depth, tile_depth) / tile_depth;
        bool const is_made = with.make_left != nullptr;
        if (is_made) with.make_left(with.left, i0, i1 - i0, p0, depth);
        if (of.made.data != nullptr)
          by.left_numbers(is_made ? of.made : of.made.from(i0, p0), i1 - i0, depth, left);
        else
          by.left_values(of.a.from(i0, p0), i1 - i0, depth, left);
        T* sums = first && last ? finished : reinterpret_cast<T*>(space(at.partial));
        for (extent j = j0; j < j1; j += panel_columns) {
          extent const columns = j1 - j < panel_columns ? j1 - j : panel_columns;
          if (with.make_right != nullptr) {
            with.make_right(with.right, p0, depth, j, int(columns), int(panel_columns), panel);
            by.right_numbers(panel, panel_columns, depth, columns, right);
          } else {
            by.right_values(of.b + p0 * of.ldb + j, of.ldb, depth, columns, right);
          }
          for (extent i = i0; i < i1; i += block_side) {
            extent const rows = i1 - i < block_side ? i1 - i : block_side;
            sliced_block block;
            block.slices = slices;
            block.steps = steps;
            block.pitch = steps * slices * tile_elements;
            block.a = left + (i - i0) / tile_side * block.pitch;
            block.high = rows > tile_side ? 2 : 1;
            block.stride = panel_columns;
            block.begins = first;
            block.sums = sums;
            multiply_blocks(tiles_by.multiply, block, right, columns);
            if (last) {
              finished_block<T> const done{i, j, rows, columns, sums};
              if constexpr (in_place<T, V>)
                if (slices > 1 && !done.is_finite())
                  compute_again<T>(tiles, of, with, done, reinterpret_cast<T*>(space(at.again)),
                                   space(at.all));
              deliver_block(tiles, with, done);
            }
            if (!(first && last)) sums += block_side * panel_columns;
          }
        }
      }
    }
  }
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
