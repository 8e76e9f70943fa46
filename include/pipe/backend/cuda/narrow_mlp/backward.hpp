// SPDX-License-Identifier: BSL-1.0
//
// A chain of narrow layers backward: a block takes rows of the batch, tile by tile, through the
// gradients of all inputs, and adds up the gradients of all weights meanwhile. A tile's gradient is
// on the chip from the last layer to the first; the sums of the weights stay in registers over all
// tiles. Rows are shared out as the weights' plans split them, so the sums are those of
// contraction_tiles.
#pragma once

#include <pipe/backend/cuda/matmul/contraction.hpp>
#include <pipe/backend/cuda/narrow_mlp/tile.hpp>
#include <pipe/base/list.hpp>

namespace pp::cuda {

/// The gradient of a weight, dw (inner, columns) = x^T dy, as sums in the registers of a block over
/// all its tiles.
///
/// law: a block's rows are those of a split of contraction_tiles, in the same order: the same bits
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

  /// sums += x^T dy, of `left` rows of a tile. to(state) and columns_of(state): the first of this
  /// weight's sums, and of its bias's.
  template <int Rows, class Block, class X, class Dy, class Sums, class ColumnSums>
  PIPE_HD PIPE_INLINE static void add(Block& block, X const& x, Dy const& dy, int left, Sums to,
                                      ColumnSums columns_of) {
    using state = typename Block::state;
    constexpr operand_format operands = operands_in<whole::format>;
    constexpr int step = cuda::tile<operands>::inner, deep = 64 / int(sizeof(T));
#ifdef __CUDA_ARCH__
#pragma unroll 1  // so that fewer numbers are under way at once
#endif
    for (int first = 0; first < Rows && first < left; first += deep) {
      PIPE_UNROLL
      for (int k = 0; k < deep; k += step)
        multiply_step<whole::format, product::down, product::across>(
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

  /// The sums are complete: those of a split, or all.
  template <class Block, class Sums, class ColumnSums>
  PIPE_HD PIPE_INLINE static void take(Block& block, arguments const& a, Sums to,
                                       ColumnSums columns_of) {
    using state = typename Block::state;
    constexpr int each = columns % 2 == 0 ? 2 : 1;
    typename tiles::place const at{0, 0, tiles::split ? int(block.index()) : 0, 0, 0};
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

/// Gradients of level L, all made of the same dy: launch number `weight` and, after it, launch
/// number `input`; -1: there is none.
struct narrow_level {
  int weight = -1, input = -1;
};
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

template <class P, int Rows, class Numbers, int... G>
struct narrow_backward_weights;
template <class P, int Rows, int... I, int... G>
struct narrow_backward_weights<P, Rows, std::integer_sequence<int, I...>, G...>
    : std::conditional_t<group_of<P, G>::value.anchor == op_kind::matmul_input_gradient,
                         numbered_slab<I, typename narrow_layer<P, G, Rows>::weights>,
                         numbered_slab<I, nothing>>... {};

/// The gradients of a chain of narrow layers: dx_i = epilogue_i(dy_i w_i^T), which is dy of the
/// layer below, and dw_i = x_i^T dy_i, db_i = sum over rows of dy_i.
///
/// shape: dy of the last layer (rows, columns), x_i (rows, inner_i), w_i^T -> dw_i (inner_i,
///        columns_i) or its splits, db_i, and every dx that is read outside the chain
/// law:   the bits of the groups' own kernels
/// work:  a block has the rows of one split of the weights' sums; a tile of Rows rows goes through
///        all levels, whose gradient stays in shared memory, while the next operand is copied
/// cost:  reads x_i and dy once and writes the gradients; bounded by shared memory and registers,
///        which hold all weights and all sums
template <class P, int Rows, unsigned Dropped, int... G>
struct narrow_backward_kernel {
  static constexpr int launches = sizeof...(G);
  using T = typename P::element;
  using arguments = chain_arguments<launches>;
  using levels = narrow_levels<P, G...>;
  using numbers = std::make_integer_sequence<int, levels::count>;
  template <int I>
  static constexpr bool makes_weight = !levels::is_input[I];
  template <int I>
  using layer = narrow_layer<P, launch_at<I, G...>, Rows>;
  template <int I>
  using weight_sums = narrow_weight_sums<P, launch_at<I, G...>>;

  /// What a thread keeps for the launches before I.
  template <int I>
  static constexpr int sums_before() {
    return []<int... K>(std::integer_sequence<int, K...>) {
      return (0 + ... + (makes_weight<K> ? weight_sums<K>::product::sums : 0));
    }(std::make_integer_sequence<int, I>{});
  }
  template <int I>
  static constexpr int columns_before() {
    return []<int... K>(std::integer_sequence<int, K...>) {
      return (0 + ... + (makes_weight<K> ? weight_sums<K>::product::across : 0));
    }(std::make_integer_sequence<int, I>{});
  }
  template <int I>
  static constexpr int first_sum = sums_before<I>();
  template <int I>
  static constexpr int first_column = columns_before<I>();

  static constexpr bool has_weights = sums_before<launches>() > 0;
  template <int... N>
  static constexpr int most() {
    int m = 1;
    ((m = N > m ? N : m), ...);
    return m;
  }
  template <int I>
  static constexpr int width_of_dy = group_of<P, I>::value.anchor == op_kind::matmul_input_gradient
                                         ? group_of<P, I>::value.attributes.contraction().inner
                                         : group_of<P, I>::value.columns;
  template <int I>
  static constexpr int width_of_x = group_of<P, I>::value.anchor == op_kind::matmul_input_gradient
                                        ? 0
                                        : group_of<P, I>::value.attributes.contraction().inner;
  template <int I>
  static constexpr int sums_of = group_of<P, I>::value.anchor == op_kind::matmul_input_gradient
                                     ? narrow_layer<P, I, Rows>::product::sums
                                     : 0;
  template <int I>
  static constexpr int across_of = group_of<P, I>::value.anchor == op_kind::matmul_input_gradient
                                       ? narrow_layer<P, I, Rows>::product::across
                                       : narrow_weight_sums<P, I>::product::across;

  struct state {
    float sums[most<sums_of<G>...>()][4];
    float weights[has_weights ? sums_before<launches>() : 1][4];
    float columns[has_weights ? columns_before<launches>() : 1];
    warp_operands<most<across_of<G>...>()> operands;
  };
  using x_rows = narrow_rows<T, has_weights ? Rows : 1, most<width_of_x<G>...>()>;
  struct shared {
    narrow_rows<T, Rows, width_of_dy<launch_at<0, G...>>> input;
    narrow_rows<T, Rows, most<width_of_dy<G>...>()> tile;
    x_rows x[2];
    narrow_backward_weights<P, Rows, std::make_integer_sequence<int, launches>, G...> weights;
  };

  // ---- which rows a block takes ----

  static constexpr extent rows = extent(group_of<P, launch_at<0, G...>>::value.rows) * P::samples;
  static constexpr int a_weight = levels::template at<0>.weight >= 0
                                      ? levels::template at<0>.weight
                                      : levels::template at<1>.weight;
  static constexpr extent rows_each_of() {
    extent const tiles = (rows + Rows - 1) / Rows;
    if constexpr (has_weights)
      return weight_sums<a_weight>::tiles::slabs_each * weight_sums<a_weight>::plan.depth;
    else
      return (tiles + narrow_blocks - 1) / narrow_blocks * Rows;
  }
  static constexpr extent rows_each = rows_each_of();
  template <int H>
  static constexpr bool is_split_alike() {
    if constexpr (group_of<P, H>::value.anchor == op_kind::matmul_weight_gradient)
      return narrow_weight_sums<P, H>::tiles::slabs_each * narrow_weight_sums<P, H>::plan.depth ==
             rows_each;
    return true;
  }
  static_assert((... && is_split_alike<G>()),
                "weights whose sums are split differently are in no run");
  static constexpr extent blocks_in_all = (rows + rows_each - 1) / rows_each;
  static constexpr int threads = narrow_threads, resident = 1;
  PIPE_HD static extent blocks(arguments const&) { return blocks_in_all; }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    extent const first = block.index() * rows_each,
                 end = first + rows_each < rows ? first + rows_each : rows;
    block.part([&](int, state& mine) {
      PIPE_UNROLL
      for (auto& sums : mine.weights) {
        PIPE_UNROLL
        for (float& s : sums) s = 0;
      }
      PIPE_UNROLL
      for (float& s : mine.columns) s = 0;
    });
    start_weights(block, a, std::make_integer_sequence<int, launches>{});
    int turn = 0;
    start_level<0>(block, a, first, end, turn);
    for (extent row = first; row < end; row += Rows)
      run_levels(block, a, row, end, turn, numbers{});
    await_copies<0>(block);
    take_weights(block, a, std::make_integer_sequence<int, launches>{});
  }

 private:
  template <class Block, int... I>
  PIPE_HD PIPE_INLINE static void start_weights(Block& block, arguments const& a,
                                                std::integer_sequence<int, I...>) {
    (start_weight<I>(block, a), ...);
  }
  template <int I, class Block>
  PIPE_HD PIPE_INLINE static void start_weight([[maybe_unused]] Block& block,
                                               [[maybe_unused]] arguments const& a) {
    if constexpr (!makes_weight<I>)
      copy_weights<layer<I>::inner, layer<I>::columns>(
          block, slab_of<I>(block.shared().weights),
          contraction<P, launch_at<I, G...>>::right(a.of[I]));
  }

  /// What level L reads of rows [row, end) that is not on the chip: the first dy, and the input of
  /// a layer.
  template <int L, class Block>
  PIPE_HD PIPE_INLINE static void start_level(Block& block, arguments const& a, extent row,
                                              extent end, int turn) {
    constexpr int w = levels::template at<L>.weight;
    if constexpr (L == 0 && w < 0)
      copy_rows<width_of_dy<launch_at<0, G...>>>(
          block, block.shared().input, contraction<P, launch_at<0, G...>>::left(a.of[0]), row, end);
    else if constexpr (L == 0)
      copy_rows<width_of_dy<launch_at<0, G...>>>(block, block.shared().input,
                                                 contraction<P, launch_at<0, G...>>::right(a.of[0]),
                                                 row, end);
    if constexpr (w >= 0)
      copy_rows<weight_sums<w>::inner>(block, block.shared().x[turn],
                                       contraction<P, launch_at<w, G...>>::left(a.of[w]), row, end);
    commit_copies(block);
  }
  template <class Block, int... L>
  PIPE_HD PIPE_INLINE static void run_levels(Block& block, arguments const& a, extent row,
                                             extent end, int& turn,
                                             std::integer_sequence<int, L...>) {
    ((run_level<L>(block, a, row, end, turn), turn ^= 1), ...);
  }
  template <int L, class Block>
  PIPE_HD PIPE_INLINE static void run_level(Block& block, arguments const& a, extent row,
                                            extent end, int turn) {
    constexpr bool is_last = L + 1 == levels::count;
    await_copies<0>(block);  // what this level reads is there, and all threads are here
    if constexpr (!is_last)
      start_level<L + 1>(block, a, row, end, turn ^ 1);
    else if (row + Rows < end)
      start_level<0>(block, a, row + Rows, end, turn ^ 1);
    if constexpr (L == 0)
      run_gradients<L>(block, a, block.shared().input, row, end, turn);
    else
      run_gradients<L>(block, a, block.shared().tile, row, end, turn);
  }
  template <int L, class Block, class Dy>
  PIPE_HD PIPE_INLINE static void run_gradients(Block& block, arguments const& a, Dy const& dy,
                                                extent row, extent end, [[maybe_unused]] int turn) {
    constexpr bool is_last = L + 1 == levels::count;
    constexpr int w = levels::template at<L>.weight, b = levels::template at<L>.input;
    if constexpr (w >= 0)
      weight_sums<w>::template add<Rows>(
          block, block.shared().x[turn], dy, int(end - row < Rows ? end - row : Rows),
          [](state& mine) { return mine.weights + first_sum<w>; },
          [](state& mine) { return mine.columns + first_column<w>; });
    if constexpr (b >= 0) {
      layer<b>::multiply(block, dy, slab_of<b>(block.shared().weights));
      if constexpr (L > 0 && !is_last) block.phase([](int, state&) {});  // the tile has been read
      block.part([&](int thread, state& mine) {
        layer<b>::template finish_rows<!is_last, (Dropped >> b & 1) != 0>(
            a.of[b], thread, mine, row, end, block.shared().tile);
      });
    }
  }
  template <class Block, int... I>
  PIPE_HD PIPE_INLINE static void take_weights(Block& block, arguments const& a,
                                               std::integer_sequence<int, I...>) {
    (take_weight<I>(block, a), ...);
  }
  template <int I, class Block>
  PIPE_HD PIPE_INLINE static void take_weight([[maybe_unused]] Block& block,
                                              [[maybe_unused]] arguments const& a) {
    if constexpr (makes_weight<I>)
      weight_sums<I>::take(
          block, a.of[I], [](state& mine) { return mine.weights + first_sum<I>; },
          [](state& mine) { return mine.columns + first_column<I>; });
  }
};

/// A range of a grid's blocks as a grid of its own, so that a kernel's body runs as part of
/// another.
template <class Block>
struct part_of_grid {
  using state = typename Block::state;
  Block& block;
  extent first;
  PIPE_HD extent index() const { return block.index() - first; }
  template <class F>
  PIPE_HD PIPE_INLINE void part(F f) {
    block.part(f);
  }
};

/// The weights' gradients from the sums of their splits, in one launch for all weights of a chain.
///
/// shape: sums (splits, inner_i, columns_i) per weight -> dw_i (inner_i, columns_i)
/// work:  as split_sums_kernel; a weight has a range of the blocks
template <class P, int... G>
struct narrow_sums_kernel {
  static constexpr int launches = sizeof...(G);
  using arguments = chain_arguments<launches>;
  using state = nothing;
  using shared = nothing;
  static constexpr int threads = 256;

  template <int H>
  static constexpr extent blocks_of() {
    if constexpr (group_of<P, H>::value.anchor == op_kind::matmul_weight_gradient)
      if constexpr (narrow_weight_sums<P, H>::plan.splits > 1)
        return split_sums_kernel<P, H, narrow_weight_sums<P, H>::plan>::blocks;
    return 0;
  }
  static constexpr extent blocks_in_all = (extent(0) + ... + blocks_of<G>());
  PIPE_HD static extent blocks(arguments const&) { return blocks_in_all; }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    run_all(block, a, std::make_integer_sequence<int, launches>{});
  }

 private:
  template <int I>
  static constexpr extent blocks_before() {
    return []<int... K>(std::integer_sequence<int, K...>) {
      return (extent(0) + ... + blocks_of<launch_at<K, G...>>());
    }(std::make_integer_sequence<int, I>{});
  }
  template <int I>
  static constexpr extent first_block = blocks_before<I>();
  template <int H>
  static constexpr extent block_count = blocks_of<H>();

  template <class Block, int... I>
  PIPE_HD PIPE_INLINE static void run_all(Block& block, arguments const& a,
                                          std::integer_sequence<int, I...>) {
    (run_one<I>(block, a), ...);
  }
  template <int I, class Block>
  PIPE_HD PIPE_INLINE static void run_one([[maybe_unused]] Block& block,
                                          [[maybe_unused]] arguments const& a) {
    constexpr int g = launch_at<I, G...>;
    constexpr extent first = first_block<I>, count = block_count<g>;
    if constexpr (count > 0)
      if (block.index() >= first && block.index() < first + count) {
        part_of_grid<Block> mine{block, first};
        split_sums_kernel<P, g, narrow_weight_sums<P, g>::plan>::run(mine, a.of[I]);
      }
  }
};

}  // namespace pp::cuda
