// SPDX-License-Identifier: BSL-1.0
//
// Narrow layers on rows of a batch: tiles of rows and weights in shared memory, and products of
// both, whose finished rows become the next tile. Sums have the order of contraction_tiles, and
// epilogues are the group's own, so a layer computes the same bits here and in contraction_tiles.
#pragma once

#include <utility>

#include <pipe/backend/cuda/matmul/contraction_group.hpp>
#include <pipe/backend/cuda/matmul/contraction_slab.hpp>
#include <pipe/backend/cuda/matmul/contraction_warp.hpp>
#include <pipe/backend/cuda/narrow_mlp/chain_rule.hpp>
#include <pipe/passes/chains.hpp>

namespace pp::cuda {

/// A product (Rows, Columns) as sums in the registers of a block: units of 16 rows and `Unit`
/// columns, spread over the warps. A warp without a unit repeats the work of the last unit, so that
/// all warps execute the same instructions.
template <int Rows, int Columns, int Unit>
struct narrow_product {
  static_assert(Rows % 16 == 0 && Columns % Unit == 0 && Unit % 16 == 0);
  static constexpr int units_down = Rows / 16, units_across = Columns / Unit, tiles = Unit / 8;
  static constexpr warp_grid grid = spread_warps(units_down, units_across);
  static constexpr int down = grid.down, across = grid.across * tiles, sums = down * across;

  PIPE_HD PIPE_INLINE static int unit_down(int thread, int i) {
    return thread / warp_size / grid.columns * down + i;
  }
  PIPE_HD PIPE_INLINE static int unit_across(int thread, int j) {
    return thread / warp_size % grid.columns * grid.across + j / tiles;
  }
  /// Whether sums of row i and column j of the thread's small tiles are in the product.
  PIPE_HD PIPE_INLINE static bool is_inside(int thread, int i, int j) {
    return (grid.rows * down == units_down || unit_down(thread, i) < units_down) &&
           (grid.columns * grid.across == units_across || unit_across(thread, j) < units_across);
  }
  /// The first row of the small tiles in row i, and the first column of the small tiles in column
  /// j; outside of the product, the row or column of the last unit.
  PIPE_HD PIPE_INLINE static int row(int thread, int i) {
    int const unit = unit_down(thread, i);
    return (grid.rows * down == units_down || unit < units_down ? unit : units_down - 1) * 16;
  }
  PIPE_HD PIPE_INLINE static int column(int thread, int j) {
    int const unit = unit_across(thread, j);
    return (grid.columns * grid.across == units_across || unit < units_across ? unit
                                                                              : units_across - 1) *
               Unit +
           j % tiles * 8;
  }

