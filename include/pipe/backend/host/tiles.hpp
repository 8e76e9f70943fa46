// SPDX-License-Identifier: BSL-1.0
//
// The register tiles of an instruction set, as the loops around them see them. The tiles are
// compiled once per set (per_isa/tile.inl); the loops, which only count and address, once for all
// sets, and call the tiles through this table: that is nothing against a tile, and spares the
// compiler two copies of three.
#pragma once

#include <bit>

#include <pipe/backend/host/isa.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// Where a tile's sums start from and where they go.
///
/// from: null for zero, else sums of earlier p, row stride from_stride. add: `to` += the sums, else
///       `to` = the sums.
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
  int rows = 0, vectors = 0;  ///< of the largest tile
  /// The tile of `high` rows and `wide` vectors, from next_rows and next_vectors; see tile() in
  /// per_isa/tile.inl. One function for all sizes, as a processor that comes out of a tile's loop
  /// foresees a branch better than one of twelve addresses.
  void (*tile)(int high, int wide, extent k, T const* a, extent row, extent column, T const* b,
               extent ldb, tile_ends<T> const& ends) = nullptr;
  /// to[r, 0 .. columns) = from[r, 0 .. columns), and zero from there up to `padded`.
  void (*copy_rows)(T const* from, extent stride, extent rows, extent columns, extent padded, T* to,
                    extent to_stride) = nullptr;

  /// Columns of the widest tile.
  constexpr int columns() const { return vectors * lanes; }
  /// Vectors that a number of columns takes. A shift, as this is asked for every few tiles and a
  /// division takes as long as a call.
  constexpr extent vectors_in(extent columns) const {
    return (columns + lanes - 1) >> std::countr_zero(unsigned(lanes));
  }
  /// Rows of the next tile when `left` rows are to do: a power of two, so that few tiles are
  /// compiled.
  constexpr int next_rows(extent left) const {
    if (left >= rows) return rows;
    return left >= 4 ? 4 : left >= 2 ? 2 : 1;
  }
  /// Vectors of the next tile when `left` are to do: full tiles, but two pairs instead of three and
  /// a lonely one.
  constexpr int next_vectors(extent left) const {
    if (left >= vectors && (left != 4 || vectors != 3)) return vectors;
    return left >= 2 ? 2 : 1;
  }
};

}  // namespace pp::host
PIPE_OPTIMIZED_END
