// SPDX-License-Identifier: BSL-1.0
//
// Matrix multiplication around the register tile: cuts C into tiles, B into panels and the shared
// dimension into blocks, carries partial sums between blocks, and passes finished tiles to the
// sink. Weights of usual layers fit in L2 and are read in place. At the right edge a vector of B
// reaches into the next row, and the sums beyond the edge are dropped; only the last rows, where a
// vector would leave the matrix, are read from a zero-padded copy.
#pragma once

#include <cstring>

#include <pipe/backend/host/contraction.hpp>
#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/tiles.hpp>
#include <pipe/backend/host/values.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// Matrices of C's shape that a sink reads or writes, from C's first row on. They are fetched while
/// a tile multiplies: a sink gets to them when the tile has ended, a few lines of many rows at
/// once, and would wait for each.
template <class T>
struct sink_matrices {
  static constexpr int most = 6;
  extent row = 0;  ///< between their rows
  int count = 0;
  T const* matrix[most]{};  ///< [count]

  /// Adds a matrix; what is more than `most` is left to the sink.
  constexpr void add(T const* x) {
    if (count < most) matrix[count++] = x;
  }
  /// Fetches elements [i .. i + rows, j .. j + columns) of each.
  [[gnu::always_inline]] void fetch(extent i, extent j, int rows, int columns) const {
    for (int k = 0; k < count; ++k) fetch_rows(matrix[k] + i * row + j, row, rows, columns);
  }
};

/// A sink and a prologue without their types, so that the loops over tiles are compiled once, not
/// for every kernel group. A call through a pointer takes negligible time beside a tile.
template <class T>
struct contraction_ends {
  T* c = nullptr;              ///< direct sinks: the tile writes to c, or adds to it
  extent ldc = 0, column = 1;  ///< between the rows of c, and between its columns
  bool adds = false;
  void* sink = nullptr;  ///< other sinks: called with a whole tile, a vector of columns, or the
                         ///< last columns
  void (*tile)(void* sink, extent i, extent j, int rows, T* sums, extent stride) = nullptr;
  void (*vector)(void* sink, extent i, extent j, int rows, T* sums, extent stride) = nullptr;
  void (*rest)(void* sink, extent i, extent j, int rows, int columns, T* sums,
               extent stride) = nullptr;
  sink_matrices<T> beside{};  ///< of another sink
  void* prologue = nullptr;   ///< null: no prologue
  void (*make_rows)(void* prologue, extent i, extent rows) = nullptr;
  /// Convolutions make factors block by block: `left` makes rows [i, i + rows) and columns [p, p +
  /// depth) of A at a.data, `right` makes panels of B. null: the factor is in memory.
  void* left = nullptr;
  void (*make_left)(void* left, extent i, extent rows, extent p, extent depth) = nullptr;
  void* right = nullptr;
  void (*make_right)(void* right, extent p, extent depth, extent j, int columns, int padded,
                     T* panel) = nullptr;
};

/// Passes a finished rectangle of C, which lies in the tile buffer, to the sink: whole tiles and
/// whole vectors of columns to functions of constant width, the last columns at the right edge to a
/// function of any width.
///
/// shape: sums (rows, columns), row stride `stride` -> C[i .. i + rows, j .. j + columns)
template <class T>
void deliver(tile_set<T> const& tiles, contraction_ends<T> const& to, extent i, extent j, int rows,
             int columns, T* sums, extent stride) {
  if (to.sink == nullptr) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) {
        T& element = to.c[(i + r) * to.ldc + (j + c) * to.column];
        element = to.adds ? element + sums[r * stride + c] : sums[r * stride + c];
      }
    return;
  }
  if (columns == tiles.columns()) return to.tile(to.sink, i, j, rows, sums, stride);
  int const whole = columns - (columns & (tiles.lanes - 1));
  for (int c = 0; c < whole; c += tiles.lanes) to.vector(to.sink, i, j + c, rows, sums + c, stride);
  if (whole < columns) to.rest(to.sink, i, j + whole, rows, columns - whole, sums + whole, stride);
}

