// SPDX-License-Identifier: BSL-1.0
//
// The common part of the kernels of a chain's gradients: the rows of a block, and the sums of the
// weights' gradients, which stay in a thread's registers over all tiles of rows. Blocks take rows
// in turn as the splits of the weights' plans do, so the sums have the same bits as in
// contraction_tiles.
#pragma once

#include <pipe/backend/cuda/matmul/contraction.hpp>
#include <pipe/backend/cuda/narrow_mlp/tile.hpp>
#include <pipe/base/list.hpp>

namespace pp::cuda {

/// The gradient of a weight, dw (inner, columns) = x^T dy, as sums in the registers of a block over
/// all its tiles.
///
/// law: a block has the rows of a split of contraction_tiles, in the same order: the same bits
template <class P, int G>
struct narrow_weight_sums {
  using T = typename P::element;
  using whole = contraction<P, G>;
  static constexpr tile_plan plan = plan_for(whole::shape, whole::format);
  using tiles = contraction_tiles<P, G, plan>;
  static constexpr int inner = group_of<P, G>::value.attributes.contraction().inner,
                       columns = group_of<P, G>::value.columns;
  using product =
      narrow_product<narrow_columns(inner, sizeof(T)), narrow_columns(columns, sizeof(T)), 16>;

  /// sums += x^T dy over `left` rows of a tile. to(state): the first of the weight's sums;
  /// columns_of(state): the first of the bias's sums.
  template <int Rows, class Block, class X, class Dy, class Sums, class ColumnSums>
  PIPE_HD PIPE_INLINE static void add(Block& block, X const& x, Dy const& dy, int left, Sums to,
                                      ColumnSums columns_of) {
    using state = typename Block::state;
    constexpr operand_format operands = operands_in<whole::format>;
    constexpr int tile_depth = cuda::tile<operands>::inner, deep = 64 / int(sizeof(T));
#ifdef __CUDA_ARCH__
#pragma unroll 1  // so that a thread needs fewer registers
#endif
    for (int first = 0; first < Rows && first < left; first += deep) {
      PIPE_UNROLL
      for (int k = 0; k < deep; k += tile_depth)
        multiply_once<whole::format, product::down, product::across>(
            block, [](state& mine) -> auto& { return mine.operands; },
            [&](state& mine, int i, int j) { return to(mine)[i * product::across + j]; },
            [&](int i, auto access) {
              x.template load_left<operands>(
                  block, first + k, [&](int thread) { return product::row(thread, i); }, access);
            },
            [&](int j, auto access) {
              dy.template load_right<operands>(
                  block, first + k, [&](int thread) { return product::column(thread, j); }, access);
            },
            [&] {
              if constexpr (whole::sums_bias)
                block.part([&](int thread, state& mine) {
                  if (product::unit_down(thread, 0) == 0)
                    add_columns<whole::format, T, product::across>(columns_of(mine), mine.operands);
                });
            });
    }
  }

  /// Stores the complete sums, of a split or of all rows, by the function of contraction_tiles that
  /// stores a tile, so that both write the same bits.
  template <class Block, class Sums, class ColumnSums>
  PIPE_HD PIPE_INLINE static void take(Block& block, arguments const& a, Sums to,
                                       ColumnSums columns_of) {
    using state = typename Block::state;
    constexpr int each = columns % 2 == 0 ? 2 : 1;
    typename tiles::place const at{0, 0, tiles::split ? int(block.position()) : 0, 0, 0};
    block.part([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int i = 0; i < product::down; ++i) {
        PIPE_UNROLL
        for (int j = 0; j < product::across; ++j) {
          PIPE_UNROLL
          for (int c = 0; c < 4; c += each) {
            tile_place const p = place_in_c(thread % warp_size, c);
            int const row = product::row(thread, i) + p.row,
                      column = product::column(thread, j) + p.column;
            float v[each];
            PIPE_UNROLL
            for (int e = 0; e < each; ++e) v[e] = to(mine)[i * product::across + j][c + e];
            if (product::is_inside(thread, i, j) && row < inner && column < columns)
              tiles::template take<each>(a, at, row, column, v);
          }
        }
      }
    });
    if constexpr (whole::sums_bias) {
      PIPE_UNROLL
      for (int j = 0; j < product::across; ++j)  // four lanes share a column
        reduce_lanes<4>(block, [&](state& mine) -> float& { return columns_of(mine)[j]; }, plus{});
      block.part([&](int thread, state& mine) {
        PIPE_UNROLL
        for (int j = 0; j < product::across; ++j) {
          int const column = product::column(thread, j) + thread % warp_size / 4;
          bool const is_mine =
              product::unit_down(thread, 0) == 0 && product::is_inside(thread, 0, j);
          float v[1] = {columns_of(mine)[j]};
          if (is_mine && thread % 4 == 0 && column < columns)
            tiles::template take<1>(a, at, tiles::shape.rows, column, v);
        }
      });
    }
  }
};

