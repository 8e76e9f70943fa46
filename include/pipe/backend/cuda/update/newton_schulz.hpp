// SPDX-License-Identifier: BSL-1.0
//
// Updates by a Newton-Schulz iteration (Muon): the kernels before and after the products of
// spectral_products.hpp. A step of a batch of matrices is two launches, and three for each
// iteration.
//
// A parameter with more columns than rows is transposed when x is computed, and again when the
// parameter moves: a block has a tile of 64 x 64, which it transposes in shared memory, so that all
// accesses of global memory run along rows.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/core/tickets.hpp>
#include <pipe/backend/cuda/update/spectral_products.hpp>

namespace pp::cuda {

/// A tile of x in the shared memory of a block of 256 threads, where it is transposed if
/// spectral_matrix::lies().
struct spectral_tile {
  static constexpr int extent_of = spectral_matrix::tile, threads = 256;
  float element[extent_of][extent_of + 1];

  /// Calls f(row, column) for the elements of a thread: neighbouring threads have neighbouring
  /// elements, so that accesses are whole rows.
  template <class F>
  PIPE_HD PIPE_INLINE static void each(int thread, F f) {
    for (int i = thread; i < extent_of * extent_of; i += threads) f(i / extent_of, i % extent_of);
  }
};

/// The momentum of matrices, x before it is scaled, and the factor of each matrix that scales x.
///
/// shape: gradients, momentum (rows, columns) of each matrix -> momentum, x (tall, wide), and a
///        factor for each matrix
/// law:   squares are added in double: those of a tile as by add_threads; then the last block of a
///        matrix adds tiles, each thread every 256th, then threads as by add_threads. If the
///        outcome is not sound, no memory changes.
/// work:  a block has a tile of x, and writes zeros to elements beyond the parameter
/// cost:  reads gradients and momentum, writes momentum and x: 16 bytes per parameter, bound by
///        bytes
template <class Optimizer>
struct average_matrices_kernel {
  struct arguments {
    flat_ranges tiles;  ///< begin: the tile's number in its matrix
    spectral_memory<Optimizer> of;
    double* sums = nullptr;       ///< by tile
    unsigned* tickets = nullptr;  ///< by matrix
  };
  static constexpr int threads = spectral_tile::threads;
  static extent blocks(arguments const& a) { return a.tiles.count(); }
  struct state {
    double sum;
  };
  struct shared {
    spectral_tile tile;
    double of_warp[threads / warp_size];
    bool is_last;
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (!is_sound(a.of.judged)) return;
    flat_range const p = a.tiles.at(block.position());
    spectral_matrix const m = a.of.matrices[p.group];
    auto const with = a.of.with(m);
    float const scale = factor_of(a.of.judged);
    spectral_matrix::place const at_tile = m.place_of(p.begin);
    int const tile_row = at_tile.tile_row, tile_column = at_tile.tile_column, row = at_tile.row,
              column = at_tile.column;
    auto& tile = block.shared().tile;
    block.phase([&](int thread, state& mine) {
      mine.sum = 0;
      spectral_tile::each(thread, [&](int r, int c) {
        float x = 0;
        if (row + r < m.rows && column + c < m.columns) {
          extent const i = extent(row + r) * m.columns + column + c;
          float* const momentum = a.of.states + m.state + i;
          x = Optimizer::average(with, a.of.gradients[m.begin + i] * scale, *momentum);
          mine.sum += double(x) * double(x);
        }
        tile.element[r][c] = x;
      });
    });
    // If the parameter lies, rows of x are its columns.
    block.part([&](int thread, state&) {
      float* const to = a.of.workspace + m.x + extent(tile_row) * m.wide + tile_column;
      bool const lies = m.lies();
      spectral_tile::each(thread, [&](int r, int c) {
        to[extent(r) * m.wide + c] = lies ? tile.element[c][r] : tile.element[r][c];
      });
    });
    auto const sum_of = [](state& s) -> double& { return s.sum; };
    add_threads(block, block.shared().of_warp, sum_of,
                [&](double total) { a.sums[block.position()] = total; });
    // The last block of the matrix reads the sums of all its tiles.
    unsigned const tiles = unsigned(m.tiles());
    if (!is_last_block(block, a.tickets + p.group, tiles, block.shared().is_last)) return;
    block.part([&](int thread, state& mine) {
      mine.sum = 0;
      for (unsigned i = unsigned(thread); i < tiles; i += threads)
        mine.sum += a.sums[m.first_tile + i];
    });
    add_threads(block, block.shared().of_warp, sum_of,
                [&](double total) { a.of.factors[p.group] = Optimizer::normaliser(with, total); });
  }
};

/// The end of a step: parameters move along x, and their 16-bit copies, of type Copy unless it is
/// void, are renewed.
///
/// shape: x (tall, wide), parameters (rows, columns) of each matrix -> parameters, copies
/// law:   if the outcome is not sound, no memory changes
/// work:  a block has a tile of x
/// cost:  one pass over x and the parameters, bound by bytes
template <class Optimizer, class Copy = void>
struct move_matrices_kernel {
  struct arguments {
    flat_ranges tiles;  ///< begin: the tile's number in its matrix
    spectral_memory<Optimizer> of;
    bool is_scaled = true;    ///< whether an iteration has scaled x
    bool is_swapped = false;  ///< whether x is in the memory of `next`
    Copy* copy = nullptr;
  };
  static constexpr int threads = spectral_tile::threads;
  static extent blocks(arguments const& a) { return a.tiles.count(); }
  using state = nothing;
  struct shared {
    spectral_tile tile;
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (!is_sound(a.of.judged)) return;
    flat_range const p = a.tiles.at(block.position());
    spectral_matrix const m = a.of.matrices[p.group];
    auto const with = a.of.with(m);
    float const factor = a.is_scaled ? 1.0f : a.of.factors[p.group];
    spectral_matrix::place const at_tile = m.place_of(p.begin);
    int const tile_row = at_tile.tile_row, tile_column = at_tile.tile_column, row = at_tile.row,
              column = at_tile.column;
    auto& tile = block.shared().tile;
    block.phase([&](int thread, state&) {
      float const* const from =
          a.of.workspace + (a.is_swapped ? m.next : m.x) + extent(tile_row) * m.wide + tile_column;
      spectral_tile::each(thread,
                          [&](int r, int c) { tile.element[r][c] = from[extent(r) * m.wide + c]; });
    });
    block.part([&](int thread, state&) {
      bool const lies = m.lies();
      spectral_tile::each(thread, [&](int r, int c) {
        if (row + r >= m.rows || column + c >= m.columns) return;
        extent const at = m.begin + extent(row + r) * m.columns + column + c;
        float const x = factor * (lies ? tile.element[c][r] : tile.element[r][c]);
        float const w = Optimizer::move(with, a.of.weights[at], x);
        a.of.weights[at] = w;
        if constexpr (!std::is_void_v<Copy>) a.copy[at] = Copy(w);
      });
    });
  }
};

}  // namespace pp::cuda