  template <class Block, class Sums>
  PIPE_HD PIPE_INLINE static void clear(Block& block, Sums to) {
    block.part([&](int, typename Block::state& mine) {
      PIPE_UNROLL
      for (int i = 0; i < sums; ++i) {
        PIPE_UNROLL
        for (int c = 0; c < 4; ++c) to(mine)[i][c] = 0;
      }
    });
  }
};

/// Elements that a thread finishes together: with columns of the weights in the order of
/// `place_of_column`, sums of neighbouring small tiles are neighbours in a row, 16 bytes together.
template <class T>
inline constexpr int narrow_each = 16 / int(sizeof(T));
/// Columns of a unit of a product of which a thread finishes `each` elements together.
constexpr int narrow_unit(int each) { return 4 * each < 16 ? 16 : 4 * each; }

/// The place in shared memory of column n of the weights: a permutation within 4 Each columns,
/// after which a thread's sums of neighbouring small tiles are neighbours in a row. For two
/// elements the permutation is the identity.
template <int Each>
PIPE_HD PIPE_INLINE int place_of_column(int n) {
  int const r = n % (4 * Each);
  return n - r + r % Each / 2 * 8 + r / Each * 2 + r % 2;
}

/// Weights [Inner, Columns] in shared memory, with columns in the order of place_of_column.
/// IsTransposed: a row in shared memory has the weights of a column.
template <class T, int Inner, int Columns, bool IsTransposed>
using narrow_weights =
    operand_slab<T, narrow_columns(IsTransposed ? Inner : Columns, sizeof(T)),
                 narrow_columns(IsTransposed ? Columns : Inner, sizeof(T)), true>;
/// Rows of a batch in shared memory, with up to `Columns` columns.
template <class T, int Rows, int Columns>
using narrow_rows = operand_slab<T, narrow_columns(Columns, sizeof(T)), Rows, true>;

/// Starts the copy of `Count` elements, or writes zeros. Is called in a phase; the elements have
/// arrived when the block has awaited its copies.
template <int Count, class T, class Block>
PIPE_HD PIPE_INLINE void copy_some(Block& block, T* to, T const* from, bool present) {
  if constexpr (Count * sizeof(T) >= 4)
    copy_async<Count* int(sizeof(T))>(block, to, from, present);
  else
    *to = present ? *from : T(0.0f);
}

template <class T, int Columns>
inline constexpr int copied_together = access_width<T>(Columns);

/// Starts the copy of weights to shared memory, with zeros around them. Each: the parameter of
/// place_of_column.
///
/// shape: from (Inner, Columns), or (Columns, Inner) if IsTransposed -> to (narrow_columns(Inner),
///        narrow_columns(Columns))
template <int Inner, int Columns, bool IsTransposed, int Each, class T, class Block>
PIPE_HD PIPE_INLINE void copy_weights(Block& block,
                                      narrow_weights<T, Inner, Columns, IsTransposed>& to,
                                      T const* from) {
  using slab = narrow_weights<T, Inner, Columns, IsTransposed>;
  constexpr int rows = IsTransposed ? Columns : Inner, columns = IsTransposed ? Inner : Columns,
                each = IsTransposed       ? copied_together<T, columns>
                       : columns % 2 == 0 ? 2
                                          : 1,
                pieces = slab::columns / each;
  block.part([&](int thread, typename Block::state&) {
    for (int i = thread; i < slab::rows * pieces; i += narrow_threads) {
      int const r = i / pieces, c = i % pieces * each;
      bool const present = r < rows && c < columns;
      int const row = IsTransposed ? place_of_column<Each>(r) : r,
                column = IsTransposed ? c : place_of_column<Each>(c);
      copy_some<each>(block, to.element + row * slab::stride + column,
                      from + (present ? r * columns + c : 0), present);
    }
  });
}

/// Starts the copy of a tile: rows [row, end) of a matrix, at most as many as the tile has; zeros
/// beyond the end.
///
/// shape: from (rows, Columns) -> to (Slab::rows, narrow_columns(Columns))
template <int Columns, class Slab, class T, class Block>
PIPE_HD PIPE_INLINE void copy_rows(Block& block, Slab& to, T const* from, extent row, extent end) {
  constexpr int each = copied_together<T, Columns>,
                pieces = narrow_rows<T, 1, Columns>::columns / each;
  block.part([&](int thread, typename Block::state&) {
    for (int i = thread; i < Slab::rows * pieces; i += narrow_threads) {
      int const r = i / pieces, c = i % pieces * each;
      bool const present = row + r < end && c < Columns;
      copy_some<each>(block, to.element + r * Slab::stride + c,
                      from + (present ? (row + r) * Columns + c : 0), present);
    }
  });
}

/// Stores the results of a group in a chain, if they have a place in memory. Dropped: the finished
/// rows, operand Handed, have no place.
template <int Handed, bool Dropped>
struct narrow_stores {
  template <int Index, class T, int Count>
  PIPE_HD PIPE_INLINE void take(arguments const& a, extent at, float const (&v)[Count]) const {
    if constexpr (!(Dropped && Index == Handed))
      if (a.operand[Index] != nullptr) save<Count>(a.at<T>(Index) + at, v);
  }
};
/// The index of the operand that the next launch of a chain reads.
template <class P, int G>
inline constexpr int handed_index = narrow_chain_rule{}.handed(group_of<P, G>::value);

/// The product of a tile's rows with the weights of group G, a matmul or the gradient of one's
/// input. Each: the number of elements that a thread finishes together.
///
/// shape: tile (Rows, inner), weights (inner, columns), both in shared memory -> sums (Rows,
///        columns) in registers
/// law:   sums run over k as in contraction_tiles: the same bits
template <class P, int G, int Rows, int Each = narrow_each<typename P::element>>
struct narrow_layer {
  using T = typename P::element;
  static constexpr int inner = group_of<P, G>::value.attributes.contraction().inner,
                       columns = group_of<P, G>::value.columns;
  static constexpr product_format format = contraction<P, G>::format;
  static constexpr bool is_transposed = contraction<P, G>::transposes_right;
  using weights = narrow_weights<T, inner, columns, is_transposed>;
  using product = narrow_product<Rows, narrow_columns(columns, sizeof(T)), narrow_unit(Each)>;
  static constexpr int each = Each,
                       together = access_width<T>(columns) < each ? access_width<T>(columns) : each;

