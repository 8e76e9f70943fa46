// SPDX-License-Identifier: BSL-1.0
//
// Averages of squared gradients by row and by column, for optimizers that keep no other second
// moment of a matrix (Adafactor): two launches for all matrices of a stage. The first adds squares
// in tiles, to a partial sum for each row and each column of a tile; the second adds the sums of
// tiles, renews the averages, and writes a factor for each matrix, from the mean of its row
// averages.
//
// A tile is read once for both sums: each element costs the 4 bytes of its gradient.
#pragma once

#include <pipe/backend/cuda/core/tickets.hpp>
#include <pipe/backend/cuda/update/whole_tensors.hpp>

namespace pp::cuda {

/// The tiles of a matrix, and the offsets of its partial sums.
///
/// shape: row sums (rows, column_tiles), column sums (row_tiles, columns)
struct factored_tensor {
  static constexpr int tile_rows = 64, tile_columns = 512;
  static constexpr int means_of_block = 256;

  extent row_sums = 0, column_sums = 0;
  extent row_tiles = 0, column_tiles = 0;
  extent first_means = 0, means = 0;  ///< blocks of the second launch

  /// The number of parts of `of` elements that cover n elements.
  static constexpr extent parts(extent n, extent of) { return (n + of - 1) / of; }
  /// The entry of a matrix whose partial sums follow `sums` earlier ones, and whose blocks follow
  /// `blocks` earlier ones.
  static constexpr factored_tensor of(extent rows, extent columns, extent sums, extent blocks) {
    factored_tensor t;
    t.row_tiles = parts(rows, tile_rows);
    t.column_tiles = parts(columns, tile_columns);
    t.row_sums = sums;
    t.column_sums = sums + rows * t.column_tiles;
    t.first_means = blocks;
    t.means = parts(rows + columns, means_of_block);
    return t;
  }
  constexpr extent tiles() const { return row_tiles * column_tiles; }
  /// The number of a matrix's partial sums: one for each 512 elements of a row, and one for each 64
  /// of a column.
  ///
  constexpr extent sums(extent rows, extent columns) const {
    return rows * column_tiles + row_tiles * columns;
  }
};

/// Sums of squares of scaled gradients, by row and by column of each tile.
///
/// shape: gradients (rows, columns) of each matrix -> sums, see factored_tensor
/// law:   a lane adds its 16 columns of a row in order, then lanes are added as by reduce_lanes; a
///        warp adds every eighth row of a column, then warps are added ascending. Sums do not
///        depend on other matrices.
/// work:  a block has a tile of 64 rows and 512 columns, a warp every eighth row
template <class Optimizer>
struct sum_tiles_kernel {
  struct arguments {
    flat_ranges tiles;  ///< begin: the tile's number in its matrix
    tensor_memory<Optimizer> of;
    factored_tensor const* factored = nullptr;  ///< by tensor
    float* sums = nullptr;
  };
  static constexpr int threads = 256, warps = threads / warp_size, each = 4;
  static constexpr int tile_rows = factored_tensor::tile_rows,
                       tile_columns = factored_tensor::tile_columns;
  static constexpr int trips = tile_columns / (warp_size * each);  // accesses of a lane along a row
  static extent blocks(arguments const& a) { return a.tiles.count(); }
  struct state {
    float of_column[trips * each];
    float of_row;
  };
  struct shared {
    float of_column[warps][tile_columns];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (!is_sound(a.of.judged)) return;
    flat_range const p = a.tiles.at(block.position());
    updated_tensor const t = a.of.tensors[p.group];
    factored_tensor const f = a.factored[p.group];
    extent const tile_row = p.begin / f.column_tiles,
                 tile_column = p.begin - tile_row * f.column_tiles;
    extent const row = tile_row * tile_rows, column = tile_column * tile_columns;
    bool const is_wide = t.columns % each == 0;
    float const scale = factor_of(a.of.judged);
    // A lane keeps the sums of its columns in registers; the sum of a row is complete after each
    // iteration.
    block.part([&](int, state& mine) {
      PIPE_UNROLL
      for (int i = 0; i < trips * each; ++i) mine.of_column[i] = 0;
    });
    for (int k = 0; k < tile_rows; k += warps) {
      block.part([&](int thread, state& mine) {
        mine.of_row = 0;
        extent const r = row + k + thread / warp_size;
        if (r >= t.rows) return;
        float const* const from = a.of.gradients + t.begin + r * t.columns;
        PIPE_UNROLL
        for (int j = 0; j < trips; ++j) {
          extent const c = column + column_of(thread, j);
          float g[each];
          load_row(from, c, t.columns, is_wide, g);
          PIPE_UNROLL
          for (int i = 0; i < each; ++i) {
            float const x = g[i] * scale;
            mine.of_row += x * x;
            mine.of_column[j * each + i] += x * x;
          }
        }
      });
      reduce_lanes(block, [](state& s) -> float& { return s.of_row; }, plus{});
      block.part([&](int thread, state& mine) {
        extent const r = row + k + thread / warp_size;
        if (thread % warp_size == 0 && r < t.rows)
          a.sums[f.row_sums + r * f.column_tiles + tile_column] = mine.of_row;
      });
    }
    // The sums of columns are added over the warps, in shared memory.
    auto& all = block.shared().of_column;
    block.phase([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int j = 0; j < trips; ++j) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i)
          all[thread / warp_size][column_of(thread, j) + i] = mine.of_column[j * each + i];
      }
    });
    block.part([&](int thread, state&) {
      for (int c = thread; c < tile_columns && column + c < t.columns; c += threads) {
        float sum = 0;
        PIPE_UNROLL
        for (int w = 0; w < warps; ++w) sum += all[w][c];
        a.sums[f.column_sums + tile_row * t.columns + column + c] = sum;
      }
    });
  }

 private:
  /// The first column of a lane in an access: a warp reads 512 bytes of a row at once.
  PIPE_HD PIPE_INLINE static int column_of(int thread, int trip) {
    return trip * warp_size * each + thread % warp_size * each;
  }
  /// Reads elements of a row from column c on; 0 behind the end of the row.
  PIPE_HD PIPE_INLINE static void load_row(float const* row, extent c, extent columns, bool is_wide,
                                           float (&g)[each]) {
    if (is_wide && c < columns) {
      load<each>(row + c, g);
    } else {
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) g[i] = c + i < columns ? row[c + i] : 0.0f;
    }
  }
};

