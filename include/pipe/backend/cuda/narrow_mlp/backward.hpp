// SPDX-License-Identifier: BSL-1.0
//
// A chain of narrow layers backward: for each tile of rows a block computes the gradients of all
// inputs, and adds to the gradients of all weights. A tile's gradient stays in shared memory from
// the last layer to the first; the inputs of the layers are read from memory.
#pragma once

#include <pipe/backend/cuda/narrow_mlp/gradients.hpp>

namespace pp::cuda {

template <class P, int Rows, class Numbers, int... G>
struct narrow_backward_weights;
template <class P, int Rows, int... Is, int... G>
struct narrow_backward_weights<P, Rows, std::integer_sequence<int, Is...>, G...>
    : std::conditional_t<group_of<P, G>::value.anchor == op_kind::matmul_input_gradient,
                         numbered_slab<Is, typename narrow_layer<P, G, Rows>::weights>,
                         numbered_slab<Is, nothing>>... {};

/// The gradients of a chain of narrow layers: dx_i = epilogue_i(dy_i w_i^T), which is dy_(i - 1),
/// dw_i = x_i^T dy_i, and db_i = sum over rows of dy_i.
///
/// shape: dy of the last layer (rows, columns), x_i (rows, inner_i), w_i^T -> dw_i (inner_i,
///        columns_i) or its splits, db_i, and every dx that is read outside the chain
/// law:   the same bits as the groups' own kernels
/// work:  a block has the rows of one split of the weights' sums; the gradient of a tile of Rows
///        rows stays in shared memory through all levels, while the next operand is copied
/// cost:  reads x_i and dy once and writes the gradients; bounded by shared memory and registers,
///        which hold all weights and all sums
template <class P, int Rows, unsigned Dropped, int... G>
struct narrow_backward_kernel {
  using gradients = narrow_gradients<P, Rows, 0, G...>;
  using levels = typename gradients::levels;
  using T = typename P::element;
  static constexpr int launches = sizeof...(G);
  using arguments = chain_arguments<launches>;
  using numbers = std::make_integer_sequence<int, levels::count>;
  using launch_numbers = std::make_integer_sequence<int, launches>;
  template <int Index>
  using layer = narrow_layer<P, launch_at<Index, G...>, Rows>;
  template <int Index>
  static constexpr bool makes_weight = gradients::template makes_weight<Index>;
  template <int Index>
  static constexpr int sums_of = group_of<P, Index>::value.anchor == op_kind::matmul_input_gradient
                                     ? narrow_layer<P, Index, Rows>::product::sums
                                     : 0;
  template <int Index>
  static constexpr int across_of =
      group_of<P, Index>::value.anchor == op_kind::matmul_input_gradient
          ? narrow_layer<P, Index, Rows>::product::across
          : narrow_weight_sums<P, Index>::product::across;

  struct state {
    float sums[gradients::template most<sums_of<G>...>()][4];
    typename gradients::kept_sums kept;
    warp_operands<gradients::template most<across_of<G>...>()> operands;
  };
  using x_rows = narrow_rows<T, gradients::has_weights ? Rows : 1, gradients::widest_x>;
  struct shared {
    narrow_rows<T, Rows, gradients::width> input;
    narrow_rows<T, Rows, gradients::widest_dy> tile;
    x_rows x[2];
    narrow_backward_weights<P, Rows, launch_numbers, G...> weights;
  };

  static constexpr int threads = narrow_threads, resident = 1;
  PIPE_HD static extent blocks(arguments const&) { return gradients::blocks_in_all; }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    extent const first = gradients::first_row(block.position()), end = gradients::rows;
    block.part([&](int, state& mine) { mine.kept.clear(); });
    start_weights(block, a, launch_numbers{});
    int parity = 0;
    start_level<0>(block, a, first, end, parity);
    for (extent row = first; row < end; row = gradients::next_row(row))
      run_levels(block, a, row, end, parity, numbers{});
    await_copies<0>(block);
    gradients::take_weights(block, a, launch_numbers{});
  }

 private:
  template <class Block, int... Is>
  PIPE_HD PIPE_INLINE static void start_weights(Block& block, arguments const& a,
                                                std::integer_sequence<int, Is...>) {
    (start_weight<Is>(block, a), ...);
  }
  template <int Index, class Block>
  PIPE_HD PIPE_INLINE static void start_weight([[maybe_unused]] Block& block,
                                               [[maybe_unused]] arguments const& a) {
    if constexpr (!makes_weight<Index>)
      layer<Index>::copy(block, a.of[Index], slab_of<Index>(block.shared().weights));
  }