  /// Starts the copy of the weights to shared memory.
  template <class Block>
  PIPE_HD PIPE_INLINE static void copy(Block& block, arguments const& a, weights& to) {
    copy_weights<inner, columns, is_transposed, each>(block, to, contraction<P, G>::right(a));
  }

  /// sums = tile weights. Is called when both have arrived; state has `sums` and `operands`.
  template <class Block, class Slab>
  PIPE_HD PIPE_INLINE static void multiply(Block& block, Slab const& tile, weights const& w) {
    using state = typename Block::state;
    constexpr operand_format operands = operands_in<format>;
    constexpr int tile_depth = cuda::tile<operands>::inner;
    product::clear(block, [](state& mine) { return mine.sums; });
    constexpr int deep = 64 / int(sizeof(T));
#ifdef __CUDA_ARCH__
#pragma unroll 1  // so that a thread needs fewer registers
#endif
    for (int first = 0; first < narrow_columns(inner, sizeof(T)); first += deep) {
      PIPE_UNROLL
      for (int k = 0; k < deep; k += tile_depth)
        multiply_once<format, product::down, product::across>(
            block, [](state& mine) -> auto& { return mine.operands; },
            [](state& mine, int i, int j) { return mine.sums[i * product::across + j]; },
            [&](int i, auto access) {
              tile.load_rows(
                  block, first + k, [&](int thread) { return product::row(thread, i); }, access);
            },
            [&](int j, auto access) {
              auto const column = [&](int thread) { return product::column(thread, j); };
              if constexpr (is_transposed)
                w.load_columns(block, first + k, column, access);
              else
                w.template load_right<operands>(block, first + k, column, access);
            },
            [] {});
    }
  }

  using ops = chain<P, G, true>;
  using seconds = typename ops::template seconds<together>;  ///< operands of the epilogue
  /// wide: pieces of `each` elements in a row of a thread's small tiles. ahead: the number of
  /// pieces whose operands are loaded together, into 16 registers.
  static constexpr int wide = product::across / (each / 2);
  static constexpr int ahead = [] {
    int words = 0;
    for (detail::pointwise_op const& s : group_of<P, G>::value.epilogue)
      if (s.kind != op_kind::map && s.kind != op_kind::dropout)
        words += together * int(sizeof(T)) < 4 ? 1 : together * int(sizeof(T)) / 4;
    int most = wide;
    while (most > 1 && (most * 2 * (each / together) * words > 16 || wide % most != 0)) --most;
    return most;
  }();

