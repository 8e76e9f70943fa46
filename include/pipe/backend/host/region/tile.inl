// SPDX-License-Identifier: BSL-1.0
//
// The register tile: the one inner loop that contraction, attention and convolution share. A tile of Rows x Vectors
// sums lives in registers while p runs over the shared dimension; A is read one broadcast element at a time through two
// strides, so a transposed A costs nothing, and B one row of vectors at a time.

namespace pp::host::PIPE_ISA {

/// to[r, c] (+)= from[r, c] + sum over p of a[r * row + p * column] * b[p * ldb + c],  r < Rows, c < Vectors * lanes
///
/// law: every sum is one chain of fused multiply-adds over ascending p, whatever Rows and Vectors are.
template <int Rows, int Vectors, class T>
[[gnu::noinline]] void tile(extent k, T const* a, extent row, extent column, T const* b, extent ldb,
                            tile_ends<T> const& ends) {
  constexpr int Lanes = lanes<T>;
  vec<T> sum[Rows][Vectors];
  if (ends.from != nullptr) {
    T const* from = ends.from;
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r, from += ends.from_stride) {
#pragma GCC unroll 3
      for (int c = 0; c < Vectors; ++c) sum[r][c] = load(from + c * Lanes);
    }
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 3
      for (int c = 0; c < Vectors; ++c) sum[r][c] = vec<T>{};
    }
  }
  for (extent p = 0; p < k; ++p) {
    vec<T> right[Vectors];
#pragma GCC unroll 3
    for (int c = 0; c < Vectors; ++c) right[c] = load(b + c * Lanes);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      T const left = a[r * row];
#pragma GCC unroll 3
      for (int c = 0; c < Vectors; ++c) sum[r][c] += left * right[c];
    }
    a += column;
    b += ldb;
  }
  T* to = ends.to;
  if (ends.add) {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r, to += ends.to_stride) {
#pragma GCC unroll 3
      for (int c = 0; c < Vectors; ++c) save(to + c * Lanes, load(to + c * Lanes) + sum[r][c]);
    }
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r, to += ends.to_stride) {
#pragma GCC unroll 3
      for (int c = 0; c < Vectors; ++c) save(to + c * Lanes, sum[r][c]);
    }
  }
}

/// Copies b[depth, columns] to panel[depth, padded], zero beyond `columns`.
template <class T>
void pack_panel(T const* b, extent ldb, extent depth, extent columns, extent padded, T* panel) {
  constexpr int Lanes = lanes<T>;
  for (extent p = 0; p < depth; ++p, b += ldb, panel += padded) {
    extent c = 0;
    for (; c + Lanes <= columns; c += Lanes) save(panel + c, load(b + c));
    for (; c < columns; ++c) panel[c] = b[c];
    for (; c < padded; ++c) panel[c] = T(0);
  }
}

/// The largest tile: as many sums as the region's registers hold beside one row of B and one element of A.
inline constexpr int tile_rows = PIPE_TILE_ROWS;
inline constexpr int tile_vectors = PIPE_TILE_VECTORS;

/// Columns of the widest tile.
template <class T>
inline constexpr int tile_columns = tile_vectors * lanes<T>;

template <int Vectors, class T>
constexpr void put_tiles(tile_set<T>& set) {
  set.sized[0][Vectors - 1] = &tile<1, Vectors, T>;
  set.sized[1][Vectors - 1] = &tile<2, Vectors, T>;
  set.sized[2][Vectors - 1] = &tile<4, Vectors, T>;
  if constexpr (tile_rows == 8) set.sized[3][Vectors - 1] = &tile<8, Vectors, T>;
}
template <class T>
constexpr tile_set<T> all_tiles() {
  tile_set<T> set;
  set.lanes = lanes<T>;
  set.rows = tile_rows;
  set.vectors = tile_vectors;
  put_tiles<1>(set);
  put_tiles<2>(set);
  if constexpr (tile_vectors == 3) put_tiles<3>(set);
  set.pack_panel = &pack_panel<T>;
  return set;
}
/// What the loops around the tiles of this region call.
template <class T>
inline constexpr tile_set<T> tiles = all_tiles<T>();

}  // namespace pp::host::PIPE_ISA