/// The panel of B that is read after the present one. It is fetched to L2 while tiles multiply by
/// the present one, a few rows before each tile: no processor follows such short rows far apart.
template <class T>
struct next_panel {
  tile_set<T> const& tiles;
  T const* b = nullptr;
  extent ldb = 0, k = 0, n = 0;
  T const* rows = nullptr;       ///< the panel's first row
  extent row = 0, end = 0;       ///< the rows that are not fetched yet
  extent stride = 0, width = 0;  ///< of the rows
  extent rows_of_each = 0;       ///< rows that are fetched before each tile

  /// Begins with rows [begin, until) of the panel at column j, which tiles of `count` rows fetch.
  void start(extent begin, extent until, extent j, extent count) {
    row = begin, end = until < k ? until : k;
    width = tiles.next_vectors(tiles.vectors_in(n - j)) * tiles.lanes;
    stride = ldb == in_panels ? width : ldb;
    rows = ldb == in_panels ? b + j * k : b + j;
    if (n - j < width) width = n - j;
    extent const calls = (count + tiles.rows - 1) / tiles.rows;
    rows_of_each = (end - row + calls - 1) / calls;
  }
  void fetch_some() {
    constexpr extent line = 64 / extent(sizeof(T));
    extent const stop = row + rows_of_each < end ? row + rows_of_each : end;
    for (; row < stop; ++row)
      for (extent c = 0; c < width; c += line) __builtin_prefetch(rows + row * stride + c, 0, 2);
  }
};
/// Whether panels of B (k, n) are fetched for blocks of m rows of A: where B is large, and enough
/// rows share a panel.
template <class T>
constexpr bool is_fetched(extent m, extent n, extent k) {
  constexpr extent near_cache = 256 * 1024, sharing_rows = 64;
  return m >= sharing_rows && n * k * extent(sizeof(T)) > near_cache;
}

/// Copies a block of A, stored by columns, to panels of `high` rows, 4 or 8, in each of which the
/// rows' elements of a column are neighbours: to[i / high][p][i % high] = a[i, p].
///
/// shape: a (rows, depth) -> to (rows rounded up to high, depth), of which `rows` rows are written
/// cost:  a copy of whole cache lines of A, several panels at a time
template <class T>
PIPE_ONE_COPY void copy_left(int high, strided<T const> a, extent rows, extent depth, T* to) {
  constexpr extent piece = 4, together = 64, ahead = 8, line = 64 / extent(sizeof(T));
  for (extent first = 0; first < rows; first += together) {
    extent const end = first + together < rows ? first + together : rows;
    for (extent p = 0; p < depth; ++p) {
      T const* const from = a.data + p * a.column;
      T* const column = to + p * high;
      for (extent i = first; i < end; i += line) __builtin_prefetch(from + i + ahead * a.column);
      for (extent i = first; i < end; i += piece) {
        extent const in_panel = i & (high - 1);
        T* const at = column + (i - in_panel) * depth + in_panel;
        if (end - i >= piece)
          std::memcpy(at, from + i, piece * sizeof(T));
        else
          for (extent r = 0; r < end - i; ++r) at[r] = from[i + r];
      }
    }
  }
}

