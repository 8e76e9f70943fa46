// SPDX-License-Identifier: BSL-1.0
//
// The part of the contraction kernel's interface that does not depend on the instruction set:
// operands, sinks, how the loops are blocked, and the workspace a call needs (so that the memory
// plan is a constant before any CPU is seen). The kernel itself is pp::host::<isa>::contract, in
// per_isa/contraction.inl, whose loops are in contraction_loops.hpp.
#pragma once

#include <cstddef>

#include <pipe/base/config.hpp>
#include <pipe/backend/host/isa.hpp>

namespace pp::host {

/// A matrix in memory: element (i, j) is data[i * row + j * column]. `{x, ld, 1}` is row-major,
/// `{x, 1, ld}` its transpose.
template <class T>
struct strided {
  T* data;
  extent row;
  extent column;
};

/// Sink: C[i, j] = sum. `ldc` is the distance between rows.
template <class T>
struct store {
  T* c = nullptr;
  extent ldc = 0;
  static constexpr bool adds = false;
};

/// Sink: C[i, j] += sum, the finished sum being added once; or = sum, where there is nothing yet.
/// Weight gradients over micro-batches.
template <class T>
struct accumulate {
  T* c = nullptr;
  extent ldc = 0;
  bool adds = true;
};

/// A sink that the register tile writes by itself. Any other sink is a functor with two members,
///
///   template <int Columns> void full(extent i, extent j, int rows, T* sums, extent stride);
///   void part(extent i, extent j, int rows, int columns, T* sums, extent stride);
///
/// called once for every rectangle of C, whose finished sums are sums[r * stride + c] in L1 cache
/// and may be overwritten. `full` comes with a constant number of columns, a multiple of the
/// vector, so that its loops vectorise; `part` gets the rest at the right edge. A sink may say how
/// wide its matrix is: `static constexpr extent width`, which spares compiling what is never
/// called. Rectangles come in no promised order; each element comes exactly once.
template <class Sink>
concept direct_sink = requires { Sink::adds; };

/// Prologue: called before rows [i, i + rows) of A are first read, in ascending order; may compute
/// those rows.
struct no_prologue {
  void operator()(extent, extent) const {}
};

/// How the loops over C[m, n] and the sum over k are cut. The result's bits do not depend on it.
struct blocking {
  extent rows;     ///< of A per pass over B
  extent columns;  ///< of C whose partial sums are alive together: a multiple of the widest tile's,
                   ///< or n
  extent depth;    ///< of the shared dimension per tile
  bool pack;       ///< copy each depth x tile panel of B to contiguous memory first
};

/// Whether a copied panel of B, depth x a tile's columns, pays for m rows of A: the rows of B lie
/// apart and evict each other from L1.
constexpr bool copied_panels_pay(extent m, extent n, extent depth, extent tile_columns) {
  return n > tile_columns && m >= (depth > 128 ? 16 : 96);
}

/// The depth of blocks of the shared dimension that are about equal, and at most `deepest`.
constexpr extent even_depth(extent k, extent deepest) {
  extent const blocks = (k + deepest - 1) / deepest;
  return blocks > 0 ? (k + blocks - 1) / blocks : 1;
}

/// Tiles are narrow whose rows have at most that many bytes, as of AVX2.
inline constexpr extent narrow_tile_bytes = 96;
/// The blocking of narrow tiles, on processors that have 32 KiB of L1 and half a MiB of L2: panels
/// of B fill three quarters of L1, blocks of A half of L2.
constexpr blocking narrow_blocking(extent m, extent n, extent k, extent tile_columns,
                                   extent bytes) {
  constexpr extent deepest = 256, panels = 10;  // panels of C whose partial sums are alive
  extent const depth = even_depth(k, deepest), rows = 1024 / bytes;
  return {m < rows ? m : rows, (k > deepest ? panels : 1) * tile_columns, depth,
          copied_panels_pay(m, n, depth, tile_columns)};
}

/// The blocking that measured best. `tile_columns` is the widest tile's, `bytes` an element's size.
///
/// For wide tiles, as of AVX-512, on processors with 2 MiB of L2: a B that fits in L2, or nearly,
/// is read in place, panel by panel, and stays there for every row of A. A larger one is read block
/// by block of p for a few rows of A, whose partial sums for all columns then stay in L2; but its
/// rows are so far apart that they evict each other from L1 and miss the TLB: panels are copied if
/// enough rows of A share a copy.
constexpr blocking best_blocking(extent m, extent n, extent k, extent tile_columns, extent bytes) {
  constexpr extent near_cache = 2400000, sharing_rows = 256, few_rows = 16;
  if (tile_columns * bytes <= narrow_tile_bytes && m >= few_rows)
    return narrow_blocking(m, n, k, tile_columns, bytes);
  extent const all = k < 1 ? 1 : k;
  auto const at_most = [](extent limit, extent x) { return x < limit ? x : limit; };
  if (n * k * bytes <= near_cache)
    return blocking{at_most(256, m), tile_columns, k <= 1024 ? all : extent{256}, false};
  if (m <= sharing_rows) return blocking{at_most(128, m), n, at_most(256, all), false};
  return blocking{at_most(1024, m), tile_columns, k <= 768 ? all : extent{512}, true};
}

/// Bytes of workspace that a contraction cut in this way needs on any instruction set.
template <class T>
constexpr std::size_t contraction_workspace(extent n, extent k, blocking const& cut) {
  constexpr extent lanes = widest_vector_bytes / sizeof(T), tile_rows = 8, tile_columns = 3 * lanes;
  extent const columns = cut.columns < n ? cut.columns : n;
  extent const copied = cut.pack || cut.depth < lanes ? cut.depth : lanes;
  extent const partial = cut.depth < k ? cut.rows * ((columns + lanes - 1) / lanes * lanes) : 0;
  return static_cast<std::size_t>(tile_rows * tile_columns + copied * tile_columns + partial) *
         sizeof(T);
}

/// Bytes of a row of the widest tile of each instruction set.
inline constexpr int tile_bytes[] = {
    isa_traits<isa::portable>::vector_bytes * isa_traits<isa::portable>::tile_vectors,
    isa_traits<isa::avx2>::vector_bytes* isa_traits<isa::avx2>::tile_vectors,
    isa_traits<isa::avx512>::vector_bytes* isa_traits<isa::avx512>::tile_vectors};

/// Bytes of workspace that contract() needs for C[m, n] = A[m, k] * B[k, n] on any instruction set.
template <class T>
constexpr std::size_t contraction_workspace(extent m, extent n, extent k) {
  std::size_t most = 0;
  for (int const bytes : tile_bytes) {
    blocking const cut = best_blocking(m, n, k, bytes / int(sizeof(T)), sizeof(T));
    std::size_t const needed = contraction_workspace<T>(n, k, cut);
    if (needed > most) most = needed;
  }
  return most;
}

}  // namespace pp::host