/// The gradients of a level, all computed from the same dy: the numbers of the launches of the
/// weight's and then of the input's gradient; -1: none.
struct narrow_level {
  int weight = -1, input = -1;
};
/// The levels of a chain of gradients, from the last layer down.
///
/// law: every level has a gradient of an input, but the last may have a weight's gradient alone
template <class P, int... G>
struct narrow_levels {
  static constexpr int launches = sizeof...(G);
  static constexpr auto is_input = detail::list<bool, launches>{
      {(group_of<P, G>::value.anchor == op_kind::matmul_input_gradient)...}};
  static constexpr int count = [] {
    int n = 0;
    for (bool const b : is_input) n += b;
    return n + !is_input[launches - 1];
  }();
  static constexpr auto all = [] {
    detail::list<narrow_level, count> l;
    for (int i = 0, n = 0; i < launches; ++i)
      if (is_input[i])
        l[n++].input = i;
      else
        l[n].weight = i;
    return l;
  }();
  template <int L>
  static constexpr narrow_level at = all[L];
};

/// The gradients of a chain, launches G; the first of them is launch First of the kernel. A
/// thread's state has `kept`, the thread's sums.
template <class P, int Rows, int First, int... G>
struct narrow_gradients {
  static constexpr int launches = sizeof...(G);
  using T = typename P::element;
  using levels = narrow_levels<P, G...>;
  template <int Index>
  static constexpr bool makes_weight = !levels::is_input[Index];
  template <int Index>
  using weight_sums = narrow_weight_sums<P, launch_at<Index, G...>>;

  /// The number of sums of weights' gradients, each four floats, that a thread keeps for the
  /// launches before Index.
  template <int Index>
  static constexpr int sums_before() {
    return []<int... K>(std::integer_sequence<int, K...>) {
      return (0 + ... + (makes_weight<K> ? weight_sums<K>::product::sums : 0));
    }(std::make_integer_sequence<int, Index>{});
  }
  /// The number of sums of biases' gradients that a thread keeps for the launches before Index.
  template <int Index>
  static constexpr int columns_before() {
    return []<int... K>(std::integer_sequence<int, K...>) {
      return (0 + ... + (makes_weight<K> ? weight_sums<K>::product::across : 0));
    }(std::make_integer_sequence<int, Index>{});
  }
  template <int Index>
  static constexpr int first_sum = sums_before<Index>();
  template <int Index>
  static constexpr int first_column = columns_before<Index>();

  static constexpr bool has_weights = sums_before<launches>() > 0;
  template <int... N>
  static constexpr int most() {
    int m = 1;
    ((m = N > m ? N : m), ...);
    return m;
  }
  /// The widths of the operands of launch Index: dy, and the layer's input for a weight's gradient.
  template <int Index>
  static constexpr int width_of_dy =
      group_of<P, Index>::value.anchor == op_kind::matmul_input_gradient
          ? group_of<P, Index>::value.attributes.contraction().inner
          : group_of<P, Index>::value.columns;
  template <int Index>
  static constexpr int width_of_x =
      group_of<P, Index>::value.anchor == op_kind::matmul_input_gradient
          ? 0
          : group_of<P, Index>::value.attributes.contraction().inner;
  static constexpr int width = width_of_dy<launch_at<0, G...>>,
                       widest_dy = most<width_of_dy<G>...>(), widest_x = most<width_of_x<G>...>();

  // ---- the rows of a block ----