  /// Starts the copies that level L needs for rows [row, end): the first dy, and the input of a
  /// layer.
  template <int L, class Block>
  PIPE_HD PIPE_INLINE static void start_level(Block& block, arguments const& a, extent row,
                                              extent end, int parity) {
    constexpr int w = levels::template at<L>.weight;
    if constexpr (L == 0) gradients::start_dy(block, block.shared().input, a, row, end);
    if constexpr (w >= 0)
      gradients::template start_x<w>(block, block.shared().x[parity], a, row, end);
    commit_copies(block);
  }
  template <class Block, int... L>
  PIPE_HD PIPE_INLINE static void run_levels(Block& block, arguments const& a, extent row,
                                             extent end, int& parity,
                                             std::integer_sequence<int, L...>) {
    ((run_level<L>(block, a, row, end, parity), parity ^= 1), ...);
  }
  template <int L, class Block>
  PIPE_HD PIPE_INLINE static void run_level(Block& block, arguments const& a, extent row,
                                            extent end, int parity) {
    constexpr bool is_last = L + 1 == levels::count;
    await_copies<0>(block);  // this level's operands have arrived; also a barrier
    if constexpr (!is_last)
      start_level<L + 1>(block, a, row, end, parity ^ 1);
    else if (extent const next = gradients::next_row(row); next < end)
      start_level<0>(block, a, next, end, parity ^ 1);
    if constexpr (L == 0)
      run_gradients<L>(block, a, block.shared().input, row, end, parity);
    else
      run_gradients<L>(block, a, block.shared().tile, row, end, parity);
  }
  template <int L, class Block, class Dy>
  PIPE_HD PIPE_INLINE static void run_gradients(Block& block, arguments const& a, Dy const& dy,
                                                extent row, extent end,
                                                [[maybe_unused]] int parity) {
    constexpr bool is_last = L + 1 == levels::count;
    constexpr int w = levels::template at<L>.weight, b = levels::template at<L>.input;
    if constexpr (w >= 0) gradients::template add<w>(block, block.shared().x[parity], dy, row, end);
    if constexpr (b >= 0) {
      layer<b>::multiply(block, dy, slab_of<b>(block.shared().weights));
      if constexpr (L > 0 && !is_last) block.phase([](int, state&) {});  // the tile has been read
      block.part([&](int thread, state& mine) {
        layer<b>::template finish_rows<!is_last, gradients::is_whole, (Dropped >> b & 1) != 0>(
            a.of[b], thread, mine, row, end, block.shared().tile);
      });
    }
  }
};

/// A range of a grid's blocks as a grid of its own, so that a kernel's body can run in a part of
/// another kernel's grid.
template <class Block>
struct part_of_grid {
  using state = typename Block::state;
  Block& block;
  extent first;
  PIPE_HD extent position() const { return block.position() - first; }
  template <class F>
  PIPE_HD PIPE_INLINE void part(F f) {
    block.part(f);
  }
};

/// Adds the splits of the weights' gradients, in one launch for all weights of a chain.
///
/// shape: sums (splits, inner_i, columns_i) per weight -> dw_i (inner_i, columns_i)
/// work:  as split_sums_kernel; a weight has a range of the blocks
///
/// First: the number of the first of the launches G in the chain.
template <class P, int First, int... G>
struct narrow_sums_kernel {
  static constexpr int launches = sizeof...(G);
  using arguments = chain_arguments<First + launches>;
  using state = nothing;
  using shared = nothing;
  static constexpr int threads = 256;

  template <int H>
  static constexpr extent blocks_of() {
    if constexpr (group_of<P, H>::value.anchor == op_kind::matmul_weight_gradient)
      if constexpr (narrow_weight_sums<P, H>::plan.splits > 1)
        return split_sums_kernel<typename narrow_weight_sums<P, H>::tiles>::blocks;
    return 0;
  }
  static constexpr extent blocks_in_all = (extent(0) + ... + blocks_of<G>());
  PIPE_HD static extent blocks(arguments const&) { return blocks_in_all; }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    run_all(block, a, std::make_integer_sequence<int, launches>{});
  }

 private:
  template <int Index>
  static constexpr extent blocks_before() {
    return []<int... K>(std::integer_sequence<int, K...>) {
      return (extent(0) + ... + blocks_of<launch_at<K, G...>>());
    }(std::make_integer_sequence<int, Index>{});
  }
  template <int Index>
  static constexpr extent first_block = blocks_before<Index>();
  template <int H>
  static constexpr extent block_count = blocks_of<H>();

  template <class Block, int... Is>
  PIPE_HD PIPE_INLINE static void run_all(Block& block, arguments const& a,
                                          std::integer_sequence<int, Is...>) {
    (run_one<Is>(block, a), ...);
  }
  template <int Index, class Block>
  PIPE_HD PIPE_INLINE static void run_one([[maybe_unused]] Block& block,
                                          [[maybe_unused]] arguments const& a) {
    constexpr int g = launch_at<Index, G...>;
    constexpr extent first = first_block<Index>, count = block_count<g>;
    if constexpr (count > 0)
      if (block.position() >= first && block.position() < first + count) {
        part_of_grid<Block> mine{block, first};
        split_sums_kernel<typename narrow_weight_sums<P, g>::tiles>::run(mine, a.of[First + Index]);
      }
  }
};

}  // namespace pp::cuda