/// Averages of rows and columns, and a factor for each matrix: the product of a row average, a
/// column average and the factor is the second moment.
///
/// shape: sums of sum_tiles_kernel -> row averages (rows), column averages (columns), one factor
///        per matrix
/// law:   in double: tiles ascending; the row averages of a block as by add_threads, then the last
///        block of a matrix adds blocks, each thread every 256th
/// work:  a thread has a row or a column
template <class Optimizer>
struct renew_means_kernel {
  struct arguments {
    flat_ranges where;  ///< the rows of a matrix, then its columns
    tensor_memory<Optimizer> of;
    factored_tensor const* factored = nullptr;  ///< by tensor
    float const* sums = nullptr;
    double* totals = nullptr;     ///< by block: sums of row averages
    unsigned* tickets = nullptr;  ///< by tensor
  };
  static constexpr int threads = factored_tensor::means_of_block;
  static extent blocks(arguments const& a) { return a.where.count(); }
  struct state {
    double sum;
  };
  struct shared {
    double of_warp[threads / warp_size];
    bool is_last;
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (!is_sound(a.of.judged)) return;
    flat_range const p = a.where.at(block.position());
    updated_tensor const t = a.of.tensors[p.group];
    factored_tensor const f = a.factored[p.group];
    auto const with = a.of.with(t);
    // Averages are floats between steps, but are computed in double, since their change may be
    // small.
    block.part([&](int thread, state& mine) {
      mine.sum = 0;
      if (thread >= p.count) return;
      extent const i = p.begin + thread;
      if (i < t.rows) {
        float* const average = a.of.row_average(t, i);
        double const mean =
            total(a.sums + f.row_sums + i * f.column_tiles, f.column_tiles, 1) / double(t.columns);
        *average = float(Optimizer::approach(double(with.amount), double(*average), mean));
        mine.sum = double(*average);
      } else {
        float* const average = a.of.column_average(t, i - t.rows);
        double const mean =
            total(a.sums + f.column_sums + (i - t.rows), f.row_tiles, t.columns) / double(t.rows);
        *average = float(Optimizer::approach(double(with.amount), double(*average), mean));
      }
    });
    auto const sum_of = [](state& s) -> double& { return s.sum; };
    add_threads(block, block.shared().of_warp, sum_of,
                [&](double total) { a.totals[block.position()] = total; });
    if (!is_last_block(block, a.tickets + p.group, unsigned(f.means), block.shared().is_last))
      return;
    block.part([&](int thread, state& mine) {
      mine.sum = 0;
      for (extent i = thread; i < f.means; i += threads) mine.sum += a.totals[f.first_means + i];
    });
    add_threads(block, block.shared().of_warp, sum_of, [&](double total) {
      a.of.row_factors[p.group] = float(1 / Optimizer::mean_of_rows(with, total, t.rows));
    });
  }

 private:
  /// The sum of `count` numbers at a distance of `apart`; several loads are in flight at once.
  PIPE_HD PIPE_INLINE static double total(float const* x, extent count, extent apart) {
    constexpr int together = 8;
    double sum = 0;
    extent i = 0;
    for (; i + together <= count; i += together) {
      float v[together];
      PIPE_UNROLL
      for (int k = 0; k < together; ++k) v[k] = x[(i + k) * apart];
      PIPE_UNROLL
      for (int k = 0; k < together; ++k) sum += double(v[k]);
    }
    for (; i < count; ++i) sum += double(x[i * apart]);
    return sum;
  }
};

/// Lists the work of both launches for all factored tensors of a stage.
///
/// Fills `factored` for these tensors, and calls append_tile and append_means with the ranges of
/// both launches. Returns the number of partial sums.
template <class AppendTile, class AppendMeans>
extent list_matrices(updated_tensor const* tensors, int count, factored_tensor* factored,
                     AppendTile append_tile, AppendMeans append_means) {
  extent sums = 0, blocks = 0;
  for (int i = 0; i < count; ++i) {
    updated_tensor const& t = tensors[i];
    if (!t.is_factored) continue;
    factored_tensor const f = factored[i] = factored_tensor::of(t.rows, t.columns, sums, blocks);
    for (extent k = 0; k < f.tiles(); ++k) append_tile(flat_range{k, 1, i});
    for (extent k = 0; k < f.means; ++k) {
      extent const begin = k * factored_tensor::means_of_block, left = t.rows + t.columns - begin;
      append_means(flat_range{
          begin,
          int(left < factored_tensor::means_of_block ? left : factored_tensor::means_of_block), i});
    }
    sums += f.sums(t.rows, t.columns);
    blocks += f.means;
  }
  return sums;
}

}  // namespace pp::cuda
