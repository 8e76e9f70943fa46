// SPDX-License-Identifier: BSL-1.0
//
// The register tile: the one inner loop that contraction, attention and convolution share. A tile
// of Rows x Vectors sums is in registers while p runs over the shared dimension. A is read one
// broadcast element at a time through two strides, so a transposed A costs nothing; B is read one
// row of vectors at a time.

/// The distance in rows at which a tile fetches B ahead.
inline constexpr extent rows_ahead = 8;

/// Whether a tile is so deep that B does not stay in the first cache from the tile before, and that
/// what the tile fetches arrives before its end.
template <class T>
constexpr bool is_deep(extent k, int vectors) {
  constexpr extent near_cache = 24 * 1024;  // bytes
  return k * vectors * this_isa::vector_bytes > near_cache;
}
/// Whether a deep tile fetches B ahead: where its rows are far apart, as no processor follows a few
/// such streams by itself.
template <class T>
constexpr bool is_fetched_ahead(extent ldb) {
  constexpr extent far_apart = 1024;  // bytes
  return ldb * extent(sizeof(T)) > far_apart;
}

/// to (+)= from + a b for Rows x Vectors vectors of sums, all in registers.
///
/// shape: of.a (Rows, k), of.b (k, Vectors * lanes) -> ends.to (Rows, Vectors * lanes), row stride
///        ends.to_stride
/// law:   every sum is one chain of fused multiply-adds over ascending p, for any Rows and Vectors.
///        A sum that starts from `ends.from` continues the chain of that sum; `ends.add` adds the
///        finished sum once.
/// cost:  per p, Vectors loads and Rows broadcasts for Rows * Vectors multiply-adds: the largest
///        tile is bound by the multipliers, small ones by the loads
template <int Rows, int Vectors, class T>
[[gnu::noinline]] void tile(tile_factors<T> const& of, tile_ends<T> const& ends) {
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
  // One row of b is in registers while all rows of a are multiplied by it.
  T const *a = of.a.data, *b = of.b;
  extent const row = of.a.row, column = of.a.column, ldb = of.ldb;
  bool const deep = is_deep<T>(of.k, Vectors);
  extent const ahead = deep && is_fetched_ahead<T>(ldb) ? rows_ahead * ldb : 0;
  if (deep && ends.to_stride != Vectors * Lanes) {  // not to sums that follow each other
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 3
      for (int c = 0; c < Vectors; ++c)
        __builtin_prefetch(ends.to + r * ends.to_stride + c * Lanes, 1);
    }
  }
  for (extent p = of.k; p > 0; --p) {
    vec<T> right[Vectors];
#pragma GCC unroll 3
    for (int c = 0; c < Vectors; ++c) {
      right[c] = load(b + c * Lanes);
      hold<T>(right[c]);
      if (ahead != 0) __builtin_prefetch(b + ahead + c * Lanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      vec<T> const left = all_lanes(a[r * row]);
#pragma GCC unroll 3
      for (int c = 0; c < Vectors; ++c) sum[r][c] = multiply_add(left, right[c], sum[r][c]);
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

/// A copy whose rows are padded with zeros: to[r, c] = c < columns ? from[r, c] : 0, c < padded.
///
/// shape: from (rows, columns), row stride `stride` -> to (rows, padded), row stride to_stride
/// needs: `to` and `from` do not overlap
template <class T>
void copy_rows(T const* from, extent stride, extent rows, extent columns, extent padded, T* to,
               extent to_stride) {
  for (extent r = 0; r < rows; ++r, from += stride, to += to_stride) {
    extent c = 0;
    for (; c + lanes<T> <= columns; c += lanes<T>) save(to + c, load(from + c));
    for (; c < columns; ++c) to[c] = from[c];
    for (; c < padded; ++c) to[c] = T(0);
  }
}

/// The largest tile: as many sums as the registers hold beside one row of B and one
/// element of A.
inline constexpr int tile_rows = this_isa::tile_rows;
inline constexpr int tile_vectors = this_isa::tile_vectors;

/// Columns of the widest tile.
template <class T>
inline constexpr int tile_columns = tile_vectors * lanes<T>;

/// The tile of this number of rows and vectors; Least: see least_tile_rows.
template <int Least, int Vectors, class T>
void tile_of(int rows, tile_factors<T> const& of, tile_ends<T> const& ends) {
  if constexpr (Least <= 1)
    if (rows == 1) return tile<1, Vectors>(of, ends);
  if constexpr (Least <= 2)
    if (rows == 2) return tile<2, Vectors>(of, ends);
  if constexpr (Least <= 4 && tile_rows > 4)
    if (rows == 4) return tile<4, Vectors>(of, ends);
  return tile<tile_rows, Vectors>(of, ends);
}
template <int Least, class T>
void tile_of(int rows, int vectors, tile_factors<T> const& of, tile_ends<T> const& ends) {
  if (vectors == 1) return tile_of<Least, 1>(rows, of, ends);
  if (vectors == 2) return tile_of<Least, 2>(rows, of, ends);
  return tile_of<Least, tile_vectors>(rows, of, ends);
}

/// The table of tiles for loops whose numbers of rows are all multiples of Least.
template <class T, int Least = 1>
inline constexpr tile_set<T> tiles{lanes<T>,           tile_rows,     tile_vectors,
                                   &tile_of<Least, T>, &copy_rows<T>, &transpose<T>};
