// SPDX-License-Identifier: BSL-1.0
//
// The part of the contraction kernel's interface that does not depend on the instruction set:
// operands, sinks, the blocking of the loops, and the workspace of a call, so that the memory plan
// is a constant for all CPUs. The kernel itself is pp::host::<isa>::contract, in
// per_isa/contraction.inl; its loops are in contraction_loops.hpp.
#pragma once

#include <cstddef>

#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/sliced_products.hpp>
#include <pipe/backend/host/tiles.hpp>
#include <pipe/backend/host/values.hpp>
#include <pipe/backend/product_shape.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/passes/value_table.hpp>

namespace pp::host {

using detail::product_shape;

/// Sink: C[i, j] = sum. `ldc` is the distance between rows.
template <class T>
struct store {
  T* c = nullptr;
  extent ldc = 0;
  static constexpr bool adds = false;
};

/// Sink of weight gradients, which are sums over micro-batches: C[i, j] += sum, where the finished
/// sum is added once; or C[i, j] = sum if `adds` is false.
template <class T>
struct accumulate {
  T* c = nullptr;
  extent ldc = 0;
  bool adds = true;
};

/// A sink that the register tile writes itself. Any other sink is a functor with two members,
///
///   template <int Columns> void full(extent i, extent j, int rows, T* sums, extent stride);
///   void part(extent i, extent j, int rows, int columns, T* sums, extent stride);
///
/// called once for every rectangle of C, whose finished sums are sums[r * stride + c] in L1 cache
/// and may be overwritten. `full` is for a constant number of columns, whole vectors, so that its
/// loops vectorise; `part` is for the rest at the right edge. A sink may have the width of its
/// matrix as `static constexpr extent width`; then functions that are never called are not
/// compiled. Rectangles come in any order; each element comes exactly once.
template <class Sink>
concept direct_sink = requires { Sink::adds; };

/// Prologue: called before rows [i, i + rows) of A are first read, in ascending order; it may
/// compute these rows.
struct no_prologue {
  void operator()(extent, extent) const {}
};

/// The blocking of the loops over C[m, n] and of the sum over k. It changes no bit of the result.
struct blocking {
  extent rows;     ///< rows of A for each pass over B
  extent columns;  ///< columns of C whose partial sums are alive together: a multiple of the widest
                   ///< tile's columns, or n
  extent depth;    ///< part of the shared dimension for each tile
  bool pack;       ///< copy each depth x tile panel of B to contiguous memory first
  bool pack_left = false;  ///< copy each rows x depth block of A to panels of a tile's rows first

