// SPDX-License-Identifier: BSL-1.0
//
// The register tiles of an instruction set, as a table of functions. Tiles are compiled once for
// each set (per_isa/tile.inl). The loops around tiles only count and address, so they are compiled
// once for all three sets and call tiles through this table; a call takes negligible time beside a
// tile.
#pragma once

#include <bit>

#include <pipe/backend/host/isa.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// A matrix in memory: element (i, j) is data[i * row + j * column]. `{x, ld, 1}` is row-major,
/// `{x, 1, ld}` its transpose.
template <class T>
struct strided {
  T* data;
  extent row;
  extent column;
  /// The matrix from element (i, j) on.
  constexpr strided from(extent i, extent j) const {
    return {data + (i * row + j * column), row, column};
  }
};

/// The row stride of a right factor in panels: a panel for each tile's columns, dense, one after
/// the other, all of whole vectors; see transpose_to_panels.
inline constexpr extent in_panels = 0;

/// Fetches rows of a matrix to L1. Inlined: g++ drops calls of a function that only fetches.
template <class T>
[[gnu::always_inline]] inline void fetch_rows(T const* from, extent stride, extent rows,
                                              extent columns) {
  constexpr extent line = 64 / extent(sizeof(T));
  for (; rows > 0; --rows, from += stride)
    for (extent c = 0; c < columns; c += line) __builtin_prefetch(from + c);
}

/// The factors of a tile: `k` columns of A and as many rows of B.
///
/// b: row-major, row stride ldb
template <class T>
struct tile_factors {
  extent k;
  strided<T const> a;
  T const* b;
  extent ldb;
};

/// The start of a tile's sums and their destination.
///
/// from: null: sums start at zero; else sums of earlier p, row stride from_stride. add: `to` += the
///       sums, else `to` = the sums.
template <class T>
struct tile_ends {
  T const* from = nullptr;
  extent from_stride = 0;
  T* to = nullptr;
  extent to_stride = 0;
  bool add = false;
};

/// The tiles of one instruction set.
template <class T>
struct tile_set {
  int lanes = 0;              ///< elements of a vector
  int rows = 0, vectors = 0;  ///< rows and vectors of the largest tile
  /// The tile of `high` rows and `wide` vectors, from next_rows and next_vectors; see tile() in
  /// per_isa/tile.inl. It is one function for all sizes: after a tile's loop, a processor predicts
  /// branches better than an indirect call to one of twelve addresses.
  void (*tile)(int high, int wide, tile_factors<T> const& of, tile_ends<T> const& ends) = nullptr;
  /// to[r, c] = from[r, c] for c < columns, and 0 for c in [columns, padded).
  void (*copy_rows)(T const* from, extent stride, extent rows, extent columns, extent padded, T* to,
                    extent to_stride) = nullptr;
  /// out[c * out_stride + r] = in[r * in_stride + c]
  void (*transpose)(T const* in, extent rows, extent columns, extent in_stride, T* out,
                    extent out_stride) = nullptr;

  /// Columns of the widest tile.
  constexpr int columns() const { return vectors * lanes; }
  /// The vectors that a number of columns needs. By a shift: this is computed every few tiles, and
  /// a division takes as long as a call.
  constexpr extent vectors_in(extent columns) const {
    return (columns + lanes - 1) >> std::countr_zero(unsigned(lanes));
  }
  /// Rows of the next tile if `left` rows remain: a power of two, so that few tiles are compiled.
  constexpr int next_rows(extent left) const {
    if (left >= rows) return rows;
    return left >= 4 ? 4 : left >= 2 ? 2 : 1;
  }
  /// Vectors of the next tile if `left` vectors remain: full tiles, but four vectors are two pairs,
  /// not three and one.
  constexpr int next_vectors(extent left) const {
    if (left >= vectors && (left != 4 || vectors != 3)) return vectors;
    return left >= 2 ? 2 : 1;
  }
};

}  // namespace pp::host
PIPE_OPTIMIZED_END