/// C[m, n] = A[m, k] * B[k, n], with blocking `cut`.
///
/// shape:     (m, n, k), each >= 1; B is row-major with row stride ldb, or in_panels
/// law:       element (i, j) is one chain of fused multiply-adds over ascending p: the same bits
///            for every blocking, tile and m. B is read inside [b, b + (k - 1) * ldb + n) only,
///            in panels inside [b, b + k * n).
/// workspace: contraction_workspace<T>(n, k, cut) bytes, aligned to widest_vector_bytes
/// needs:     cut.pack if with.make_right; a left factor that is made is made again for every
///            cut.columns columns. cut.pack_left: A is stored by columns, no row of it is made.
///            B in panels: panel_blocking
template <class T>
PIPE_ONE_COPY void contract_tiles(tile_set<T> const& tiles, product_shape const& shape,
                                  strided<T const> a, T const* b, extent ldb,
                                  contraction_ends<T> const& with, void* workspace,
                                  blocking const& cut) {
  extent const m = shape.rows, n = shape.columns, k = shape.inner;
  int const lanes = tiles.lanes;
  T* const finished = static_cast<T*>(workspace);            // one tile's sums for the sink
  T* const block = finished + tiles.rows * tiles.columns();  // rows x depth of A, in panels
  T* const panel = block + cut.left_elements();              // depth x tile_columns of B
  T* const partial = panel + (cut.pack || cut.depth < lanes ? cut.depth : lanes) *
                                 tiles.columns();  // sums between blocks
  bool const fetches =
      with.make_right == nullptr && is_fetched<T>(cut.rows < m ? cut.rows : m, n, k);
  next_panel<T> next{tiles, b, ldb, k, n};
  for (extent i0 = 0; i0 < m; i0 += cut.rows) {
    extent const i1 = i0 + cut.rows < m ? i0 + cut.rows : m;
    for (extent j0 = 0; j0 < n; j0 += cut.columns) {
      extent const j1 = j0 + cut.columns < n ? j0 + cut.columns : n;
      for (extent p0 = 0; p0 < k; p0 += cut.depth) {
        extent const depth = p0 + cut.depth < k ? cut.depth : k - p0;
        bool const first = p0 == 0, last = p0 + depth == k;
        T* sums = partial;
        if (with.make_left != nullptr) with.make_left(with.left, i0, i1 - i0, p0, depth);
        if (cut.pack_left) copy_left(tiles.rows, a.from(i0, p0), i1 - i0, depth, block);
        int vectors = 0;
        for (extent j = j0; j < j1; j += vectors * lanes) {
          vectors = tiles.next_vectors(tiles.vectors_in(j1 - j));
          int const padded = vectors * lanes;
          int const columns = static_cast<int>(j1 - j < padded ? j1 - j : padded);
          bool const panels = ldb == in_panels && with.make_right == nullptr;
          extent const stride = panels ? padded : ldb;
          T const* const right = with.make_right != nullptr ? nullptr
                                 : panels                   ? b + j * k + p0 * padded
                                                            : b + p0 * ldb + j;
          // The number of rows of this panel that are read in place. The tile reads whole vectors,
          // so at the end of the matrix it would read past the end: the last rows are read from a
          // copy.
          extent in_place = cut.pack ? 0 : depth;
          while (in_place > 0 && !panels &&
                 (p0 + in_place - 1) * ldb + j + padded > (k - 1) * ldb + n)
            --in_place;
          if (with.make_right != nullptr)
            with.make_right(with.right, p0, depth, j, columns, padded, panel);
          else if (in_place < depth)
            tiles.copy_rows(right + in_place * ldb, ldb, depth - in_place, columns, padded, panel,
                            padded);
          if (fetches) {
            if (j + padded < j1)
              next.start(p0, p0 + depth, j + padded, i1 - i0);
            else if (!last)
              next.start(p0 + depth, p0 + depth + cut.depth, j0, i1 - i0);
            else if (j1 < n)
              next.start(0, cut.depth, j1, i1 - i0);
            else if (i1 < m)
              next.start(0, cut.depth, 0, i1 - i0);
            else
              next.end = 0;
          }
          strided<T const> left = cut.pack_left ? strided<T const>{block, 1, tiles.rows}
                                  : with.make_left != nullptr ? a
                                                              : a.from(i0, p0);
          bool const is_split = in_place > 0 && in_place < depth,
                     writes = last && with.sink == nullptr && columns == padded && with.column == 1;
          tile_factors<T> of =
              in_place == depth
                  ? tile_factors<T>{depth, left, right, stride}
                  : tile_factors<T>{depth - in_place, left.from(0, in_place), panel, padded};
          tile_ends<T> ends{first ? nullptr : sums, padded, last ? finished : sums, padded, false};
          if (writes) ends = {ends.from, padded, with.c + i0 * with.ldc + j, with.ldc, with.adds};
          int rows = 0;
          for (extent i = i0; i < i1; i += rows) {
            rows = tiles.next_rows(i1 - i);
            if (fetches) next.fetch_some();
            // The prologue makes rows of A in the first panel and block of p; later panels and
            // blocks read them.
            if (j == 0 && first && with.prologue != nullptr)
              with.make_rows(with.prologue, i, extent(rows));
            if (last) with.beside.fetch(i, j, rows, columns);
            if (is_split) {
              tiles.tile(rows, vectors, {in_place, left, right, stride},
                         {first ? nullptr : sums, padded, finished, padded, false});
              ends.from = finished;
            }
            tiles.tile(rows, vectors, of, ends);
            if (last && !writes) deliver<T>(tiles, with, i, j, rows, columns, finished, padded);
            // The next rows.
            extent const elements =
                cut.pack_left && rows == tiles.rows ? rows * depth : rows * left.row;
            left.data += elements, of.a.data += elements;
            sums += rows * padded;
            if (!first) ends.from = sums;
            if (writes)
              ends.to += rows * with.ldc;
            else if (!last)
              ends.to = sums;
          }
        }
      }
    }
  }
}