  /// Elements of the copied block of A: panels of the highest tile, whole lines.
  constexpr extent left_elements() const {
    constexpr extent tile_rows = 8, line = 16;
    extent const panels = (rows + tile_rows - 1) / tile_rows;
    return pack_left ? (panels * tile_rows * depth + line - 1) / line * line : 0;
  }
};

/// Whether copying a panel of B, depth x a tile's columns, pays for m rows of A. In place, the rows
/// of a panel lie apart and evict each other from L1.
constexpr bool copied_panels_pay(extent m, extent n, extent depth, extent tile_columns) {
  return n > tile_columns && m >= (depth > 128 ? 16 : 96);
}

/// The depth of blocks of the shared dimension: about equal blocks, each at most `deepest`.
constexpr extent even_depth(extent k, extent deepest) {
  extent const blocks = (k + deepest - 1) / deepest;
  return blocks > 0 ? (k + blocks - 1) / blocks : 1;
}

/// A tile is narrow if its rows have at most this number of bytes, as with AVX2.
inline constexpr extent narrow_tile_bytes = 96;
/// The blocking for narrow tiles, on processors with 32 KiB of L1 and half a MiB of L2: a panel of
/// B fills three quarters of L1, a block of A half of L2.
constexpr blocking narrow_blocking(extent m, extent n, extent k, extent tile_columns,
                                   extent bytes) {
  constexpr extent deepest = 256, panels = 10;  // panels of C whose partial sums are alive together
  extent const depth = even_depth(k, deepest), rows = 1024 / bytes;
  return {m < rows ? m : rows, (k > deepest ? panels : 1) * tile_columns, depth,
          copied_panels_pay(m, n, depth, tile_columns)};
}

/// Whether rows of B lie in the same sets of L1, so that a panel of them does not stay there.
constexpr bool rows_share_sets(extent n, extent bytes) { return n * bytes % 4096 == 0; }

/// Bytes of a copied block of A, at most.
inline constexpr extent copied_left = 1 << 20;
/// The blocking of a product whose left factor is stored by columns, as that of a weight's gradient
/// is, for wide tiles: a tile would read a part of a cache line of each column, far apart, again
/// for every panel of B. So blocks of A are copied to panels of a tile's rows, once for as many
/// columns of C as have partial sums in L2. Panels of B are read in place from L1, or copied where
/// their rows are so far apart that they do not stay there; a copy serves as many rows of A as fit
/// in L2.
constexpr blocking column_blocking(extent m, extent n, extent k, extent tile_columns,
                                   extent bytes) {
  constexpr extent far_apart = 3072, sharing_rows = 256;
  bool const copies = rows_share_sets(n, bytes) || (n * bytes > far_apart && m >= sharing_rows);
  extent const depth = even_depth(k, (copies ? 2048 : 512) / bytes),
               columns = (copies ? 16 : 32) * tile_columns;
  extent rows = (copies ? 1024 : 512) / bytes;
  if (copies && depth == k) {
    extent const in_cache = copied_left / (depth * bytes) / row_alignment * row_alignment;
    rows = in_cache < 4096 / bytes ? in_cache : 4096 / bytes;
  }
  return {m < rows ? m : rows, depth < k && columns < n ? columns : n, depth,
          copies && copied_panels_pay(m, n, depth, tile_columns), true};
}
/// Whether column_blocking pays: for wide tiles, if copies of A are read again for several panels
/// of B, or for a second one where A does not stay in L2. (A factor stored by rows whose rows have
/// a single element is not told from one stored by columns.)
constexpr bool left_panels_pay(extent m, extent n, extent k, extent tile_columns, extent bytes) {
  constexpr extent least = 32, near_cache = 1 << 20;  // half of L2
  return tile_columns * bytes > narrow_tile_bytes && k >= least &&
         (n > 2 * tile_columns || (n > tile_columns && m * k * bytes > near_cache));
}

/// Bytes of a factor B that is read panel by panel: what fits in L2, or nearly.
inline constexpr extent read_in_place = 2400000;

/// The blocking that measured best. tile_columns: columns of the widest tile; bytes: of an element;
/// by_columns: A is stored by columns.
///
/// For wide tiles, as with AVX-512, on processors with 2 MiB of L2: panels of B are read in place.
/// The shared dimension is read in blocks, so that a panel stays in L1 for many rows of A, beside
/// their partial sums in L2. Where that does not pay, a B that fits in L2, or nearly, is read panel
/// by panel, and stays in L2 for all rows of A; for a larger B and few rows of A, the partial sums
/// of these rows for all columns stay in L2. Rows of a larger B that share sets of L1 evict each
/// other and miss the TLB, so for many rows of A, which share the copies, panels are copied. A
/// product of short sums is bound by the memory of C, which is written a few rows at a time.
constexpr blocking best_blocking(extent m, extent n, extent k, extent tile_columns, extent bytes,
                                 bool by_columns = false) {
  constexpr extent sharing_rows = 256, few_rows = 16, shallow = 32;
  extent const all = k < 1 ? 1 : k;
  if (by_columns && left_panels_pay(m, n, k, tile_columns, bytes))
    return column_blocking(m, n, k, tile_columns, bytes);
  auto const at_most = [](extent limit, extent x) { return x < limit ? x : limit; };
  if (k <= shallow && n >= 8 * tile_columns) return {at_most(2 * few_rows, m), n, all, false};
  if (tile_columns * bytes <= narrow_tile_bytes && m >= few_rows)
    return narrow_blocking(m, n, k, tile_columns, bytes);
  if (m >= 2 * few_rows && n >= 8 * tile_columns && k * bytes >= 1024 &&
      (m <= 2 * sharing_rows || !rows_share_sets(n, bytes)))
    return blocking{at_most(sharing_rows, m), at_most(16 * tile_columns, n),
                    even_depth(k, 512 / bytes), false};
  if (n * k * bytes <= read_in_place) {
    if (k <= 1024) return blocking{at_most(256, m), n, all, false};  // there are no partial sums
    return blocking{at_most(256, m), tile_columns, 256, false};
  }
  if (m <= sharing_rows) return blocking{at_most(128, m), n, at_most(256, all), false};
  return blocking{at_most(1024, m), tile_columns, k <= 768 ? all : extent{512}, true};
}

/// Whether a weight's gradient has so few columns that its transpose is computed: its rows would
/// leave most lanes of a vector empty, whereas those of the transpose are rows of x.
///
/// lanes: of a vector; without them, whether it is so on any instruction set
constexpr bool is_narrow_gradient(extent columns, int lanes = widest_vector_bytes / 4) {
  return 2 * columns <= lanes;
}

/// Whether a product has so few columns that its transpose is computed, if it has a vector of rows:
/// then rows of the left factor are transposed in registers.
///
/// lanes: of a vector; without them, whether it is so on any instruction set
constexpr bool is_narrow_product(extent columns, int lanes = widest_vector_bytes / 4) {
  return 4 * columns <= lanes;
}
/// The blocking of this transpose: panels of the transposed factor stay in L1.
constexpr blocking narrow_product_blocking(extent columns, extent k, extent tile_columns) {
  return {columns, tile_columns, even_depth(k, 128), true};
}

/// The blocking of a product whose right factor is in panels. Processors follow a panel, so that a
/// block may be deeper than one whose rows are read in place.
constexpr blocking panel_blocking(extent m, extent n, extent k, extent tile_columns, extent bytes) {
  constexpr extent rows = 256;
  extent panels = 16;
  // A block must not end one vector before the last column: its last tile would have three vectors,
  // where the panels have two and two.
  while (panels > 1 && n % (panels * tile_columns) * 3 == tile_columns) --panels;
  extent const deepest = tile_columns * bytes <= narrow_tile_bytes ? 256 : 768 / bytes;
  return {m < rows ? m : rows, n < panels * tile_columns ? n : panels * tile_columns,
          even_depth(k, deepest), false};
}

/// Bytes of workspace that a contraction with blocking `cut` needs on any instruction set.
template <class T>
constexpr std::size_t contraction_workspace(extent n, extent k, blocking const& cut) {
  constexpr extent lanes = widest_vector_bytes / sizeof(T), tile_rows = 8, tile_columns = 3 * lanes;
  extent const columns = cut.columns < n ? cut.columns : n;
  extent const copied = cut.pack || cut.depth < lanes ? cut.depth : lanes;
  extent const partial = cut.depth < k ? cut.rows * ((columns + lanes - 1) / lanes * lanes) : 0;
  return static_cast<std::size_t>(tile_rows * tile_columns + cut.left_elements() +
                                  copied * tile_columns + partial) *
         sizeof(T);
}

/// The blocking of a product whose factors are values that are widened block by block: a block of A
/// for all panels of B that are alive together, and each panel once for the rows of a block.
constexpr blocking value_blocking(extent m, extent n, extent k) {
  constexpr extent rows = 256, columns = 768, deepest = 320;  // whole tiles of every set
  return {m < rows ? m : rows, n < columns ? n : columns, even_depth(k, deepest), true};
}

/// The blocking in which a block of sums of slices is computed again, in fp32.
constexpr blocking again_blocking(extent k) {
  return {block_side, panel_columns, even_depth(k, tile_depth * 8), true};
}

/// Bytes of a row of the widest tile of each instruction set.
inline constexpr int tile_bytes[] = {
    isa_traits<isa::portable>::vector_bytes * isa_traits<isa::portable>::tile_vectors,
    isa_traits<isa::avx2>::vector_bytes* isa_traits<isa::avx2>::tile_vectors,
    isa_traits<isa::avx512>::vector_bytes* isa_traits<isa::avx512>::tile_vectors};

/// Bytes of workspace that contract() needs for C[m, n] = A[m, k] * B[k, n] on any instruction set,
/// A stored by rows or by columns.
template <class T>
constexpr std::size_t contraction_workspace(extent m, extent n, extent k, bool by_columns) {
  std::size_t most = 0;
  for (int const bytes : tile_bytes) {
    extent const columns = bytes / int(sizeof(T));
    for (blocking const& cut :
         {best_blocking(m, n, k, columns, sizeof(T), by_columns),
          detail::panels_pay(n, k, sizeof(T)) ? panel_blocking(m, n, k, columns, sizeof(T))
                                              : blocking{}})
      if (std::size_t const needed = contraction_workspace<T>(n, k, cut); needed > most)
        most = needed;
  }
  return most;
}
/// The same for an A stored either way.
template <class T>
constexpr std::size_t contraction_workspace(extent m, extent n, extent k) {
  std::size_t const by_rows = contraction_workspace<T>(m, n, k, false),
                    by_columns = contraction_workspace<T>(m, n, k, true);
  return by_rows > by_columns ? by_rows : by_columns;
}

/// The numbers of rows up to `most` at which a product may need the most workspace, if m is the
/// number of rows, or k, with other extents fixed: the last of each range in which best_blocking
/// takes one branch and even_depth makes one number of blocks.
///
/// use: called for each of them
template <class Use>
constexpr void for_largest_workspaces(extent most, extent n, extent bytes, Use const& use) {
  auto const use_last = [&](extent end) {
    if (end > 0 && end < most) use(end);
  };
  for (extent const end : {16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048}) {
    use_last(end - 1);
    use_last(end);
  }
  use_last(read_in_place / (n * bytes));
  // Whole blocks of value_blocking, of blocking_of_slices and of column_blocking, of which any
  // number is as deep.
  for (extent const depth : {extent(256), extent(320), extent(512), 512 / bytes}) {
    use_last(depth);
    use_last(most / depth * depth);
  }
  // The deepest blocks beside which column_blocking copies as many rows.
  for (extent rows = copied_left / 2048; rows <= 4096 / bytes; rows += row_alignment)
    use_last(copied_left / (rows * bytes));
  use(most);
}

/// Bytes of workspace for C[m, n] = A[m, k] * B[k, n] of values that are widened: the block of A,
/// and that of contract_tiles.
template <class T>
constexpr std::size_t value_product_workspace(extent m, extent n, extent k) {
  blocking const cut = value_blocking(m, n, k);
  return std::size_t(detail::align_up(cut.rows * cut.depth * long(sizeof(T)))) +
         contraction_workspace<T>(n, k, cut);
}

/// Bytes of workspace for C[m, n] = A[m, k] * B[k, n] of this number of slices; of more than one,
/// some sums may be computed again in fp32.
template <class T>
constexpr std::size_t sliced_product_workspace(extent m, extent n, extent k, int slices,
                                               extent made_depth = 0) {
  sliced_blocking const cut = blocking_of_slices(m, n, k, slices, made_depth);
  return std::size_t(sliced_workspace(k, cut, slices).all) +
         (slices > 1 ? contraction_workspace<T>(panel_columns, k, again_blocking(k)) : 0);
}

/// Bytes of workspace for C[m, n] = A[m, k] * B[k, n] of values, by any unit. Slices: of precision;
/// see slices_of.
template <class T, class V>
constexpr long product_workspace(extent m, extent n, extent k, int slices, bool by_columns) {
  long most = 0;
  if (slices < 2)
    most = in_place<T, V> ? long(contraction_workspace<T>(m, n, k, by_columns))
                          : long(value_product_workspace<T>(m, n, k));
  if (slices > 0)
    if (long const needed = long(sliced_product_workspace<T>(m, n, k, slices)); needed > most)
      most = needed;
  return most;
}
/// The same for an A stored either way.
template <class T, class V>
constexpr long product_workspace(extent m, extent n, extent k, int slices) {
  long const by_rows = product_workspace<T, V>(m, n, k, slices, false),
             by_columns = product_workspace<T, V>(m, n, k, slices, true);
  return by_rows > by_columns ? by_rows : by_columns;
}

}  // namespace pp::host