  static constexpr extent rows = extent(group_of<P, launch_at<0, G...>>::value.rows) * P::samples;
  /// A launch that computes a weight's gradient: all such launches have the same splits of rows.
  static constexpr int a_weight = [] {
    int last = -1;
    for (int i = 0; i < launches; ++i)
      if (!levels::is_input[i]) last = i;
    return last;
  }();
  /// The number of blocks: one for each split of the weights' sums, or for an equal number of
  /// tiles.
  static constexpr extent blocks_of() {
    extent const tiles = (rows + Rows - 1) / Rows,
                 each = (tiles + narrow_blocks - 1) / narrow_blocks;
    if constexpr (has_weights)
      return weight_sums<a_weight>::plan.splits;
    else
      return (tiles + each - 1) / each;
  }
  static constexpr extent blocks_in_all = blocks_of();
  /// The rows that a block takes in turn, in one tile or several.
  static constexpr extent turn = has_weights ? narrow_turn : Rows;
  static_assert(turn % Rows == 0);
  template <int H>
  static constexpr bool is_split_alike() {
    if constexpr (group_of<P, H>::value.anchor == op_kind::matmul_weight_gradient)
      return narrow_weight_sums<P, H>::plan.splits == blocks_in_all &&
             narrow_weight_sums<P, H>::plan.together * narrow_weight_sums<P, H>::plan.depth == turn;
    return true;
  }
  static_assert((... && is_split_alike<G>()),
                "weights whose sums are split differently are in no run");
  /// Whether no tile has rows beyond the end.
  static constexpr bool is_whole = rows % Rows == 0;
  /// The first row of a block's first tile, and of the tile behind the tile that begins with `row`.
  PIPE_HD PIPE_INLINE static extent first_row(extent block) { return block * turn; }
  PIPE_HD PIPE_INLINE static extent next_row(extent row) {
    extent const next = row + Rows;
    return turn == Rows || next % turn == 0 ? next + (blocks_in_all - 1) * turn : next;
  }

  /// A thread's sums of all weights' and biases' gradients.
  struct kept_sums {
    float weights[has_weights ? sums_before<launches>() : 1][4];
    float columns[has_weights ? columns_before<launches>() : 1];

    PIPE_HD PIPE_INLINE void clear() {
      PIPE_UNROLL
      for (auto& sums : weights) {
        PIPE_UNROLL
        for (float& s : sums) s = 0;
      }
      PIPE_UNROLL
      for (float& s : columns) s = 0;
    }
  };

  /// Starts the copy of rows [row, end) of the first dy: the second operand of a weight's gradient,
  /// or the first operand of an input's gradient.
  template <class Block, class Slab, class Arguments>
  PIPE_HD PIPE_INLINE static void start_dy(Block& block, Slab& to, Arguments const& a, extent row,
                                           extent end) {
    using of = contraction<P, launch_at<0, G...>>;
    if constexpr (makes_weight<0>)
      copy_rows<width>(block, to, of::right(a.of[First]), row, end);
    else
      copy_rows<width>(block, to, of::left(a.of[First]), row, end);
  }
  /// Starts the copy of rows [row, end) of the input of launch W's layer.
  template <int W, class Block, class Slab, class Arguments>
  PIPE_HD PIPE_INLINE static void start_x(Block& block, Slab& to, Arguments const& a, extent row,
                                          extent end) {
    copy_rows<weight_sums<W>::inner>(
        block, to, contraction<P, launch_at<W, G...>>::left(a.of[First + W]), row, end);
  }
  /// Launch W's sums += x^T dy, of rows [row, end).
  template <int W, class Block, class X, class Dy>
  PIPE_HD PIPE_INLINE static void add(Block& block, X const& x, Dy const& dy, extent row,
                                      extent end) {
    using state = typename Block::state;
    weight_sums<W>::template add<Rows>(
        block, x, dy, int(end - row < Rows ? end - row : Rows),
        [](state& mine) { return mine.kept.weights + first_sum<W>; },
        [](state& mine) { return mine.kept.columns + first_column<W>; });
  }
  /// Stores the sums of all weights after the last tile, once for each launch of the chain that
  /// computes a weight's gradient.
  template <class Block, class Arguments, int... Is>
  PIPE_HD PIPE_INLINE static void take_weights(Block& block, Arguments const& a,
                                               std::integer_sequence<int, Is...>) {
    (take_weight<Is>(block, a), ...);
  }
  template <int Index, class Block, class Arguments>
  PIPE_HD PIPE_INLINE static void take_weight([[maybe_unused]] Block& block,
                                              [[maybe_unused]] Arguments const& a) {
    using state = typename Block::state;
    if constexpr (makes_weight<Index>)
      weight_sums<Index>::take(
          block, a.of[First + Index],
          [](state& mine) { return mine.kept.weights + first_sum<Index>; },
          [](state& mine) { return mine.kept.columns + first_column<Index>; });
  }
};

}  // namespace pp::cuda