  /// Finishes a thread's elements of the tile of rows [row, row + Rows), as far as before `end`,
  /// some at a time: calls fetch(row of the tile, column, z) and, later, finish(row of the tile,
  /// column, elements, z). Keeps: the finished elements become the tile `next`. Whole: no row is
  /// beyond the end.
  ///
  /// work: if accesses are as wide as pieces, the loads of operands of `ahead` pieces are started
  ///       before the first of these pieces is stored
  template <bool Keeps, bool Whole, class State, class Slab, class Fetch, class Finish>
  PIPE_HD PIPE_INLINE static void finish_each(int thread, State& mine, extent row, extent end,
                                              Slab& next, Fetch fetch, Finish finish_some) {
    int const lane = thread % warp_size;
    constexpr int pieces = each / together;
    auto const row_at = [&](int i, int half) {
      return product::row(thread, i) + place_in_c(lane, 2 * half).row;
    };
    auto const column_at = [&](int w) {
      return product::column(thread, w * (each / 2)) + lane % 4 * each;
    };
    auto const is_present = [&](int r, int column) {
      return (Whole || row + r < end) &&
             (columns == narrow_columns(columns, sizeof(T)) || column < columns);
    };
    PIPE_UNROLL
    for (int i = 0; i < product::down; ++i) {
      PIPE_UNROLL
      for (int first = 0; first < wide; first += ahead) {
        seconds z[ahead][2][pieces];
        auto const each_piece = [&](auto take) {
          PIPE_UNROLL
          for (int w = 0; w < ahead; ++w) {
            if (!product::is_inside(thread, i, (first + w) * (each / 2))) continue;
            PIPE_UNROLL
            for (int half = 0; half < 2; ++half)
              take(first + w, half, row_at(i, half), column_at(first + w), z[w][half]);
          }
        };
        if constexpr (pieces == 1)
          each_piece([&](int, int, int r, int c, seconds(&of)[pieces]) {
            if (is_present(r, c)) fetch(r, c, of[0]);
          });
        each_piece([&](int w, int half, int r, int c, seconds(&of)[pieces]) {
          float v[each];
          PIPE_UNROLL
          for (int e = 0; e < pieces; ++e) {
            float some[together];
            PIPE_UNROLL
            for (int k = 0; k < together; ++k) {
              int const at = e * together + k;
              some[k] = mine.sums[i * product::across + w * (each / 2) + at / 2][2 * half + at % 2];
            }
            bool const present = is_present(r, c + e * together);
            if constexpr (pieces > 1)
              if (present) fetch(r, c + e * together, of[e]);
            if (present) finish_some(r, c + e * together, some, of[e]);
            PIPE_UNROLL
            for (int k = 0; k < together; ++k) v[e * together + k] = present ? some[k] : 0;
          }
          if constexpr (Keeps)
            save<each, memory_space::shared>(next.element + r * Slab::stride + c, v);
        });
      }
    }
  }
  /// finish_each by the group's epilogue, whose second operands and results are in memory. Dropped:
  /// the finished rows have no place in memory.
  template <bool Keeps, bool Whole, bool Dropped, class State, class Slab>
  PIPE_HD PIPE_INLINE static void finish_rows(arguments const& a, int thread, State& mine,
                                              extent row, extent end, Slab& next) {
    finish_each<Keeps, Whole>(
        thread, mine, row, end, next,
        [&](int r, int column, seconds& z) { ops::fetch(a, row + r, column, z); },
        [&](int r, int column, float(&some)[together], seconds const& z) {
          finish<P, G>(a, row + r, column, some, z, narrow_stores<handed_index<P, G>, Dropped>{});
        });
  }
};

/// The weights of layer Index: a base of a struct that has the weights of several layers.
template <int Index, class Slab>
struct numbered_slab {
  Slab slab;
};
/// The slab of layer Index, from a struct with such bases.
template <int Index, class Slab>
PIPE_HD PIPE_INLINE Slab& slab_of(numbered_slab<Index, Slab>& layers) {
  return layers.slab;
}

/// The launches of a chain, each with its own operands.
template <int Count>
struct chain_arguments {
  arguments of[Count]{};
};
static_assert(sizeof(chain_arguments<detail::chain_kernel::most>) <= 4096,
              "what a kernel may be called with");

/// Launch Index, for device code.
template <int Index, int... G>
inline constexpr int launch_at = [] {
  constexpr int all[] = {G...};
  return all[Index];
}();

}  // namespace pp::cuda