/// The same with the blocking that measured best; workspace: contraction_workspace<T>(m, n, k)
/// bytes.
template <class T>
PIPE_ONE_COPY void contract_tiles(tile_set<T> const& tiles, product_shape const& shape,
                                  strided<T const> a, T const* b, extent ldb,
                                  contraction_ends<T> const& with, void* workspace) {
  extent const m = shape.rows, n = shape.columns, k = shape.inner;
  contract_tiles<T>(tiles, shape, a, b, ldb, with, workspace,
                    ldb == in_panels
                        ? panel_blocking(m, n, k, tiles.columns(), sizeof(T))
                        : best_blocking(m, n, k, tiles.columns(), sizeof(T), a.row == 1));
}

/// The factors of a product of values, whose blocks are widened for tiles of T. A convolution
/// gathers the left one itself.
///
/// needs: rows or columns of A are dense
template <class T, class V>
struct widened_factors {
  value_rows<T, V> const& rows;
  strided<V const> a;
  V const* b;
  extent ldb;
  strided<T> block;  ///< of A, as strided as A is

  static void left(void* self, extent i, extent count, extent p, extent depth) {
    auto const& f = *static_cast<widened_factors const*>(self);
    V const* const from = f.a.from(i, p).data;
    if (f.a.column == 1)
      f.rows.widen(from, f.a.row, count, depth, depth, f.block.data, f.block.row);
    else
      f.rows.widen(from, f.a.column, depth, count, count, f.block.data, f.block.column);
  }
  static void right(void* self, extent p, extent depth, extent j, int columns, int padded,
                    T* panel) {
    auto const& f = *static_cast<widened_factors const*>(self);
    f.rows.widen(f.b + p * f.ldb + j, f.ldb, depth, columns, padded, panel, padded);
  }
};

/// C[m, n] = A[m, k] * B[k, n], factors in memory as values.
///
/// unit:      of products of 16-bit numbers
/// law:       the bits of contract_tiles for the factors as numbers, or those of contract_sliced
/// workspace: product_workspace<T, V>(m, n, k, slices) bytes
template <class T, class V = T>
PIPE_ONE_COPY void contract_values(value_products<T, V> const& set, product_unit unit,
                                   value_factors<T, V> const& of, contraction_ends<T> const& with,
                                   void* workspace) {
  if (set.slices(unit)) return set.sliced->contract(set, unit, of, with, workspace);
  if constexpr (in_place<T, V>) {
    contract_tiles<T>(set.tiles, of.shape, of.made.data != nullptr ? of.made : of.a, of.b, of.ldb,
                      with, workspace);
  } else {
    blocking const cut = value_blocking(of.shape.rows, of.shape.columns, of.shape.inner);
    T* const block = static_cast<T*>(workspace);
    widened_factors<T, V> factors{set.rows, of.a, of.b, of.ldb, {block, cut.depth, 1}};
    if (of.a.column != 1) factors.block = {block, 1, cut.rows};
    contraction_ends<T> ends = with;
    ends.right = &factors, ends.make_right = &widened_factors<T, V>::right;
    strided<T const> left = of.made;
    if (of.made.data == nullptr) {
      ends.left = &factors, ends.make_left = &widened_factors<T, V>::left;
      left = {block, factors.block.row, factors.block.column};
    }
    contract_tiles<T>(
        set.tiles, of.shape, left, nullptr, of.ldb, ends,
        static_cast<char*>(workspace) + detail::align_up(cut.rows * cut.depth * long(sizeof(T))),
        cut);
  }
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
